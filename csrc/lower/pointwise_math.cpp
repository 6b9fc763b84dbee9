// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Exponentials, logarithms, trigonometry: integers and bool compute in the default dtype, 16-bit
// floats in f32.
namespace torch_tpu::lower {
namespace {

// 2^x by power, not exp(x ln 2): the product's rounding error would be multiplied by x.
Value exp2(Value x) { return power(full_like(x, 2), x); }
Value log10(Value x) { return log(x) * std::numbers::log10e; }

// (e^x +- e^-x) / 2 with e^x as the square of e^(x/2): x/2 is exact where x + log(1/2) is not, and
// nothing overflows before the result does.
Value sinh(Value x) {
  if (!hlo::is_floating(x.dtype())) return hlo::sinh(x);
  const Value e = exp(x / 2);
  return select(abs(x) < 1, hlo::sinh(x), 0.5 * e * e - 0.5 / e / e);
}
Value cosh(Value x) {
  if (!hlo::is_floating(x.dtype())) return hlo::cosh(x);
  const Value e = exp(x / 2);
  return 0.5 * e * e + 0.5 / e / e;
}

// sqrt(a^2 + b^2) without overflow: m sqrt(1 + (n / m)^2), m the larger magnitude. inf wins over
// NaN.
Value hypot(Value a, Value b) {
  require_floating("hypot_cpu", a);
  const Value m = maximum(abs(a), abs(b)), n = hlo::minimum(abs(a), abs(b));
  const Value y = select(m == 0, m, m * sqrt(1.0 + square(n / m)));
  return select(is_inf(a) | is_inf(b), scalar(y, INFINITY), y);
}

// x log(y), 0 where x is 0 unless y is NaN.
Value xlogy(Value x, Value y) {
  require_not_complex("xlogy_cpu", x);
  return select(is_nan(y), y, select(x == 0, zeros_like(x), x * log(y)));
}

Value atan2(Value y, Value x) {
  require_not_complex("atan2_cpu", y);
  return hlo::atan2(y, x);
}
Value erf(Value x) {
  require_not_complex("erf_vml_cpu", x);
  return saturated_erf(x);
}
Value erfc(Value x) {
  require_not_complex("erfc_vml_cpu", x);
  return hlo::erfc(x);
}

// log(e^a + e^b) = m + log1p(e^-|a - b|), m the larger; equal infinities give themselves.
// Complex: "larger" by real part.
Value logaddexp(Value a, Value b) {
  if (hlo::is_complex(a.dtype())) {
    const Value a_is_larger = real(a) >= real(b);
    const Value m = select(a_is_larger, a, b), n = select(a_is_larger, b, a);
    const Value both_minus_inf = (real(m) == -INFINITY) & (real(n) == -INFINITY);
    return select(both_minus_inf, n, m + log_plus_one(exp(n - m)));
  }
  require_floating("logaddexp_cpu", a);
  const Value m = maximum(a, b);
  return select((a == b) & is_inf(a), m, m + log_plus_one(exp(-abs(a - b))));
}

// log2(2^a + 2^b)
Value logaddexp2(Value a, Value b) {
  require_floating("logaddexp2_cpu", a);
  const Value m = maximum(a, b);
  const Value y = m + log_plus_one(exp2(-abs(a - b))) * std::numbers::log2e;
  return select((a == b) & is_inf(a), m, y);
}

// x in f16 and bf16 goes through f32: the mantissa's bits are kept, the exponent is the same.
std::pair<Value, Value> frexp_op(Value x) {
  require_floating("frexp_cpu", x);
  const auto [m, e] = frexp(convert(x, hlo::accumulate_type(x.dtype())));
  return {convert(m, x.dtype()), e};
}

}  // namespace

void register_pointwise_math(Registry& r) {
  using enum Promote;
  const auto unary = [&](const char* op, Value (*f)(Value)) {
    r.pointwise(std::string("aten::") + op, to_floating, 1, f);
  };
  unary("exp", hlo::exponential);
  unary("exp2", exp2);
  unary("expm1", hlo::exponential_minus_one);
  unary("log", hlo::log);
  unary("log2", log2);
  unary("log10", log10);
  unary("log1p", hlo::log_plus_one);
  unary("sqrt", hlo::sqrt);
  unary("rsqrt", hlo::rsqrt);
  unary("sigmoid", hlo::logistic);
  unary("erf", erf);
  unary("erfc", erfc);
  unary("sin", hlo::sine);
  unary("cos", hlo::cosine);
  unary("tan", hlo::tan);
  unary("sinh", sinh);
  unary("cosh", cosh);
  unary("tanh", hlo::tanh);
  unary("asin", hlo::asin);
  unary("acos", hlo::acos);
  unary("atan", hlo::atan);
  unary("asinh", hlo::asinh);
  unary("acosh", hlo::acosh);
  unary("atanh", hlo::atanh);
  unary("deg2rad", [](Value x) { return x * (std::numbers::pi / 180); });
  unary("rad2deg", [](Value x) { return x * (180 / std::numbers::pi); });

  r.pointwise("aten::atan2", to_floating, 2, atan2);
  r.pointwise("aten::hypot", arithmetic, 2, hypot);
  r.pointwise("aten::logaddexp", arithmetic, 2, logaddexp);
  r.pointwise("aten::logaddexp2", arithmetic, 2, logaddexp2);
  for (const char* overload : {"Tensor", "Scalar_Self", "Scalar_Other"}) {
    r.pointwise(std::string("aten::xlogy.") + overload, to_floating, 2, xlogy);
  }
  r.pointwise("aten::ldexp.Tensor", to_floating, 2, [](Value x, Value e) { return x * exp2(e); });
  r.add("aten::frexp.Tensor", frexp_op);
}

}  // namespace torch_tpu::lower
