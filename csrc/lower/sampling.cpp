// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/random.h"
#include "lower/registry.h"
#include "lower/require.h"
#include "lower/scan.h"
#include "lower/sort.h"

// Draws whose result is an index or a count: multinomial, randperm, poisson, binomial.
namespace torch_tpu::lower {
namespace {

using hlo::Compare;

// The first place of the greatest element of each row of x [r, m]: s32 [r, 1].
Value argmax_rows(Value x) {
  const int64_t m = x.dim(1);
  Value best = hlo::max(x, {1}, hlo::keep_dims);
  Value i = hlo::iota(x.builder(), {DType::s32, x.dims()}, 1);
  i = select(compare(x, hlo::broadcast_to(best, x.dims()), Compare::eq), i,
             scalar(i, static_cast<double>(m - 1)));
  return hlo::min(i, {1}, hlo::keep_dims);
}

// num_samples indices of each row, index j with probability self[j] / sum_j self[j]: s64
// [num_samples] or [r, num_samples].
//   self  [m] or [r, m], floating, non-negative, each row with a positive sum
// Without replacement: an exponential race, the least E_j / self_j first, which draws each next
// index from those left. With it: the place of a uniform number among the running sums. Either way
// an index of probability 0 is not drawn.
Value multinomial(Context& ctx, Value self, int64_t num_samples, bool replacement, Ignored) {
  require_floating("multinomial", self);
  const int64_t m = self.dim(-1), rows = self.rank() == 1 ? 1 : self.dim(0);
  Dims out{rows, num_samples};
  if (self.rank() == 1) out = {num_samples};
  if (rows == 0 || num_samples == 0 || m == 0) return hlo::full(ctx.builder, {DType::s64, out}, 0);
  const DType c = random_type(self.dtype());
  Value p = reshape(convert(self, c), {rows, m});

  Value valid = and_(is_finite(p), compare(p, hlo::zeros_like(p), Compare::ge));
  ctx.builder.check(not_(hlo::all(valid, {0, 1})),
                    "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0");
  Value positive = compare(p, hlo::zeros_like(p), Compare::gt);
  Value support = sum(convert(positive, DType::s32), {1});
  ctx.builder.check(hlo::any(compare(support, scalar(support, 0), Compare::eq), {0}),
                    "RuntimeError: invalid multinomial distribution (sum of probabilities <= 0)");

  if (!replacement || num_samples == 1) {
    if (!replacement) {
      ctx.builder.check(
          hlo::any(compare(support, scalar(support, static_cast<double>(num_samples)), Compare::lt),
                   {0}),
          "RuntimeError: invalid multinomial distribution (with replacement=False, not enough "
          "non-negative category to sample)");
    }
    Value race = p / -hlo::log(random_open_unit(ctx, c, {rows, m}));
    Value drawn;
    if (num_samples == 1) {
      drawn = argmax_rows(race);
    } else if (c == DType::f32) {
      drawn = hlo::top_k(race, num_samples).second;
    } else {
      drawn = slice_in_dim(sorted(race, 1, true).second, 1, 0, num_samples);
    }
    return reshape(convert(drawn, DType::s64), out);
  }

  Value sums = cumulative_sum(p, 1);
  Value total = slice_in_dim(sums, 1, m - 1, m);
  Value u =
      random_unit(ctx, c, {rows, num_samples}) * hlo::broadcast_to(total, {rows, num_samples});
  Value place = search(sums, u, true);
  Value i = hlo::iota(ctx.builder, {place.dtype(), {rows, m}}, 1);
  Value last = hlo::max(select(positive, i, hlo::zeros_like(i)), {1},
                        hlo::keep_dims);  // u may round up to the total
  return reshape(convert(hlo::minimum(place, hlo::broadcast_to(last, place.dims())), DType::s64),
                 out);
}

// 0 .. n-1 in random order: sorted by 64-bit random keys.
Value randperm_of(Context& ctx, int64_t n, std::optional<DType> dtype) {
  const DType t = n > INT32_MAX ? DType::s64 : DType::s32;
  Value i = hlo::iota(ctx.builder, {t, {n}}, 0);
  if (n > 1) {
    Value key = random_bits(ctx, DType::u64, {n});
    i = hlo::sort({key, i}, 0, false, [](const Values& l, const Values& r) {
      return compare(l[0], r[0], Compare::lt);
    })[1];
  }
  return convert(i, dtype.value_or(DType::s64));
}
Value randperm(Context& ctx, int64_t n, std::optional<DType> dtype, Ignored, Ignored, Ignored) {
  return randperm_of(ctx, n, dtype);
}
Value randperm_generator(Context& ctx, int64_t n, Ignored, std::optional<DType> dtype, Ignored,
                         Ignored, Ignored) {
  return randperm_of(ctx, n, dtype);
}

Value none_left(Value done) { return not_(hlo::all(done, all_dims(done))); }

// Knuth's method for small rates: the number of uniform factors whose product stays above
// exp(-rate).
Value poisson_by_product(Value state, Value rate) {
  Value zero = hlo::zeros_like(rate);
  auto out = hlo::while_(
      {state, zero, zero},
      [&](const Values& v) { return hlo::any(compare(v[2], -rate, Compare::gt), all_dims(rate)); },
      [&](const Values& v) {
        Value s = v[0];
        Value log_product = v[2] + hlo::log(next_open_unit(s, DType::f32, rate.dims()));
        Value count = v[1] + convert(compare(log_product, -rate, Compare::gt), DType::f32);
        return Values{s, count, log_product};
      });
  return out[1];
}

// Hoermann's transformed rejection (PTRS, 1993) for rates of at least 10.
Value poisson_by_rejection(Value state, Value rate) {
  Value b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  Value inv_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2.0),
        log_rate = hlo::log(rate);
  Value zero = hlo::zeros_like(rate);
  Value undone = compare(zero, zero, Compare::ne);
  auto out = hlo::while_(
      {state, zero, undone}, [&](const Values& v) { return none_left(v[2]); },
      [&](const Values& carried) {
        Value s = carried[0];
        Value u = next_open_unit(s, DType::f32, rate.dims()) - 0.5,
              v = next_open_unit(s, DType::f32, rate.dims());
        Value us = 0.5 - hlo::abs(u);
        Value k = hlo::floor((2.0 * a / us + b) * u + rate + 0.43);
        Value quick = and_(us >= 0.07, compare(v, v_r, Compare::le));
        Value outside = or_(k < 0.0, and_(us < 0.013, compare(v, us, Compare::gt)));
        Value exact = compare(hlo::log(v * inv_alpha / (a / (us * us) + b)),
                              k * log_rate - rate - hlo::lgamma(k + 1.0), Compare::le);
        Value accept = and_(not_(carried[2]), or_(quick, and_(not_(outside), exact)));
        return Values{s, select(accept, k, carried[1]), or_(carried[2], accept)};
      });
  return out[1];
}

// Poisson counts with rate self[i], in self's dtype (floating).
Value poisson(Context& ctx, Value self, Ignored) {
  require_floating("poisson_cpu", self);
  if (self.numel() == 0) return self;
  Value rate = convert(self, DType::f32);
  Value valid = rate >= 0.0;  // NaN is not
  ctx.builder.check(not_(hlo::all(valid, all_dims(valid))),
                    "RuntimeError: invalid Poisson rate, expected rate to be non-negative");
  Value small = rate < 10.0, large = and_(not_(small), hlo::is_finite(rate));
  Value some = fresh_stream(ctx), other = fresh_stream(ctx);
  // The places that go the other way are given what ends soon.
  Value few = poisson_by_product(some, select(and_(small, valid), rate, scalar(rate, 0)));
  Value many = poisson_by_rejection(other, select(large, rate, scalar(rate, 10)));
  many = select(large, many, rate);  // infinite
  return convert(select(small, few, many), self.dtype());
}

// log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2, for whole k >= 0: exact
// to f64's rounding up to 9, by three terms beyond (7e-11).
Value stirling_rest(Value k) {
  std::vector<double> exact;
  for (int i = 0; i < 10; ++i) {
    exact.push_back(std::lgamma(i + 1.0) - (i + 0.5) * std::log(i + 1.0) + (i + 1.0) -
                    0.5 * std::log(2 * std::numbers::pi));
  }
  Value first = hlo::take(hlo::literal(k.builder(), k.dtype(), exact),
                          convert(hlo::clamp(scalar(k, 0), k, scalar(k, 9)), DType::s32));
  Value n = maximum(k + 1.0, 1), square = n * n;
  return select(k < 10.0, first, (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / n);
}

constexpr double kMostRounds = 1000;  // far beyond what any draw needs: a loop that NaN cannot hold

// Counts of successes for n p < 10, p <= 1/2: how many waits for the next success, geometric with
// probability p, fit into n trials.
Value binomial_by_waiting(Value stream, Value n, Value p) {
  Value zero = hlo::zeros_like(n), log_failure = log_plus_one(-p);
  return hlo::while_(
      {stream, zero, zero, scalar(n, 0)},
      [&](const Values& v) {
        return and_(hlo::any(compare(v[2], n, Compare::le), all_dims(n)), v[3] < kMostRounds);
      },
      [&](const Values& v) {
        Value s = v[0];
        Value wait = hlo::ceil(hlo::log(next_open_unit(s, n.dtype(), n.dims())) / log_failure);
        Value trials = v[2] + wait;
        Value count = v[1] + convert(compare(trials, n, Compare::le), n.dtype());
        return Values{s, count, trials, v[3] + 1.0};
      })[1];
}

// Hoermann's transformed rejection (BTRS, 1993) for n p >= 10, p <= 1/2.
Value binomial_by_rejection(Value stream, Value n, Value p) {
  Value spread = sqrt(n * p * (1.0 - p)), odds = p / (1.0 - p), mode = hlo::floor((n + 1.0) * p);
  Value b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  Value v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spread;
  Value at_mode = (mode + 0.5) * hlo::log((mode + 1.0) / (odds * (n - mode + 1.0))) +
                  stirling_rest(mode) + stirling_rest(n - mode);
  Value zero = hlo::zeros_like(n), undone = compare(zero, zero, Compare::ne);
  return hlo::while_(
      {stream, zero, undone, scalar(n, 0)},
      [&](const Values& v) { return and_(none_left(v[2]), v[3] < kMostRounds); },
      [&](const Values& carried) {
        Value s = carried[0];
        Value u = next_open_unit(s, n.dtype(), n.dims()) - 0.5,
              v = next_open_unit(s, n.dtype(), n.dims());
        Value us = 0.5 - hlo::abs(u);
        Value k = hlo::floor((2.0 * a / us + b) * u + n * p + 0.5);
        Value inside = and_(k >= 0.0, compare(k, n, Compare::le));
        Value quick = and_(us >= 0.07, compare(v, v_r, Compare::le));
        Value other = n - k + 1.0;
        Value bound = at_mode + (n + 1.0) * hlo::log((n - mode + 1.0) / other) +
                      (k + 0.5) * hlo::log(odds * other / (k + 1.0)) - stirling_rest(k) -
                      stirling_rest(n - k);
        Value exact = compare(hlo::log(v * alpha / (a / (us * us) + b)), bound, Compare::le);
        Value accept = and_(not_(carried[2]), and_(inside, or_(quick, exact)));
        return Values{s, select(accept, k, carried[1]), or_(carried[2], accept), carried[3] + 1.0};
      })[1];
}

// The number of successes among count[i] trials that succeed with probability prob[i], in count's
// dtype (f32 or f64); the two broadcast. 0 for a count or a probability of 0 and below, count for a
// probability of 1 and above; NaN, and an infinite count, give NaN.
Value binomial(Context& ctx, Value count, Value prob, Ignored) {
  require_single_or_double("binomial_cpu", count);
  require_dtype(count.dtype(), prob);
  auto [n, p] = hlo::broadcast(count, prob);
  if (n.numel() == 0) return n;
  Value none = or_(n <= 0.0, p <= 0.0), all = p >= 1.0;
  Value upper = p > 0.5, q = select(upper, 1.0 - p, p);
  Value ordinary = and_(not_(or_(none, all)), and_(hlo::is_finite(n), not_(hlo::is_nan(p))));
  Value rare = n * q < 10.0;
  Value by_waiting = and_(ordinary, rare), by_rejection = and_(ordinary, not_(rare));
  Value some = fresh_stream(ctx), other = fresh_stream(ctx);
  // The places that go the other way are given what ends at once.
  Value few = binomial_by_waiting(some, select(by_waiting, n, scalar(n, -1)),
                                  select(by_waiting, q, scalar(q, 0.5)));
  Value many = binomial_by_rejection(other, select(by_rejection, n, scalar(n, 40)),
                                     select(by_rejection, q, scalar(q, 0.5)));
  Value drawn = select(rare, few, many);
  drawn = select(upper, n - drawn, drawn);
  Value edge = select(none, hlo::zeros_like(n), n);
  Value known = or_(none, and_(all, not_(hlo::is_nan(n))));
  return select(ordinary, drawn, select(known, edge, nan_like(n)));
}

}  // namespace

void register_sampling(Registry& r) {
  r.add_random("aten::multinomial", multinomial);
  r.add_random("aten::randperm", randperm);
  r.add_random("aten::randperm.generator", randperm_generator);
  r.add_random("aten::poisson", poisson);
  r.add_random("aten::binomial", binomial);
}

}  // namespace torch_tpu::lower
