// SPDX-License-Identifier: Apache-2.0
#include "runtime/array.h"

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "hlo/ops.h"
#include "runtime/device.h"
#include "runtime/program.h"

namespace torch_tpu::runtime {
namespace {

struct TypeHash {
  size_t operator()(const Type& t) const {
    size_t h = static_cast<size_t>(t.dtype) + 0x9e3779b97f4a7c15ull;
    for (int64_t d : t.dims) h = (h ^ static_cast<size_t>(d)) * 0x100000001b3ull;
    return h;
  }
};

// IEEE narrowing of a float to 16-bit formats, round to nearest even.
uint16_t to_bf16(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

template <class T>
void put(ScalarValue& s, T v) { std::memcpy(s.bits, &v, sizeof v); }

template <class T>
T get(const ScalarValue& s) {
  T v;
  std::memcpy(&v, s.bits, sizeof v);
  return v;
}

}  // namespace

const Type* intern(const Type& type) {
  static std::mutex mutex;
  static auto* types = new std::unordered_map<Type, std::unique_ptr<Type>, TypeHash>();
  std::lock_guard lock(mutex);
  auto& slot = (*types)[type];
  if (!slot) slot = std::make_unique<Type>(type);
  return slot.get();
}

bool ScalarValue::operator==(const ScalarValue& o) const {
  return dtype == o.dtype && std::memcmp(bits, o.bits, sizeof bits) == 0;
}

ScalarValue ScalarValue::of(bool v) {
  ScalarValue s;
  s.dtype = DType::pred;
  put<uint8_t>(s, v);
  return s;
}
ScalarValue ScalarValue::of(int64_t v) {
  ScalarValue s;
  s.dtype = DType::s64;
  put(s, v);
  return s;
}
ScalarValue ScalarValue::of(double v) {
  ScalarValue s;
  s.dtype = DType::f64;
  put(s, v);
  return s;
}
ScalarValue ScalarValue::of(double re, double im) {
  ScalarValue s;
  s.dtype = DType::c128;
  std::memcpy(s.bits, &re, 8);
  std::memcpy(s.bits + 8, &im, 8);
  return s;
}

ScalarValue ScalarValue::as(DType t) const {
  if (t == dtype) return *this;
  const bool from_integer = dtype == DType::s64 || dtype == DType::pred;
  const int64_t i = dtype == DType::pred ? bits[0] : dtype == DType::s64 ? get<int64_t>(*this) : static_cast<int64_t>(get<double>(*this));
  const double d = from_integer ? static_cast<double>(i) : get<double>(*this);
  double im = 0;
  if (dtype == DType::c128) std::memcpy(&im, bits + 8, 8);
  ScalarValue s;
  s.dtype = t;
  switch (t) {
    case DType::pred: put<uint8_t>(s, d != 0 || im != 0); break;
    case DType::s8: put(s, static_cast<int8_t>(i)); break;
    case DType::u8: put(s, static_cast<uint8_t>(i)); break;
    case DType::s16: put(s, static_cast<int16_t>(i)); break;
    case DType::u16: put(s, static_cast<uint16_t>(i)); break;
    case DType::s32: put(s, static_cast<int32_t>(i)); break;
    case DType::u32: put(s, static_cast<uint32_t>(i)); break;
    case DType::s64: case DType::u64: put(s, i); break;
    case DType::f32: put(s, static_cast<float>(d)); break;
    case DType::f64: put(s, d); break;
    case DType::bf16: put(s, to_bf16(static_cast<float>(d))); break;
    case DType::c64: put(s, static_cast<float>(d)); { float v = static_cast<float>(im); std::memcpy(s.bits + 4, &v, 4); } break;
    case DType::c128: put(s, d); std::memcpy(s.bits + 8, &im, 8); break;
    default: throw hlo::Error("a number cannot be made a host scalar of dtype " + std::string(hlo::name(t)));
  }
  return s;
}

DeviceArray::DeviceArray(Device& device, const Type* type, pjrt::Buffer buffer)
    : device_(device), type_(type), nbytes_(type->nbytes()), buffer_(std::move(buffer)) {
  device_.link(*this);
}

DeviceArray::DeviceArray(Device& device, const Type* type, const ScalarValue& splat)
    : device_(device), type_(type), nbytes_(type->nbytes()), splat_(splat) {
  device_.link(*this);
}

DeviceArray::~DeviceArray() { device_.unlink(*this); }

void DeviceArray::wait() { pjrt_buffer().ready().wait(); }

PJRT_Buffer* DeviceArray::materialize() {
  static std::mutex mutex;  // two threads may read one splat at once
  std::lock_guard lock(mutex);
  if (buffer_) return buffer_.get();
  device_.set_buffer(*this, filled());
  return buffer_.get();
}

// One program per (dtype, dims), the number an operand: zeros, ones and full of one shape share it.
pjrt::Buffer DeviceArray::filled() {
  if (type_->rank() == 0) {
    return Device::client().from_host(splat_.bits, *type_, device_.pjrt_device());
  }
  if (nbytes_ <= 4096) {  // quicker than a launch, and needs no compile
    const int64_t size = hlo::itemsize(type_->dtype);
    alignas(64) unsigned char bytes[4096];
    for (int64_t i = 0; i < nbytes_; i += size) std::memcpy(bytes + i, splat_.bits, static_cast<size_t>(size));
    return Device::client().from_host(bytes, *type_, device_.pjrt_device());
  }
  hlo::Builder b;
  hlo::Value v = b.parameter(0, {type_->dtype, {}});
  auto program = ProgramCache::global().get("fill", b.finish({hlo::broadcast_to(v, type_->dims)}));
  Array scalar = device_.scalar(splat_);
  PJRT_Buffer* input = scalar->buffer();
  PJRT_Buffer* output = nullptr;
  program->executable.execute(device_.pjrt_device(), &input, 1, nullptr, 0, &output);
  return pjrt::Buffer(Device::client().plugin().api(), output);
}

}  // namespace torch_tpu::runtime
