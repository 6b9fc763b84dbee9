// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace torch_tpu::hlo {

// A program that cannot be built: an operation of the builder is given a wrong shape or dtype, or a
// dimension is read that is not there.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void past_the_end(size_t i, size_t size);

// A vector that is never read past its end: a lowering may meet a call that PyTorch would refuse
// for its rank or its number of tensors, and must answer with an exception: Error.
template <class T>
class Checked : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  Checked() = default;
  Checked(std::vector<T> v) : std::vector<T>(std::move(v)) {}  // NOLINT: means the same

  T& operator[](size_t i) { return this->data()[within(i)]; }
  const T& operator[](size_t i) const { return this->data()[within(i)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[this->size() - 1]; }
  const T& back() const { return (*this)[this->size() - 1]; }

 private:
  size_t within(size_t i) const {
    if (i >= this->size()) past_the_end(i, this->size());
    return i;
  }
};

using Dims = Checked<int64_t>;  // sizes, or numbers of dimensions

// Element types by XLA's names. The order is the identity used in program keys and on disk: append
// only.
enum class DType : uint8_t {
  pred,
  s8,
  s16,
  s32,
  s64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128,
  f8e5m2,
  f8e4m3fn,
  f8e5m2fnuz,
  f8e4m3fnuz,
  f8e8m0fnu,
};

// An operation that is not there for its operands' dtype, or (`differ`) whose operands have two, of
// which `dtype` is the first.
class DTypeError : public Error {
 public:
  DTypeError(const std::string& text, DType dtype, bool differ)
      : Error(text), dtype_(dtype), differ_(differ) {}
  DType dtype() const { return dtype_; }
  bool differ() const { return differ_; }

 private:
  DType dtype_;
  bool differ_;
};
inline constexpr int kNumDTypes = 20;

int64_t itemsize(DType t);            // bytes an element takes in a dense array (pred: 1)
std::string_view name(DType t);       // "f32", "pred", "bf16": for errors and keys
std::string_view mlir_name(DType t);  // "f32", "i1", "ui8", "complex<f32>": for program text

bool is_floating(DType t);  // f8 to f64, not complex
bool is_complex(DType t);
bool is_integral(DType t);  // signed and unsigned integers, not pred
bool is_signed_integral(DType t);
bool is_unsigned(DType t);    // u8..u64, not pred
DType real_type(DType t);     // c64 -> f32, c128 -> f64, others unchanged
DType complex_type(DType t);  // f64 -> c128, other floating -> c64, complex unchanged
// The type in which arithmetic on `t` is done and sums are kept: f32 for floats of at most 16 bits,
// otherwise `t` (PyTorch's opmath type).
DType accumulate_type(DType t);

// Dtype and shape of a dense array.
struct Type {
  DType dtype;
  Dims dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t numel() const;
  int64_t nbytes() const { return numel() * itemsize(dtype); }
  std::string str() const;   // "f32[2,3]"
  std::string mlir() const;  // "tensor<2x3xf32>"
  bool operator==(const Type&) const = default;
};

int64_t numel(const Dims& dims);
std::string str(const Dims& dims);  // "[2, 3]"

}  // namespace torch_tpu::hlo
