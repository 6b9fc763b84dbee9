// SPDX-License-Identifier: Apache-2.0
#include "lower/scan.h"

#include <cmath>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

namespace torch_tpu::lower {
namespace {

using hlo::Combine;

constexpr int64_t kShort = 16;

Values slices(const Values& xs, int64_t dim, int64_t start, int64_t limit) {
  Values out;
  for (Value x : xs) out.push_back(slice_in_dim(x, dim, start, limit));
  return out;
}

// Each of `first` followed by the same of `second` along `dim`.
Values joined(const Values& first, const Values& second, int64_t dim) {
  Values out;
  for (size_t i = 0; i < first.size(); ++i)
    out.push_back(hlo::concatenate({first[i], second[i]}, dim));
  return out;
}

// log2(n) steps over whole rows: after step s each element holds the combination of the 2^s
// elements that end at it.
Values scan_by_doubling(Values xs, int64_t dim, const Combine& combine) {
  const int64_t n = xs[0].dim(dim);
  for (int64_t shift = 1; shift < n; shift *= 2) {
    xs = joined(slices(xs, dim, 0, shift),
                combine(slices(xs, dim, 0, n - shift), slices(xs, dim, shift, n)), dim);
  }
  return xs;
}

// A loop over dimension 0: n steps, each on all the rest at once.
Values scan_by_loop(const Values& xs, const Combine& combine) {
  hlo::Builder& b = xs[0].builder();
  const size_t count = xs.size();
  const Dims dims = xs[0].dims();
  Dims row = dims;
  row[0] = 1;
  auto at = [&](Value k) {
    Values starts(dims.size(), hlo::constant(b, DType::s32, 0));
    starts[0] = k;
    return starts;
  };
  // carried: k, the arrays, the results so far, the last row of the results
  Values carried{hlo::constant(b, DType::s32, 1)};
  carried.insert(carried.end(), xs.begin(), xs.end());
  carried.insert(carried.end(), xs.begin(), xs.end());
  for (Value x : slices(xs, 0, 0, 1)) carried.push_back(x);
  Values out = hlo::while_(
      carried,
      [&](const Values& v) {
        return compare(v[0], hlo::constant(b, DType::s32, dims[0]), hlo::Compare::lt);
      },
      [&](const Values& v) {
        Values next = v, rows;
        for (size_t i = 0; i < count; ++i)
          rows.push_back(hlo::dynamic_slice(v[1 + i], at(v[0]), row));
        Values y = combine(Values(v.end() - count, v.end()), rows);
        for (size_t i = 0; i < count; ++i) {
          next[1 + count + i] = hlo::dynamic_update_slice(v[1 + count + i], y[i], at(v[0]));
          next[1 + 2 * count + i] = y[i];
        }
        next[0] = v[0] + hlo::constant(b, DType::s32, 1);
        return next;
      });
  return Values(out.begin() + 1 + count, out.begin() + 1 + 2 * count);
}

// Each row of n as `blocks` rows of `size`, the position within a block as dimension 0 and the rest
// as it was: [size, .., blocks, ..]. What pads the last block is never read.
Value cut(Value x, int64_t dim, int64_t blocks, int64_t size) {
  Dims none(x.rank(), 0), high(x.rank(), 0), dims = x.dims();
  high[dim] = blocks * size - x.dim(dim);
  dims[dim] = size;
  dims.insert(dims.begin() + dim, blocks);
  Dims order = all_dims(x.rank() + 1);
  order.erase(order.begin() + dim + 1);
  order.insert(order.begin(), dim + 1);
  return transpose(
      reshape(hlo::pad(x, hlo::constant(x.builder(), x.dtype(), 0), none, high, none), dims),
      order);
}
Value uncut(Value y, int64_t dim, int64_t n) {
  Dims order = all_dims(y.rank());
  order.erase(order.begin());
  order.insert(order.begin() + dim + 1, 0);
  Value x = transpose(y, order);
  Dims dims = x.dims();
  dims[dim] *= dims[dim + 1];
  dims.erase(dims.begin() + dim + 1);
  return slice_in_dim(reshape(x, dims), dim, 0, n);
}

}  // namespace

// Rows longer than a few elements are cut into about sqrt(n) blocks. A loop goes over the places
// within a block, all blocks and rows at once; the blocks' totals are scanned in the same way, and
// each block but the first continues from the total before it. Measured on XLA:CPU against doubling
// of whole rows for cumsum of 1024 x 1024: see the commit.
Values associative_scan(const Values& xs, int64_t dim, const Combine& combine) {
  const int64_t n = xs[0].dim(dim);
  if (xs[0].numel() == 0) return xs;
  if (n <= kShort) return scan_by_doubling(xs, dim, combine);

  auto size = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
  const int64_t blocks = (n + size - 1) / size;
  Values blocked;
  for (Value x : xs) blocked.push_back(cut(x, dim, blocks, size));
  blocked = scan_by_loop(blocked, combine);

  const int64_t at = dim + 1;  // where the blocks stand
  Values totals =
      associative_scan(slices(slices(blocked, 0, size - 1, size), at, 0, blocks - 1), at, combine);
  Values rest = slices(blocked, at, 1, blocks);
  for (size_t i = 0; i < totals.size(); ++i)
    totals[i] = hlo::broadcast_to(totals[i], rest[i].dims());
  blocked = joined(slices(blocked, at, 0, 1), combine(totals, rest), at);

  Values out;
  for (Value y : blocked) out.push_back(uncut(y, dim, n));
  return out;
}

Value cumulative_sum(Value x, int64_t dim) {
  return associative_scan(
      {x}, dim, [](const Values& l, const Values& r) { return Values{add(l[0], r[0])}; })[0];
}
Value cumulative_max(Value x, int64_t dim) {
  return associative_scan({x}, dim, [](const Values& l, const Values& r) {
    return Values{hlo::maximum(l[0], r[0])};
  })[0];
}

namespace {

// bool and integers in int64, unless `dtype` says otherwise.
DType scan_type(Value x, std::optional<DType> dtype) {
  if (dtype) return *dtype;
  return hlo::is_integral(x.dtype()) || x.dtype() == DType::pred ? DType::s64 : x.dtype();
}

using Prefix = std::function<Value(Value, int64_t)>;

// x scanned along `dim` in f32 for 16-bit floats, rounded once at the end. Rank 0: x itself.
Value scanned(Value x, int64_t dim, DType out, const Prefix& prefix) {
  dim = wrap(dim, x.rank());
  Value z = convert(x, out);
  if (x.rank() == 0) return z;
  return convert(prefix(convert(z, hlo::accumulate_type(out)), dim), out);
}

// out_i = self_0 + .. + self_i along `dim`, in `dtype` (default: self's, int64 for bool and
// integers). Sums are taken as a tree: floating results differ from CPU's by rounding, and a pair
// that overflows only together does so here.
Value cumsum(Value self, int64_t dim, std::optional<DType> dtype) {
  return scanned(self, dim, scan_type(self, dtype), cumulative_sum);
}

// out_i = self_0 * .. * self_i along `dim`; dtypes and rounding as cumsum.
Value cumprod(Value self, int64_t dim, std::optional<DType> dtype) {
  return scanned(self, dim, scan_type(self, dtype), [](Value x, int64_t d) {
    return associative_scan(
        {x}, d, [](const Values& l, const Values& r) { return Values{multiply(l[0], r[0])}; })[0];
  });
}

// (best so far, where it was first reached last): of equal values the later index; a NaN wins over
// all, a later one over it.
std::pair<Value, Value> cumulative_best(Value self, int64_t dim, hlo::Compare no_worse) {
  dim = wrap(dim, self.rank());
  hlo::Builder& b = self.builder();
  if (self.rank() == 0) return {self, hlo::constant(b, DType::s64, 0)};
  const DType t = self.dim(dim) > INT32_MAX ? DType::s64 : DType::s32;
  Value x = self.dtype() == DType::pred ? convert(self, DType::u8) : self;
  Values out = associative_scan(
      {x, hlo::iota(b, {t, self.dims()}, dim)}, dim, [&](const Values& l, const Values& r) {
        Value later = or_(is_nan(r[0]), and_(not_(is_nan(l[0])), compare(r[0], l[0], no_worse)));
        return Values{select(later, r[0], l[0]), select(later, r[1], l[1])};
      });
  return {convert(out[0], self.dtype()), convert(out[1], DType::s64)};
}
std::pair<Value, Value> cummax(Value self, int64_t dim) {
  return cumulative_best(self, dim, hlo::Compare::ge);
}
std::pair<Value, Value> cummin(Value self, int64_t dim) {
  return cumulative_best(self, dim, hlo::Compare::le);
}

// Complex: log(e^l + e^r) = m + log(e^(l - m) + e^(r - m)), m the part with the greater real part.
// As on CPU angles are not brought back to (-pi, pi]; they are combined in a tree, so some differ
// from CPU's by 2 pi. A real part of -inf counts nothing; a NaN makes both parts NaN.
Value complex_log_add_exp(Value l, Value r) {
  Value a = hlo::real(l), b = hlo::real(r), p = hlo::imag(l), q = hlo::imag(r);
  Value left = compare(a, b, hlo::Compare::ge);
  Value high = select(left, a, b), low = select(left, b, a);
  Value angle = select(left, p, q), other = select(left, q, p);
  // Over the greater: 1 + e^(low - high) e^(i (other - angle)).
  Value ratio = hlo::exp(low - high), turn = other - angle;
  Value re = 1.0 + ratio * hlo::cosine(turn), im = ratio * hlo::sine(turn);
  Value length = hlo::log(hlo::abs(hlo::complex(re, im))), total = angle + hlo::atan2(im, re);
  // Nothing is added to -inf, and infinities on both sides have no ratio.
  Value alone = compare(low, hlo::lowest(low.builder(), low.dtype()), hlo::Compare::eq);
  Value infinite = is_inf(high) | alone;
  Value x = select(infinite, high, high + length), y = select(infinite, angle, total);
  Value bad = is_nan(a) | is_nan(b) | is_nan(p) | is_nan(q), nan = nan_like(x);
  return hlo::complex(select(bad, nan, x), select(bad, nan, y));
}

// out_i = log(exp(self_0) + .. + exp(self_i)) along `dim`. Floating or complex. -inf counts
// nothing, +inf and NaN stay.
Value logcumsumexp(Value self, int64_t dim) {
  require_inexact("logcumsumexp_out_cpu", self);
  if (hlo::is_complex(self.dtype())) {
    return scanned(self, dim, self.dtype(), [](Value x, int64_t d) {
      return associative_scan({x}, d, [](const Values& l, const Values& r) {
        return Values{complex_log_add_exp(l[0], r[0])};
      })[0];
    });
  }
  return scanned(self, dim, self.dtype(), [](Value x, int64_t d) {
    return associative_scan({x}, d, [](const Values& l, const Values& r) {
      Value left = compare(
          l[0], r[0], hlo::Compare::ge);  // false for a NaN on either side; the sum is NaN then
      Value high = select(left, l[0], r[0]), low = select(left, r[0], l[0]);
      // Where both are the same infinity low - high is NaN; the answer is that infinity.
      Value sum = high + log_plus_one(hlo::exp(low - high));
      return Values{select(and_(is_inf(high), not_(is_nan(low))), high, sum)};
    })[0];
  });
}

}  // namespace

void register_scan(Registry& r) {
  r.add("aten::cumsum", cumsum);
  r.add("aten::cumprod", cumprod);
  r.add("aten::cummax", cummax);
  r.add("aten::cummin", cummin);
  r.add("aten::logcumsumexp", logcumsumexp);
  r.alias("aten::_logcumsumexp", "aten::logcumsumexp");
}

}  // namespace torch_tpu::lower
