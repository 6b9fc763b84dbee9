// SPDX-License-Identifier: Apache-2.0
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Bitwise operators and shifts. On bool, and, or, xor and not are logical.
namespace torch_tpu::lower {
namespace {

int64_t bits(Value x) { return 8 * hlo::itemsize(x.dtype()); }

// A bitwise operation by `f`.
Value checked(const char* kernel, Value (*f)(Value, Value), Value a, Value b) {
  require_integral_or_bool(kernel, a);
  return f(a, b);
}
Value bitwise_and(Value a, Value b) { return checked("bitwise_and_cpu", hlo::and_, a, b); }
Value bitwise_or(Value a, Value b) { return checked("bitwise_or_cpu", hlo::or_, a, b); }
Value bitwise_xor(Value a, Value b) { return checked("bitwise_xor_cpu", hlo::xor_, a, b); }
Value bitwise_not(Value x) {
  require_integral_or_bool("bitwise_not_cpu", x);
  return ~x;
}

// x << n;  n outside [0, bits) gives 0.
Value left_shift(Value x, Value n) {
  require_integral("lshift_cpu", x);
  const Value y = shift_left(x, n);
  const Value defined = hlo::is_unsigned(x.dtype()) ? n < bits(x) : (n >= 0) & (n < bits(x));
  return select(defined, y, zeros_like(y));
}

// x >> n, with the sign;  n outside [0, bits) gives 0 or -1, the sign alone.
Value right_shift(Value x, Value n) {
  require_integral("rshift_cpu", x);
  if (hlo::is_unsigned(x.dtype())) {
    const Value y = shift_right_logical(x, n);
    return select(n < bits(x), y, zeros_like(y));
  }
  const Value last = scalar(n, static_cast<double>(bits(x) - 1));
  return shift_right_arithmetic(x, select((n >= 0) & (n <= last), n, last));
}

}  // namespace

void register_pointwise_bitwise(Registry& r) {
  using enum Promote;
  const auto binary = [&](const std::string& op, const std::vector<const char*>& overloads,
                          auto f) {
    for (const char* overload : overloads)
      r.pointwise("aten::" + op + "." + overload, arithmetic, 2, f);
  };
  const std::vector<const char*> logical_overloads = {"Tensor", "Scalar", "Scalar_Tensor"};
  binary("bitwise_and", logical_overloads, bitwise_and);
  binary("bitwise_or", logical_overloads, bitwise_or);
  binary("bitwise_xor", logical_overloads, bitwise_xor);
  const std::vector<const char*> shift_overloads = {"Tensor", "Tensor_Scalar", "Scalar_Tensor"};
  binary("bitwise_left_shift", shift_overloads, left_shift);
  binary("bitwise_right_shift", shift_overloads, right_shift);
  binary("__lshift__", {"Tensor", "Scalar"}, left_shift);
  binary("__rshift__", {"Tensor", "Scalar"}, right_shift);
  r.pointwise("aten::bitwise_not", arithmetic, 1, bitwise_not);
}

}  // namespace torch_tpu::lower
