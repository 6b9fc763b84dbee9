// SPDX-License-Identifier: Apache-2.0
#include "lower/bessel.h"

#include <cmath>
#include <numbers>

#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/series.h"

// Bessel and Airy functions of a real argument: a Chebyshev series near 0 and one of the asymptotic
// form beyond, the tables made by tools/special_tables.py. Integers compute in the default dtype.
namespace torch_tpu::lower {
namespace {

using std::numbers::pi;
using tables::Series;

// ---- modified: I, K
// --------------------------------------------------------------------------------------------
// e^-|x| I0(x), even; e^-|x| I1(x), odd.
Value i0e(Value x) {
  const Value y = abs(x), far = maximum(y, 8);
  const Value v = select(y <= 8, evaluate(tables::kI0Small, minimum(y, 8)),
                         evaluate(tables::kI0Large, 8.0 / far) / sqrt(far));
  return select(is_nan(x), x, v);
}
Value i1e(Value x) {
  const Value y = abs(x), far = maximum(y, 8), near = minimum(y, 8);
  const Value v = select(y <= 8, evaluate(tables::kI1Small, near) * near,
                         evaluate(tables::kI1Large, 8.0 / far) / sqrt(far));
  return select(is_nan(x), x, copysign(v, x));
}
// e^|x| in two factors, so that the product overflows only where I does.
Value grown(Value scaled, Value x) {
  const Value e = exp(abs(x) / 2);
  return select(is_inf(x), copysign(scalar(x, INFINITY), scaled), scaled * e * e);
}
Value i0(Value x) { return grown(i0e(x), x); }
Value i1(Value x) { return grown(i1e(x), x); }

// K for x > 0: inf at 0, NaN below. `scaled` is e^x K.
template <int order, bool scaled>
Value k(Value x) {
  const Value near = hlo::clamp(scalar(x, 0), x, scalar(x, 2)), far = maximum(x, 2),
              s = near * near;
  const Value log_half = log(near / 2);
  Value small, large;
  if constexpr (order == 0) {
    small = evaluate(tables::kK0Small, s) - log_half * i0(near);
    large = evaluate(tables::kK0Large, 2.0 / far);
  } else {
    small = evaluate(tables::kK1Small, s) / near + log_half * i1(near);
    large = evaluate(tables::kK1Large, 2.0 / far);
  }
  large = large / sqrt(far);
  const Value v =
      select(x <= 2, scaled ? small * exp(near) : small, scaled ? large : large * exp(-far));
  const Value inf = full_like(x, INFINITY);
  return select(is_nan(x), x, select(x == 0, inf, select(x < 0, full_like(x, NAN), v)));
}

// ---- J, Y
// ------------------------------------------------------------------------------------------------------
// sqrt(2 / (pi x)) (P cos w - Q sin w) and (P sin w + Q cos w), w = x - (order / 2 + 1/4) pi, for x
// >= 8.
std::pair<Value, Value> oscillation(Value x, int order, const Series& p_table,
                                    const Series& q_table) {
  const Value s = square(8.0 / x), w = x - (order * 0.5 + 0.25) * pi;
  const Value p = evaluate(p_table, s), q = evaluate(q_table, s) / x, scale = sqrt(2 / pi / x);
  return {scale * (p * cosine(w) - q * sine(w)), scale * (p * sine(w) + q * cosine(w))};
}

Value j0(Value x) {
  const Value y = abs(x), far = maximum(y, 8);
  const Value v = select(y < 8, evaluate(tables::kJ0Small, square(minimum(y, 8))),
                         oscillation(far, 0, tables::kP0, tables::kQ0).first);
  return select(is_inf(x), zeros_like(x), select(is_nan(x), x, v));
}
Value j1(Value x) {
  const Value y = abs(x), far = maximum(y, 8), near = minimum(y, 8);
  const Value v = select(y < 8, near * evaluate(tables::kJ1Small, square(near)),
                         oscillation(far, 1, tables::kP1, tables::kQ1).first);
  return select(is_inf(x), zeros_like(x), select(is_nan(x), x, select(x < 0, -v, v)));
}

// -inf at 0, NaN below, 0 at inf.
Value second_kind_edges(Value x, Value v) {
  v = select(x == 0, full_like(x, -INFINITY), select(x == INFINITY, zeros_like(x), v));
  return select(is_nan(x) | (x < 0), full_like(x, NAN), v);
}
Value y0(Value x) {
  const Value far = maximum(x, 8), near = hlo::clamp(scalar(x, 0), x, scalar(x, 8)),
              s = square(near);
  const Value small =
      evaluate(tables::kY0Small, s) + (2 / pi) * log(near) * evaluate(tables::kJ0Small, s);
  return second_kind_edges(
      x, select(x < 8, small, oscillation(far, 0, tables::kP0, tables::kQ0).second));
}
Value y1(Value x) {
  const Value far = maximum(x, 8), near = hlo::clamp(scalar(x, 0), x, scalar(x, 8)),
              s = square(near);
  const Value j = near * evaluate(tables::kJ1Small, s);
  const Value small =
      near * evaluate(tables::kY1Small, s) + (2 / pi) * (log(near) * j - 1.0 / near);
  return second_kind_edges(
      x, select(x < 8, small, oscillation(far, 1, tables::kP1, tables::kQ1).second));
}

// sin(x) / x, by its power series near 0.
Value spherical_j0(Value x) {
  const Value s = x * x;
  Value series = full_like(x, 1);
  for (int k = 6; k > 0; --k) series = 1.0 - s / (2.0 * k * (2.0 * k + 1)) * series;
  return select(is_inf(x), zeros_like(x), select(abs(x) < 0.5, series, sine(x) / x));
}

// ---- Airy
// ------------------------------------------------------------------------------------------------------
// zeta = 2/3 |x|^(3/2). Beyond 2, e^-zeta decay; below -2, oscillation; between, the power series
// about 0: Ai = c1 f - c2 g, f = sum of 3^k (1/3)_k x^3k / (3k)!, g = sum of 3^k (2/3)_k x^(3k + 1)
// / (3k + 1)!.
Value airy_ai(Value x) {
  const Value y = maximum(abs(x), 2), zeta = y * sqrt(y) * (2.0 / 3), u = 1.0 / zeta,
              root = sqrt(sqrt(y));
  const Value decay = exp(-zeta) / (2 * std::sqrt(pi) * root) * evaluate(tables::kAiryDecay, u);
  const Value a = zeta + pi / 4;
  const Value wave =
      (sine(a) * evaluate(tables::kAiryF, u) - cosine(a) * evaluate(tables::kAiryG, u)) /
      (std::sqrt(pi) * root);
  constexpr double kAi0 = 0.35502805388781723926, kMinusAiPrime0 = 0.25881940379280679841;
  const Value near = hlo::clamp(scalar(x, -2), x, scalar(x, 2)), cube = near * near * near;
  Value f = full_like(x, 1), g = full_like(x, 1);
  for (int k = 14; k > 0; --k) {
    f = 1.0 + f * cube / ((3.0 * k - 1) * (3.0 * k));
    g = 1.0 + g * cube / ((3.0 * k) * (3.0 * k + 1));
  }
  const Value middle = kAi0 * f - kMinusAiPrime0 * near * g;
  const Value v = select(x > 2, decay, select(x < -2, wave, middle));
  return select(is_nan(x), x,
                select(is_inf(x), select(x > 0, zeros_like(x), full_like(x, NAN)), v));
}

}  // namespace

Value bessel_i0(Value x) { return i0(x); }

void register_bessel(Registry& r) {
  const auto add = [&](const char* op, Value (*f)(Value)) {
    r.pointwise(std::string("aten::") + op, Promote::to_floating, 1, f);
  };
  add("i0", i0);
  add("special_i0e", i0e);
  add("special_i1", i1);
  add("special_i1e", i1e);
  add("special_modified_bessel_i0", i0);
  add("special_modified_bessel_i1", i1);
  add("special_modified_bessel_k0", k<0, false>);
  add("special_modified_bessel_k1", k<1, false>);
  add("special_scaled_modified_bessel_k0", k<0, true>);
  add("special_scaled_modified_bessel_k1", k<1, true>);
  add("special_bessel_j0", j0);
  add("special_bessel_j1", j1);
  add("special_bessel_y0", y0);
  add("special_bessel_y1", y1);
  add("special_spherical_bessel_j0", spherical_j0);
  add("special_airy_ai", airy_ai);
}

}  // namespace torch_tpu::lower
