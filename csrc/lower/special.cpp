// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"
#include "lower/series.h"
#include "lower/special_tables.h"

// Special functions of the gamma and error-function families. Integers compute in the default
// dtype.
namespace torch_tpu::lower {
namespace {

using std::numbers::pi;

// ---- gamma
// -----------------------------------------------------------------------------------------------------
Value log_gamma(Value x) {
  require_not_complex("lgamma_vml_cpu", x);
  return hlo::lgamma(x);
}

// The logarithm of the multivariate gamma function:
//   mvlgamma(x, p) = p (p - 1) / 4 log(pi) + sum over j < p of lgamma(x - j / 2)
//   x    real; integers give the default dtype
//   p    >= 1, part of the program: its length grows with p
// NaN gives NaN; +-inf, and an x that reaches a pole of lgamma within the sum, gives inf.
Value mvlgamma(Value x, int64_t p) {
  require_not_complex("arange_cpu", x);  // the CPU kernel's first step
  Value sum = hlo::lgamma(x);
  for (int64_t j = 1; j < p; ++j) sum = sum + hlo::lgamma(x - 0.5 * static_cast<double>(j));
  return sum + 0.25 * static_cast<double>(p * (p - 1)) * std::log(pi);
}

// At 0 an infinity of the other sign than 0's; NaN at the negative integers.
Value psi(Value x) {
  require_not_complex("digamma", x);
  return select(x == 0, copysign(scalar(x, INFINITY), -x), hlo::digamma(x));
}

// sum over k >= 0 of (q + k)^-x. chlo's is for q > 0: below, the terms up to there are added one by
// one (as on CPU; a q beyond -1e5 is left undefined). A pole at q = 0, -1, ..; other q < 0 need a
// whole x. NaN below x = 1.
Value hurwitz_zeta(Value x, Value q) {
  std::tie(x, q) = broadcast(x, q);
  const Value whole_x = x == floor(x), negative = q <= 0;
  const Value walks = negative & (q != floor(q)) & whole_x & (q > -1e5);
  const Values shifted = hlo::while_(
      {select(walks, q, ones_like(q)), zeros_like(q)},
      [](const Values& v) { return any(flatten(v[0] < 0), {0}); },
      [&](const Values& v) -> Values {
        const Value go = v[0] < 0;
        return {select(go, v[0] + 1, v[0]), select(go, v[1] + power(v[0], -x), v[1])};
      });
  const Value tail = hlo::zeta(x, select(walks, shifted[0], q)) + shifted[1];
  const Value pole = negative & (q == floor(q)) & (x > 1);
  const Value undefined = (x < 1) | (negative & (q != floor(q)) & ~walks);
  return select(pole, full_like(q, INFINITY), select(undefined, nan_like(q), tail));
}

// psi'(x) = zeta(2, x); below 1/2 by reflection: pi^2 / sin^2(pi x) - psi'(1 - x).
Value trigamma(Value x) {
  const Value reflected = x < 0.5, s = sine(pi * x);
  const Value z = hlo::zeta(full_like(x, 2), select(reflected, 1.0 - x, x));
  return select(reflected, pi * pi / (s * s) - z, z);
}

// The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, x).
Value polygamma(int64_t n, Value x) {
  require_not_complex("polygamma", x);
  if (n == 0) return psi(x);
  if (n == 1) return trigamma(x);
  const double factor = (n % 2 ? 1 : -1) * std::tgamma(static_cast<double>(n) + 1);
  return factor * hurwitz_zeta(full_like(x, static_cast<double>(n) + 1), x);
}

// The regularized incomplete gamma functions (P, Q), P + Q = 1, in double: the common factor e^(a
// log x - x - lgamma(a)) cancels. x < max(1, a): the power series of P; otherwise Lentz's continued
// fraction of Q.
std::pair<Value, Value> incomplete_gamma(Value a0, Value x0) {
  auto [a, x] = broadcast(convert(a0, DType::f64), convert(x0, DType::f64));
  hlo::Builder& b = a.builder();
  const Value by_series = x <= maximum(a, 1);
  const Value one = ones_like(x), two = full_like(x, 2);
  const Value ordinary = (a > 0) & (x > 0) & is_finite(a) & is_finite(x);
  const Value step = hlo::constant(b, DType::f64, 0);
  constexpr double kEps = 1.2e-16, kTiny = 1e-300;
  constexpr double kSteps = 2000;

  const Value sa = select(by_series & ordinary, a, one), sx = select(by_series & ordinary, x, one);
  // k, x^k / (a + 1) .. (a + k), their sum
  const Values series = hlo::while_(
      {step, one, one},
      [&](const Values& v) {
        return (v[0] < kSteps) & any(flatten(abs(v[1]) > kEps * abs(v[2])), {0});
      },
      [&](const Values& v) -> Values {
        const Value k = v[0] + 1, term = v[1] * sx / (sa + k);
        return {k, term, v[2] + term};
      });

  const Value fa = select(~by_series & ordinary, a, one),
              fx = select(~by_series & ordinary, x, two);
  const Value start = one / (fx + 1 - fa);
  const auto away = [&](Value v) { return select(abs(v) < kTiny, full_like(v, kTiny), v); };
  // i, c, d, h, the last factor
  const Values fraction = hlo::while_(
      {step, full_like(x, 1 / kTiny), start, start, two},
      [&](const Values& v) { return (v[0] < kSteps) & any(flatten(abs(v[4] - 1) > kEps), {0}); },
      [&](const Values& v) -> Values {
        const Value i = v[0] + 1, an = -i * (i - fa), bn = fx + 1 - fa + 2 * i;
        const Value d = 1.0 / away(an * v[2] + bn), c = away(bn + an / v[1]);
        return {i, c, d, v[3] * d * c, d * c};
      });

  const auto factor = [](Value p, Value q) { return exp(p * log(q) - q - hlo::lgamma(p)); };
  const Value lower = factor(sa, sx) * series[2] / sa, upper = factor(fa, fx) * fraction[3];
  Value p = select(by_series, lower, 1.0 - upper), q = select(by_series, 1.0 - lower, upper);
  // The edges: P(0, x) = P(a, inf) = 1, P(a, 0) = P(inf, x) = 0.
  const Value full = (a == 0) | (x == INFINITY), none = (x == 0) | (a == INFINITY);
  const Value zero = zeros_like(x), nan = full_like(x, NAN);
  p = select(full, one, select(none, zero, p));
  q = select(full, zero, select(none, one, q));
  const Value undefined = (a < 0) | (x < 0) | is_nan(a) | is_nan(x) | (full & none);
  return {convert(select(undefined, nan, p), a0.dtype()),
          convert(select(undefined, nan, q), a0.dtype())};
}

Value igamma(Value a, Value x) {
  require_floating("igamma_cpu", a);
  return incomplete_gamma(a, x).first;
}
Value igammac(Value a, Value x) {
  require_floating("igammac_cpu", a);
  return incomplete_gamma(a, x).second;
}

// ---- error function
// --------------------------------------------------------------------------------------------
Value erfinv(Value x) {
  require_not_complex("erfinv_vml_cpu", x);
  return hlo::erf_inv(x);
}

// e^(x^2) erfc(x);  a series in (x - 3.75) / (x + 3.75) for x >= 0, and 2 e^(x^2) - erfcx(-x)
// below.
Value erfcx(Value x) {
  const Value y = minimum(abs(x), 1e30);
  const Value right = evaluate(tables::kErfcx, (y - 3.75) / (y + 3.75)) / (1.0 + 2.0 * y);
  const Value scaled = select(x == INFINITY, zeros_like(x), right);
  return select(is_nan(x), x, select(x < 0, 2.0 * exp(x * x) - right, scaled));
}

// log of the normal distribution's lower tail, by erfcx where that is small.
Value log_ndtr(Value x) {
  const Value t = x * (std::numbers::sqrt2 / 2);
  const Value tail = log(erfcx(-t) / 2) - t * t;
  return select(x < -1, tail, log_plus_one(hlo::erfc(t) / -2));
}

// The normal quantile: Abramowitz and Stegun 26.2.23 (4.5e-4), then Newton's steps on log_ndtr(x) =
// log(p), which double the digits, in the lower half.
Value ndtri(Value p) {
  const Value upper = p > 0.5, q = select(upper, 1.0 - p, p);
  const Value log_q = log(q), t = sqrt(-2.0 * log_q);
  Value x = (2.515517 + t * (0.802853 + t * 0.010328)) /
                (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
            t;
  for (int i = 0; i < 3; ++i) {
    const Value l = log_ndtr(x);
    const Value slope = exp(-0.5 * x * x - 0.5 * std::log(2 * pi) - l);
    x = x - (l - log_q) / slope;
  }
  x = select(upper, -x, x);
  const Value inf = full_like(p, INFINITY);
  return select(p == 0, -inf, select(p == 1, inf, select((p > 0) & (p < 1), x, full_like(p, NAN))));
}

// ---- elementary
// ------------------------------------------------------------------------------------------------
// sin(pi x) / (pi x)
Value sinc(Value x) {
  const Value y = x * pi;
  return select(x == 0, ones_like(x), sine(y) / y);
}

// -x log(x); 0 at 0, -inf below.
Value entr(Value x) {
  const Value y =
      select(x > 0, -x * log(x), select(x == 0, zeros_like(x), full_like(x, -INFINITY)));
  return select(is_nan(x), x, y);
}

Value xlog1py(Value x, Value y) {
  require_not_complex("xlog1py_cpu", x);
  return select(is_nan(y), y, select(x == 0, zeros_like(x), x * log_plus_one(y)));
}

// The next number of the dtype itself: not through f32.
Value nextafter(Context& ctx, Arg a, Arg b) {
  const DType t = result_type({a, b}, ctx.default_dtype);
  const auto [x, y] = broadcast(convert(as_value(a), t), convert(as_value(b), t));
  require_floating("nextafter_cpu", x);
  return hlo::next_after(x, y);
}

}  // namespace

void register_special(Registry& r) {
  const Promote floating = Promote::to_floating;
  r.pointwise("aten::lgamma", floating, 1, log_gamma);
  r.pointwise("aten::mvlgamma", floating, 1, mvlgamma);
  r.pointwise("aten::digamma", floating, 1, psi);
  r.add("aten::polygamma", [](Context& ctx, int64_t n, Value x) {
    const DType t = to_floating(x.dtype(), ctx.default_dtype);
    return convert(polygamma(n, convert(x, hlo::accumulate_type(t))), t);
  });
  r.pointwise("aten::igamma", Promote::arithmetic, 2, igamma);
  r.pointwise("aten::igammac", Promote::arithmetic, 2, igammac);
  r.pointwise("aten::erfinv", floating, 1, erfinv);
  r.pointwise("aten::special_erfcx", floating, 1, erfcx);
  r.pointwise("aten::special_log_ndtr", floating, 1, log_ndtr);
  r.pointwise("aten::special_ndtri", floating, 1, ndtri);
  r.pointwise("aten::sinc", floating, 1, sinc);
  r.pointwise("aten::special_entr", floating, 1, entr);
  for (const char* overload : {"", ".self_scalar", ".other_scalar"}) {
    r.pointwise(std::string("aten::special_xlog1py") + overload, floating, 2, xlog1py);
    r.pointwise(std::string("aten::special_zeta") + overload, floating, 2, hurwitz_zeta);
  }
  r.add("aten::nextafter", nextafter);
}

}  // namespace torch_tpu::lower
