// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/random.h"
#include "lower/registry.h"
#include "lower/require.h"

// Draws from the gamma and Dirichlet distributions, and how a draw moves with its parameter while
// its place among the quantiles stays: dx/da = -(dF(x; a)/da) / (dF(x; a)/dx), F the distribution
// function. Expansions of F are differentiated term by term, in double.
namespace torch_tpu::lower {
namespace {

using hlo::ones_like;
using hlo::select;
using hlo::zeros_like;

// ---- draws
// -----------------------------------------------------------------------------------------------------

// A draw with density x^(alpha - 1) e^-x / Gamma(alpha) is value * e^boost, f32 or f64.
struct GammaDraw {
  Value value;
  Value boost;  // log(u) / alpha where alpha < 1, which is beyond the dtype where alpha is small
};

// Marsaglia and Tsang's rejection (2000) for alpha >= 1, the value being d (1 + s)^3 of a normal s;
// below, a draw for alpha + 1 times u^(1 / alpha). inf gives inf; NaN and alpha < 0 give NaN.
GammaDraw gamma_draw(Context& ctx, Value alpha) {
  const DType t = alpha.dtype();
  const Dims dims = alpha.dims();
  const Value ordinary = (alpha >= 0) & is_finite(alpha), small = alpha < 1;
  const Value shape = select(ordinary, select(small, alpha + 1, alpha), ones_like(alpha));
  const Value d = shape - 1.0 / 3, c = 1.0 / sqrt(9.0 * d);
  // More than 19 of 20 candidates are taken: no draw needs a hundred.
  constexpr double kMostRounds = 100;
  const Value s = hlo::while_(
      {fresh_stream(ctx), zeros_like(d), ~ordinary, scalar(d, 0)},
      [&](const Values& v) { return not_(hlo::all(v[2], all_dims(d))) & (v[3] < kMostRounds); },
      [&](const Values& carried) -> Values {
        Value stream = carried[0];
        const Value x = next_normal(stream, t, dims), u = next_open_unit(stream, t, dims);
        const Value s = c * x;
        // d (1 - v + log v), v = (1 + s)^3, with little cancelled where d is large
        const Value excess =
            3.0 * d * (log_plus_one(maximum(s, -1 + 1e-6)) - s * (1.0 + s * (1.0 + s / 3)));
        const Value taken = ~carried[2] & (s > -1 + 1e-6) & (log(u) < 0.5 * x * x + excess);
        return {stream, select(taken, s, carried[1]), carried[2] | taken, carried[3] + 1};
      })[1];
  const Value v = 1.0 + s;
  const Value u = random_open_unit(ctx, t, dims);
  const Value exponent = log(u) / select(small & ordinary, alpha, scalar(alpha, 1));
  const Value boost = select(small & ordinary, maximum(exponent, -1e30), scalar(alpha, 0));
  const Value edge = select(alpha == INFINITY, alpha, full_like(alpha, NAN));
  return {select(ordinary, d * v * v * v, edge), boost};
}

// What CPU draws nothing below: the least normal number.
double least(DType t) {
  return t == DType::f64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}

// A draw of Gamma(self[i], rate 1), in self's dtype (f32 or f64), at least its least normal number.
Value standard_gamma(Context& ctx, Value self, Ignored) {
  require_single_or_double("gamma_cpu", self);
  if (self.numel() == 0) return self;
  const GammaDraw g = gamma_draw(ctx, self);
  return maximum(g.value * exp(g.boost), least(self.dtype()));
}

// A draw of Dirichlet(self[.., :]), f32 or f64: gamma draws over their sum, within (0, 1). Draws
// that are all beyond the dtype (alpha 1e-3) keep their ratios, which their boosts know.
Value sample_dirichlet(Context& ctx, Value self, Ignored) {
  require_single_or_double("dirichlet", self);
  if (self.numel() == 0) return self;
  const Dims row = wrap(-1, self);
  const GammaDraw g = gamma_draw(ctx, self);
  const Value e = g.value * exp(g.boost - hlo::max(g.boost, row, hlo::keep_dims));
  const Value share = e / sum(e, row, hlo::keep_dims);
  const double below_one = self.dtype() == DType::f64 ? 1 - 0x1p-53 : 1 - 0x1p-24;
  return minimum(maximum(share, least(self.dtype())), below_one);
}

// ---- derivatives
// -----------------------------------------------------------------------------------------------

constexpr double kEps = 1e-15, kTiny = 1e-300, kSteps = 3000;

Value away_from_zero(Value v) { return select(abs(v) < kTiny, full_like(v, kTiny), v); }

// A continued fraction by Lentz's method, with the logarithm's derivative: `value` and `slope`
// after each factor. d and c are Lentz's running denominators.
struct Fraction {
  Value d, d_slope, c, c_slope, value, slope, last;

