// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hlo/ops.h"

// The arguments of a lowering, as the layer above (the dispatcher's stack, an FX node) hands them
// over. No torch types.
namespace torch_tpu::lower {

using hlo::Dims;
using hlo::DType;
using hlo::Type;
using hlo::Value;
using hlo::Values;

// A Python number whose value the lowering itself needs (it becomes part of the program and of its
// key).
struct Number {
  enum class Kind : uint8_t { boolean, integer, floating, complex } kind = Kind::integer;
  int64_t i = 0;  // boolean, integer
  double d = 0;   // floating, and the real part of complex
  double im = 0;
  static Number of(bool v) { return {Kind::boolean, v, double(v), 0}; }
  static Number of(int64_t v) { return {Kind::integer, v, double(v), 0}; }
  static Number of(double v) { return {Kind::floating, int64_t(v), v, 0}; }
  static Number of(std::complex<double> v) { return {Kind::complex, 0, v.real(), v.imag()}; }
  double to_double() const {
    return kind == Kind::floating || kind == Kind::complex ? d : double(i);
  }
  int64_t to_int() const { return kind == Kind::floating ? int64_t(d) : i; }
  bool to_bool() const { return to_double() != 0 || im != 0; }
};

// A Python number as a run-time operand: rank 0, pred / s64 / f64 / c128 by its kind. In type
// promotion it is weak, as PyTorch's wrapped numbers are: it changes the result's dtype only by its
// kind.
struct Wrapped {
  Value value;
};

// A list of Python numbers (Scalar[]) as run-time operands.
struct WrappedList {
  Values values;
};

// One argument. Lists of Value may hold null Values for None (Tensor?[]).
// Dtypes, strings and lists come as such; layouts, devices, generators and memory formats as
// std::monostate.
using Arg = std::variant<std::monostate, Value, Wrapped, Values, Number, Dims, std::vector<double>,
                         std::vector<bool>, std::string, DType, std::vector<Number>, WrappedList>;
using Args = std::vector<Arg>;

// A static number, or list of them, where the lowering wants an operand: constants, weak in
// promotion. Others as they are.
Arg as_operand(hlo::Builder& b, const Arg& a);

// Thrown by a lowering for input that PyTorch's kernels refuse and its meta functions let through:
// becomes a RuntimeError (or the named Python type) with exactly this text.
class UserError : public std::runtime_error {
 public:
  enum class Kind { runtime, index, type, value, not_implemented };
  explicit UserError(const std::string& text, Kind kind = Kind::runtime)
      : std::runtime_error(text), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

}  // namespace torch_tpu::lower
