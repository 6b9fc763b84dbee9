// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"
#include "lower/rows.h"
#include "lower/scan.h"
#include "lower/sort.h"

// Unique elements, counts and histograms: what can be said in static shapes. A result whose size
// depends on the values comes at its largest size with the number of entries that count;
// aten/dynamic cuts it.
namespace torch_tpu::lower {
namespace {

using hlo::Compare;

Value s64(Value i) { return convert(i, DType::s64); }
Value zeros(Context& ctx, DType t, const Dims& dims) {
  return hlo::full(ctx.builder, {t, dims}, 0);
}

// From rows in an order that puts equal ones together: which rows begin a group, and where each row
// came from (null: in place). Returns (rows of x, first one of each group, along `dim`; the group
// of each row of x; the groups' sizes; their number).
Values grouped(Value x, int64_t dim, Value begins, Value place) {
  const int64_t n = x.dim(dim);
  hlo::Builder& b = x.builder();
  Value group = cumulative_sum(convert(begins, DType::s32), 0) - hlo::constant(b, DType::s32, 1);
  Value first = true_positions(begins);  // then n where there are no more groups
  Value end =
      hlo::concatenate({slice_in_dim(first, 0, 1, n), hlo::full(b, {first.dtype(), {1}}, n)}, 0);
  Value row = hlo::minimum(first, scalar(first, static_cast<double>(n - 1)));
  if (place) {
    row = hlo::take(place, row);
    group = added_rows(n, place, group);  // place is a permutation
  }
  Value number = sum(convert(begins, DType::s64), {0});
  return {hlo::index_select(x, dim, row), s64(group), s64(end - first), number};
}

Value with_first(Value differs) {  // the first row always begins a group
  return hlo::concatenate({hlo::full(differs.builder(), {DType::pred, {1}}, 1), differs}, 0);
}

// Rows of x [n, m] that are not equal to the row before. A NaN differs from all.
Value group_begins(Value x) {
  const int64_t n = x.dim(0);
  Value differs = compare(slice_in_dim(x, 0, 1, n), slice_in_dim(x, 0, 0, n - 1), Compare::ne);
  return with_first(hlo::any(differs, {1}));
}

Values nothing(Context& ctx, Value x, int64_t dim) {
  Dims none = x.dims();
  none[dim] = 0;
  return {zeros(ctx, x.dtype(), none), zeros(ctx, DType::s64, {x.dim(dim)}),
          zeros(ctx, DType::s64, {0}), zeros(ctx, DType::s64, {})};
}

// x moved so that `dim` is first, the rest flattened.
Value as_matrix(Value x, int64_t dim) {
  Dims order = all_dims(x);
  order.erase(order.begin() + dim);
  order.insert(order.begin(), dim);
  return reshape(transpose(x, order), {x.dim(dim), x.dim(dim) == 0 ? 0 : x.numel() / x.dim(dim)});
}

// (unique elements of x, ascending, NaNs last and each for itself; which of them each x.flat is;
// how often each occurs; number)
Values unique(Context& ctx, Value self) {
  Value x = flatten(self);
  if (x.numel() == 0) return nothing(ctx, x, 0);
  auto [ordered, place] = sorted(x, 0, false);
  return grouped(x, 0, group_begins(reshape(ordered, {x.dim(0), 1})), place);
}

// The same for slices of x along `dim`, in lexicographic order: a stable sort by each column, last
// to first.
Values unique_dim(Context& ctx, Value self, int64_t dim) {
  const int64_t d = wrap(dim, self.rank());
  Value rows = as_matrix(self, d);
  const int64_t n = rows.dim(0), m = rows.dim(1);
  if (n == 0) return nothing(ctx, self, d);
  Value place = hlo::iota(ctx.builder, {DType::s32, {n}}, 0);
  if (m > 0) {
    place = hlo::while_(
        {hlo::constant(ctx.builder, DType::s32, m - 1), place, rows},
        [&](const Values& v) {
          return compare(v[0], hlo::constant(ctx.builder, DType::s32, 0), Compare::ge);
        },
        [&](const Values& v) {
          Value origin = hlo::constant(ctx.builder, DType::s32, 0);
          Value column = reshape(hlo::dynamic_slice(v[2], {origin, v[0]}, {n, 1}), {n});
          Value order = sorted(hlo::take(column, v[1]), 0, false).second;
          return Values{v[0] - hlo::constant(ctx.builder, DType::s32, 1),
                        hlo::take(v[1], convert(order, DType::s32)), v[2]};
        })[1];
  }
  return grouped(self, d, group_begins(hlo::index_select(rows, 0, place)), place);
}

// The same for neighbours only; of flat x, or of its slices along `dim`.
Values unique_consecutive(Context& ctx, Value self, std::optional<int64_t> dim) {
  Value x = dim ? self : flatten(self);
  const int64_t d = dim ? wrap(*dim, x.rank()) : 0;
  if (x.dim(d) == 0) return nothing(ctx, x, d);
  return grouped(x, d, group_begins(as_matrix(x, d)), Value());
}

// ---- counts
// ----------------------------------------------------------------------------------------------------

// How often each of 0 .. size-1 occurs in self [n], or the sum of its weights: s64, or the weights'
// dtype (f64 for integers).
Value bincount(Context& ctx, Value self, std::optional<Value> weights, int64_t size) {
  Value i = s64(self);
  const DType t = !weights ? DType::s64 : weights->dtype() == DType::f32 ? DType::f32 : DType::f64;
  if (i.numel() == 0) return zeros(ctx, weights ? t : DType::s64, {size});
  ctx.builder.check(hlo::any(compare(i, scalar(i, 0), Compare::lt), {0}),
                    "RuntimeError: bincount only supports 1-d non-negative integral inputs.");
  return added_rows(size, i,
                    weights ? convert(*weights, t) : hlo::full(ctx.builder, {t, i.dims()}, 1));
}

// Counts in `bins` equal intervals of [min, max], both ends included; elements outside, NaN too,
// count nowhere. min = max: the data's own range; if that is one point, one to each side.
//   self  floating, or an integer as on CUDA (mixtures of experts count int32 expert ids)
//   out   [bins] of its dtype
// Integers are counted in s64, bounds truncated to it: floor division has no rounding to get wrong.
Value histc(Context& ctx, Value self, int64_t bins, Value min, Value max) {
  const bool integral = hlo::is_integral(self.dtype());
  if (!integral) require_floating("histogram_cpu", self);
  if (bins <= 0)
    throw UserError("torch.histogram(): bins must be > 0, but got " + std::to_string(bins) +
                    " for dimension 0");
  const DType c = integral ? DType::s64 : hlo::accumulate_type(self.dtype());
  Value x = convert(flatten(self), c), low = convert(min, c), high = convert(max, c);
  ctx.builder.check(compare(low, high, Compare::gt),
                    "RuntimeError: torch.histc: max must be larger than min");
  if (x.numel() == 0) return zeros(ctx, self.dtype(), {bins});
  Value own = compare(low, high, Compare::eq);
  Value least = hlo::min(x, {0}), greatest = hlo::max(x, {0});
  low = select(own, least, low);
  high = select(own, greatest, high);
  if (!integral)
    ctx.builder.check(not_(and_(is_finite(low), is_finite(high))),
                      "RuntimeError: torch.histc: range is not finite");
  Value point = compare(low, high, Compare::eq);
  low = select(point, low - 1.0, low);
  high = select(point, high + 1.0, high);

  Value inside = and_(compare(x, low, Compare::ge), compare(x, high, Compare::le));
  Value place = (x - low) * static_cast<double>(bins) / (high - low);
  Value at = convert(integral ? place : hlo::floor(place), DType::s32);
  at = select(inside, hlo::minimum(at, scalar(at, static_cast<double>(bins - 1))), scalar(at, 0));
  return convert(added_rows(bins, at, convert(inside, c)), self.dtype());
}

}  // namespace

void register_unique(Registry& r) {
  r.add("tpu::unique", unique);
  r.add("tpu::unique_dim", unique_dim);
  r.add("tpu::unique_consecutive", unique_consecutive);
  r.add("tpu::bincount", bincount);
  r.add("aten::histc", histc);
}

}  // namespace torch_tpu::lower
