// SPDX-License-Identifier: Apache-2.0
#include "lower/maths.h"

#include <cmath>
#include <numbers>

namespace torch_tpu::lower {
namespace {

DType bits_type(DType t) {
  switch (hlo::itemsize(t)) {
    case 1:
      return DType::s8;
    case 2:
      return DType::s16;
    case 4:
      return DType::s32;
    default:
      return DType::s64;
  }
}

}  // namespace

Value cast(Value x, DType t) {
  const bool inexact = hlo::is_floating(x.dtype()) || hlo::is_complex(x.dtype());
  const bool narrow = hlo::is_integral(t) && hlo::itemsize(t) < 4;
  return convert(inexact && narrow ? convert(x, DType::s32) : x, t);
}

Value sign_bit(Value x) {
  if (hlo::is_floating(x.dtype())) return bitcast_convert(x, bits_type(x.dtype())) < 0;
  if (hlo::is_signed_integral(x.dtype())) return x < 0;
  return hlo::full(x.builder(), {DType::pred, x.dims()}, 0);
}

Value copysign(Value magnitude, Value sign) {
  const Value m = abs(magnitude);
  return select(sign_bit(sign), -m, m);
}

Value signum(Value x) {
  if (x.dtype() == DType::pred) return x;
  if (!hlo::is_floating(x.dtype())) return hlo::sign(x);
  return convert(x > 0, x.dtype()) - convert(x < 0, x.dtype());
}

Value trunc(Value x) {
  if (!hlo::is_floating(x.dtype())) return x;
  return select(sign_bit(x), ceil(x), floor(x));
}

Value saturated_erf(Value x) {
  const Value y = hlo::erf(x);
  return x.dtype() == DType::f32 ? select(abs(x) > 3.92, copysign(ones_like(x), x), y) : y;
}

std::pair<Value, Value> frexp(Value x) {
  const bool wide = x.dtype() == DType::f64;
  const int mantissa = wide ? 52 : 23;
  const int64_t bias = wide ? 1022 : 126;  // of an exponent field that puts m into [0.5, 1)
  const int64_t field = wide ? 0x7ff : 0xff;
  const DType it = bits_type(x.dtype());
  const auto integer = [&](int64_t v) { return hlo::constant(x.builder(), it, v); };
  // Subnormals have no exponent field of their own: scale them into the normal range first.
  const double scale = std::ldexp(1.0, mantissa + 1);
  const Value small = abs(x) < (wide ? 2.2250738585072014e-308 : 1.1754943508222875e-38);
  const Value bits = bitcast_convert(select(small, x * scale, x), it);
  const Value exponent = shift_right_logical(bits, integer(mantissa)) & integer(field);
  const Value m = bitcast_convert(
      (bits & integer(~(field << mantissa))) | integer(bias << mantissa), x.dtype());
  const Value e = exponent - integer(bias) - select(small, integer(mantissa + 1), integer(0));
  const Value ordinary = is_finite(x) & (x != 0);
  return {select(ordinary, m, x), convert(select(ordinary, e, integer(0)), DType::s32)};
}

// With x = m 2^e: log2(x) = e + ln(m) / ln 2, where m is taken in [sqrt(1/2), sqrt(2)) so that
// nothing cancels near 1.
Value log2(Value x) {
  if (!hlo::is_floating(x.dtype())) return log(x) * std::numbers::log2e;
  const auto [m, e] = frexp(x);
  const Value low = m < std::numbers::sqrt2 / 2;
  const Value y = convert(e, x.dtype()) - select(low, ones_like(x), zeros_like(x)) +
                  log(select(low, m * 2.0, m)) * std::numbers::log2e;
  return select(is_finite(x) & (x > 0), y, log(x));
}

}  // namespace torch_tpu::lower
