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

template <class T>
void put(ScalarValue& s, T v) {
  std::memcpy(s.bits, &v, sizeof v);
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

ScalarValue ScalarValue::zero(DType t) {
  ScalarValue s;
  s.dtype = t;
  return s;
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
    for (int64_t i = 0; i < nbytes_; i += size)
      std::memcpy(bytes + i, splat_.bits, static_cast<size_t>(size));
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
