// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "pjrt/client.h"

namespace torch_tpu::runtime {

using hlo::Dims;
using hlo::DType;
using hlo::Type;

class Device;

// One Type per distinct (dtype, dims) of the process, at a stable address: types compare by
// pointer, and a program's key holds the pointer instead of the dims.
const Type* intern(const Type& type);

// A rank-0 value on the host: what a Python number or a splat holds. `bits` is the element's bytes,
// little-endian.
struct ScalarValue {
  DType dtype = DType::f32;
  alignas(16) unsigned char bits[16] = {};
  bool operator==(const ScalarValue& o) const;
  static ScalarValue zero(DType t);
  static ScalarValue of(bool v);
  static ScalarValue of(int64_t v);
  static ScalarValue of(double v);
  static ScalarValue of(double re, double im);
};

// An immutable array on a device: a PJRT buffer, ready or in flight, or a splat that no program has
// read yet. Reference counted (Array); nobody ever changes its contents. Thread-safe.
class DeviceArray {
 public:
  DeviceArray(Device& device, const Type* type, pjrt::Buffer buffer);
  DeviceArray(Device& device, const Type* type, const ScalarValue& splat);
  ~DeviceArray();
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  Device& device() const { return device_; }
  const Type& type() const { return *type_; }
  const Type* type_id() const { return type_; }
  int64_t nbytes() const { return nbytes_; }
  // The buffer; a splat is made real first.
  PJRT_Buffer* buffer() { return buffer_ ? buffer_.get() : materialize(); }
  const pjrt::Buffer& pjrt_buffer() {
    buffer();
    return buffer_;
  }
  const ScalarValue* splat() const { return buffer_ ? nullptr : &splat_; }
  // Blocks until the array is computed. Throws pjrt::Error with the failed program's message.
  void wait();

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  // False if the last reference is already gone and the array on its way out.
  bool try_retain() {
    int n = references_.load(std::memory_order_relaxed);
    while (n > 0) {
      if (references_.compare_exchange_weak(n, n + 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  int references() const { return references_.load(std::memory_order_acquire); }

 private:
  friend class Device;
  PJRT_Buffer* materialize();
  pjrt::Buffer filled();  // with the splat's number

  Device& device_;
  const Type* type_;
  int64_t nbytes_;
  pjrt::Buffer buffer_;
  ScalarValue splat_;
  std::atomic<int> references_{0};
  DeviceArray *previous_ = nullptr, *next_ = nullptr;  // the device's list of live arrays
  bool known_ready_ = false;  // seen ready by Device::pending; guarded by the device's mutex
};

// A counted reference to a DeviceArray, or null.
class Array {
 public:
  Array() = default;
  explicit Array(DeviceArray* p) : p_(p) {
    if (p_) p_->retain();
  }
  static Array adopt(DeviceArray* p) {  // takes over a reference that the caller has
    Array a;
    a.p_ = p;
    return a;
  }
  Array(const Array& o) : Array(o.p_) {}
  Array(Array&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Array& operator=(Array o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Array() {
    if (p_) p_->release();
  }
  explicit operator bool() const { return p_ != nullptr; }
  DeviceArray* get() const { return p_; }
  DeviceArray* operator->() const { return p_; }
  DeviceArray& operator*() const { return *p_; }

 private:
  DeviceArray* p_ = nullptr;
};

// What a storage's DataPtr points to: the array that is its contents now. Mutation swaps `value`.
// A null value reads as zeros (memory that was asked for and never written).
struct Cell {
  Device* device;
  int64_t nbytes;  // of the storage; equals the value's bytes once there is one
  void* address;   // unique while the storage lives; never dereferenced
  Array value;
};

}  // namespace torch_tpu::runtime