  static constexpr size_t kParts = 7;
  Values parts() const { return {d, d_slope, c, c_slope, value, slope, last}; }
  static Fraction of(const Values& v, size_t at) {
    return {v[at], v[at + 1], v[at + 2], v[at + 3], v[at + 4], v[at + 5], v[at + 6]};
  }

  // The next partial quotient a / (b + ..), and how a and b move.
  Fraction next(Value a, Value a_slope, Value b, Value b_slope) const {
    Fraction f;
    const Value below = away_from_zero(a * d + b);
    f.d = 1.0 / below;
    f.d_slope = -(a_slope * d + a * d_slope + b_slope) * f.d * f.d;
    f.c = away_from_zero(b + a / c);
    f.c_slope = b_slope + (a_slope - a * c_slope / c) / c;
    const Value factor = f.c * f.d, turn = f.d_slope / f.d + f.c_slope / f.c;
    f.value = value * factor;
    f.slope = slope + turn;
    f.last = hlo::maximum(abs(factor - 1), abs(turn) / maximum(abs(f.slope), 1e-6));
    return f;
  }
};

Value unfinished(Value step, Value last, double eps) {
  return (step < kSteps) & hlo::any(flatten(last > eps), {0});
}

// dx/da for x a draw of Gamma(a). With P the distribution function, p its density:
//
//   x <= max(1, a): P / p = x S / a, S = sum over k of x^k / ((a + 1) .. (a + k)), which gives
//     -(x / a) (S (log x - psi(a + 1)) + S')
//
//   x above: (1 - P) / p = x H, H the continued fraction of Q, which gives
//     x H (log x - psi(a) + (log H)')
//
//   a > 1e4, within 20 deviations: the Cornish-Fisher expansion x(z, a) at constant z, where these
//     need thousands of terms
//
// 0 at x = 0. NaN for a <= 0, NaN, inf.
Value gamma_draw_slope(Value a0, Value x0) {
  auto [a, x] = broadcast(convert(a0, DType::f64), convert(x0, DType::f64));
  hlo::Builder& b = a.builder();
  const Value one = ones_like(a), zero = zeros_like(a), step = hlo::constant(b, DType::f64, 0);
  const Value ordinary = (a > 0) & (x > 0) & is_finite(a) & is_finite(x);
  const Value root = sqrt(select(ordinary, a, one)), w = (x - a) / root;
  const Value large = ordinary & (a > 1e4) & (abs(w) < 20);
  const Value by_series = ordinary & ~large & (x <= maximum(a, 1)),
              by_fraction = ordinary & ~large & (x > maximum(a, 1));

  // k, the term, its derivative's factor -sum 1 / (a + j), S, S'
  const Value sa = select(by_series, a, one), sx = select(by_series, x, scalar(x, 1e-3));
  const Values series = hlo::while_(
      {step, one, zero, one, zero},
      [&](const Values& v) {
        return (v[0] < kSteps) & hlo::any(flatten(v[1] * maximum(abs(v[2]), 1) > kEps * v[3]), {0});
      },
      [&](const Values& v) -> Values {
        const Value k = v[0] + 1, term = v[1] * sx / (sa + k), slope = v[2] - 1.0 / (sa + k);
        return {k, term, slope, v[3] + term, v[4] + term * slope};
      });
  const Value below = -(sx / sa) * (series[3] * (log(sx) - hlo::digamma(sa + 1)) + series[4]);

  const Value fa = select(by_fraction, a, one), fx = select(by_fraction, x, scalar(x, 100));
  const Value start = 1.0 / (fx + 1 - fa);
  const Fraction first{start, start * start, full_like(x, 1 / kTiny), zero, start, start, one};
  Values carried = first.parts();
  carried.push_back(step);
  carried = hlo::while_(
      carried, [&](const Values& v) { return unfinished(v[7], v[6], kEps); },
      [&](const Values& v) -> Values {
        const Value i = v[7] + 1, i_all = broadcast_to(i, fa.dims());
        Values out =
            Fraction::of(v, 0).next(-i * (i - fa), i_all, fx + 1 - fa + 2.0 * i_all, -one).parts();
        out.push_back(i);
        return out;
      });
  const Fraction f = Fraction::of(carried, 0);
  const Value above = fx * f.value * (log(fx) - hlo::digamma(fa) + f.slope);

  const Value z = w - (w * w - 1) / (3.0 * root) + (7.0 * w * w * w - w) / (36.0 * root * root);
  const Value far = 1.0 + z / (2.0 * root) - (z * z * z - 7.0 * z) / (72.0 * root * root * root);

  const Value unknown = select((x == 0) & (a > 0), zero, full_like(x, NAN));
  return convert(select(large, far, select(by_series, below, select(by_fraction, above, unknown))),
                 a0.dtype());
}

// What the gradient of a Dirichlet draw needs: for x a draw of Beta(a, b), b = total - a,
//   -(dI(x; a, b)/da) / (p (1 - x)),   I the distribution function, p its density.
// With C the continued fraction of I, I / p = x (1 - x) C / a:
//   x < (a + 1) / (a + b + 2)   -(x / a) C (log x - 1 / a - psi(a) + psi(a + b) + (log C)')
//   x above, by 1 - I(1 - x; b, a)   (x / b) C (log x - psi(a) + psi(a + b) + (log C)')
// 0 at x = 0. NaN outside [0, 1], for a or b <= 0, NaN, inf.
Value beta_draw_slope(Value x0, Value a0, Value total0) {
  const Dims dims = hlo::broadcast_dims(hlo::broadcast_dims(x0.dims(), a0.dims()), total0.dims());
  const auto wide = [&](Value v) { return broadcast_to(convert(v, DType::f64), dims); };
  const Value x = wide(x0), total = wide(total0), a1 = wide(a0), b1 = total - a1;
  const Value ordinary = (a1 > 0) & (b1 > 0) & is_finite(total) & (x > 0) & (x <= 1);
  const Value one = ones_like(x), zero = zeros_like(x);
  const Value a = select(ordinary, a1, one), b = select(ordinary, b1, one),
              inside = select(ordinary, x, scalar(x, 0.01));
  const Value flipped = inside >= (a + 1) / (a + b + 2);
  // The fraction's own parameters, and how each moves with a.
  const Value p = select(flipped, b, a), q = select(flipped, a, b),
              y = select(flipped, 1.0 - inside, inside);
  const Value p_slope = select(flipped, zero, one), q_slope = 1.0 - p_slope;

  const Value up = 1.0 - (p + q) * y / (p + 1);
  const Value up_slope = -y / (p + 1) * (1.0 - p_slope * (p + q) / (p + 1));
  const Value start = 1.0 / up, start_slope = -up_slope * start * start;
  const Fraction first{start, start_slope, one, zero, start, -up_slope * start, one};
  Values carried = first.parts();
  carried.push_back(hlo::constant(x.builder(), DType::f64, 0));
  carried = hlo::while_(
      carried, [&](const Values& v) { return unfinished(v[7], v[6], kEps); },
      [&](const Values& v) -> Values {
        const Value m = v[7] + 1;
        const Value low = p + 2.0 * broadcast_to(m, p.dims()) - 1, mid = low + 1, high = low + 2;
        const Value even = m * (q - m) * y / (low * mid);
        const Value even_slope =
            q_slope * m * y / (low * mid) - p_slope * even * (1.0 / low + 1.0 / mid);
        const Value odd = -(p + m) * (p + q + m) * y / (mid * high);
        const Value odd_slope = odd * (p_slope * (1.0 / (p + m) - 1.0 / mid - 1.0 / high) +
                                       1.0 / (p + q + m));  // p + q moves by 1 either way
        const Fraction half = Fraction::of(v, 0).next(even, even_slope, one, zero);
        Fraction f = half.next(odd, odd_slope, one, zero);
        f.last = hlo::maximum(half.last, f.last);
        Values out = f.parts();
        out.push_back(m);
        return out;
      });
  const Fraction f = Fraction::of(carried, 0);
  const Value common = log(inside) - hlo::digamma(a) + hlo::digamma(a + b) + f.slope;
  const Value slope =
      select(flipped, inside / b * f.value * common, -(inside / a) * f.value * (common - 1.0 / a));
  const Value unknown = select((x == 0) & (a1 > 0) & (b1 > 0), zero, full_like(x, NAN));
  return convert(select(ordinary, slope, unknown), x0.dtype());
}

Value standard_gamma_grad(Value self, Value output) {
  require_single_or_double("_standard_gamma_grad_cpu", self);
  require_dtype(self.dtype(), output);
  return gamma_draw_slope(self, output);
}
Value dirichlet_grad(Value x, Value alpha, Value total) {
  require_single_or_double("_dirichlet_grad_cpu", x);
  require_dtype(x.dtype(), alpha);
  require_dtype(x.dtype(), total);
  return beta_draw_slope(x, alpha, total);
}

}  // namespace

void register_gamma(Registry& r) {
  r.add_random("aten::_standard_gamma", standard_gamma);
  r.add_random("aten::_sample_dirichlet", sample_dirichlet);
  r.add("aten::_standard_gamma_grad", standard_gamma_grad);
  r.add("aten::_dirichlet_grad", dirichlet_grad);
}

}  // namespace torch_tpu::lower
