// SPDX-License-Identifier: Apache-2.0
#include "lower/sort.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"
#include "lower/scan.h"

namespace torch_tpu::lower {
namespace {

DType position_type(int64_t n) { return n > INT32_MAX ? DType::s64 : DType::s32; }

// less(l, r) in PyTorch's order, by one comparison and one test for NaN.
hlo::Less order(bool floating, bool descending) {
  return [=](const Values& l, const Values& r) {
    if (!floating) return compare(l[0], r[0], descending ? hlo::Compare::gt : hlo::Compare::lt);
    return descending ? and_(not_(compare(l[0], r[0], hlo::Compare::le)),
                             compare(r[0], r[0], hlo::Compare::eq))
                      : and_(not_(compare(l[0], r[0], hlo::Compare::ge)),
                             compare(l[0], l[0], hlo::Compare::eq));
  };
}

}  // namespace

std::pair<Value, Value> sorted(Value x, int64_t dim, bool descending) {
  require_not_complex("sort_stable", x);
  Value key = x.dtype() == DType::pred ? convert(x, DType::u8) : x;
  Value place = hlo::iota(x.builder(), {position_type(x.dim(dim)), x.dims()}, dim);
  if (x.numel() == 0) return {x, place};
  Values out = hlo::sort({key, place}, dim, true, order(hlo::is_floating(x.dtype()), descending));
  return {convert(out[0], x.dtype()), out[1]};
}

Value search(Value row, Value values, bool right) {
  hlo::Builder& b = row.builder();
  const int64_t n = row.dim(-1);
  const DType t = position_type(row.numel());
  Value low = hlo::full(b, {t, values.dims()}, 0), high = hlo::full(b, {t, values.dims()}, n);
  if (n == 0 || values.numel() == 0) return low;
  Value first = low;  // of the value's own row in row.flat
  if (row.rank() > 1) {
    const int64_t rows = row.numel() / n, each = values.numel() / rows;
    Value r = hlo::iota(b, {t, {rows, each}}, 0);
    first = reshape(r * hlo::full_like(r, static_cast<double>(n)), values.dims());
  }
  Value one = hlo::constant(b, t, 1), last = hlo::constant(b, t, n - 1);
  for (int step = std::bit_width(static_cast<uint64_t>(n)); step > 0; --step) {
    Value open = compare(low, high, hlo::Compare::lt);
    Value middle = shift_right_logical(low + high, hlo::broadcast_to(one, low.dims()));
    Value x = hlo::take(row, first + hlo::minimum(middle, last));
    Value stop = compare(x, values, right ? hlo::Compare::gt : hlo::Compare::ge);
    low = select(and_(open, not_(stop)), middle + one, low);
    high = select(and_(open, stop), middle, high);
  }
  return low;
}

namespace {

Value index64(Value i) { return convert(i, DType::s64); }
Value zero64(Value like) { return hlo::constant(like.builder(), DType::s64, 0); }

// Rank 0 as a row of one element.
Value as_rows(Value x) { return x.rank() == 0 ? reshape(x, {1}) : x; }

// ---- sort, topk, order statistics
// ------------------------------------------------------------------------------

// (self in order along `dim`, where each element was: s64). Always stable. Rank 0: (self, 0).
std::pair<Value, Value> sort(Value self, int64_t dim, bool descending) {
  Value x = as_rows(self);
  auto [values, place] = sorted(x, wrap(dim, x.rank()), descending);
  return {reshape(values, self.dims()), reshape(index64(place), self.dims())};
}
std::pair<Value, Value> sort_stable(Value self, std::optional<bool> stable, int64_t dim,
                                    bool descending) {
  (void)stable;
  return sort(self, dim, descending);
}

// The k greatest (or least) along `dim`, best first; NaN counts as the greatest. (values, s64
// indices); `sorted` or not, they are.
std::pair<Value, Value> topk(Value self, int64_t k, int64_t dim, bool largest, bool in_order) {
  (void)in_order;
  Value x = as_rows(self);
  const int64_t d = wrap(dim, x.rank());
  if (k < 0 || k > x.dim(d)) throw UserError("selected index k out of range");
  if (self.rank() == 0) return {self, zero64(self)};  // whether k is 0 or 1
  Dims out = x.dims();
  out[d] = k;
  if (hlo::numel(out) == 0) {
    return {hlo::full(x.builder(), {x.dtype(), out}, 0),
            hlo::full(x.builder(), {DType::s64, out}, 0)};
  }
  Value values, place;
  if (largest && x.dtype() == DType::f32 && d == x.rank() - 1) {
    // The plugin's own selection compares bits: a NaN with the sign bit set would come last.
    std::tie(values, place) = hlo::top_k(select(is_nan(x), nan_like(x), x), k);
  } else {
    std::tie(values, place) = sorted(x, d, largest);
    values = slice_in_dim(values, d, 0, k);
    place = slice_in_dim(place, d, 0, k);
  }
  return {reshape(values, out), reshape(index64(place), out)};
}

// Drops `dim` (size 1) unless keepdim, from both.
std::pair<Value, Value> reduced(Value values, Value place, int64_t dim, bool keepdim) {
  if (keepdim) return {values, index64(place)};
  return {squeeze(values, {dim}), index64(squeeze(place, {dim}))};
}

// The k-th least along `dim` (k from 1; NaN greatest) and where it is.
std::pair<Value, Value> kthvalue(Value self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t d = wrap(dim, self.rank());
  const int64_t n = self.rank() == 0 ? 1 : self.dim(d);
  if (k < 1 || k > n)
    throw UserError("kthvalue(): selected number k out of range for dimension " +
                    std::to_string(d));
  if (self.rank() == 0) return {self, zero64(self)};
  auto [values, place] = sorted(self, d, false);
  return reduced(slice_in_dim(values, d, k - 1, k), slice_in_dim(place, d, k - 1, k), d, keepdim);
}

void expect_elements(const std::string& name, Value x, int64_t dim) {
  if (x.dim(dim) > 0) return;
  throw UserError(
      name + "(): Expected reduction dim " + std::to_string(dim) + " to have non-zero size.",
      UserError::Kind::index);
}

// x's element at position k of each row (k keeps `dim` with size 1).
Value pick(Value x, Value k, int64_t dim) {
  Value at = hlo::iota(x.builder(), {k.dtype(), x.dims()}, dim);
  return sum(
      select(compare(at, hlo::broadcast_to(k, x.dims()), hlo::Compare::eq), x, hlo::zeros_like(x)),
      {dim}, hlo::keep_dims);
}

// The lower median along `dim` and where it is. A row with a NaN gives NaN and its first place.
std::pair<Value, Value> median_dim(Value self, int64_t dim, bool keepdim) {
  const int64_t d = wrap(dim, self.rank());
  if (self.rank() == 0) return {self, zero64(self)};
  const int64_t n = self.dim(d);
  expect_elements("median", self, d);
  const int64_t k = (n - 1) / 2;
  auto [values, place] = sorted(self, d, false);
  Value v = slice_in_dim(values, d, k, k + 1), at = slice_in_dim(place, d, k, k + 1);
  if (hlo::is_floating(self.dtype())) {
    Value nan = is_nan(self), i = hlo::iota(self.builder(), {place.dtype(), self.dims()}, d);
    Value first =
        hlo::min(select(nan, i, hlo::full_like(i, static_cast<double>(n))), {d}, hlo::keep_dims);
    Value has = compare(first, hlo::full_like(first, static_cast<double>(n)), hlo::Compare::lt);
    v = select(has, nan_like(self), v);
    at = select(has, first, at);
  }
  return reduced(v, at, d, keepdim);
}

// The lower median of what is not NaN along `dim`; NaN and the first place where all are.
std::pair<Value, Value> nanmedian_dim(Value self, int64_t dim, bool keepdim) {
  if (!hlo::is_floating(self.dtype())) return median_dim(self, dim, keepdim);
  const int64_t d = wrap(dim, self.rank());
  if (self.rank() == 0) return {self, zero64(self)};
  expect_elements("median", self, d);
  auto [values, place] = sorted(self, d, false);
  Value count = sum(convert(not_(is_nan(self)), place.dtype()), {d}, hlo::keep_dims);
  Value one = scalar(count, 1),
        k = hlo::divide(hlo::maximum(count - one, scalar(count, 0)), scalar(count, 2));
  return reduced(pick(values, k, d), pick(place, k, d), d, keepdim);
}

// Median of all elements, rank 0; of none: NaN.
Value median_of_all(Value self, std::pair<Value, Value> (*along)(Value, int64_t, bool)) {
  if (self.numel() == 0) {
    return hlo::constant(
        self.builder(), self.dtype(),
        hlo::is_floating(self.dtype()) ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  }
  return along(flatten(self), 0, false).first;
}
Value median(Value self) { return median_of_all(self, median_dim); }
Value nanmedian(Value self) { return median_of_all(self, nanmedian_dim); }

// Whether each element of an ordered row differs from the one before it; true at the first.
Value run_starts(Value x, int64_t dim) {
  const int64_t n = x.dim(dim);
  Dims one = x.dims();
  one[dim] = 1;
  Value first = hlo::full(x.builder(), {DType::pred, one}, 1);
  if (n <= 1) return first;
  Value differs =
      compare(slice_in_dim(x, dim, 1, n), slice_in_dim(x, dim, 0, n - 1), hlo::Compare::ne);
  return hlo::concatenate({first, differs}, dim);
}

// The value that occurs most often along `dim`, of several the least, and the last place where it
// occurs. Each NaN is a value of its own and the greatest (CPU's order of NaNs is that of an
// unlucky sort).
std::pair<Value, Value> mode(Value self, int64_t dim, bool keepdim) {
  const int64_t d = wrap(dim, self.rank());
  if (self.rank() == 0) return {self, zero64(self)};
  expect_elements("mode", self, d);
  const int64_t n = self.dim(d);
  if (self.numel() == 0) {
    Dims out = reduced_sizes(self.dims(), {d}, keepdim);
    return {hlo::full(self.builder(), {self.dtype(), out}, 0),
            hlo::full(self.builder(), {DType::s64, out}, 0)};
  }
  auto [values, place] = sorted(self, d, false);
  // length_i = i - start of i's run + 1: greatest first at the end of the first longest run
  Value i = hlo::iota(self.builder(), {place.dtype(), self.dims()}, d), zero = scalar(i, 0);
  Value start = cumulative_max(select(run_starts(values, d), i, zero), d);
  Value length = i - start;
  Value longest = hlo::max(length, {d}, hlo::keep_dims);
  Value end =
      hlo::min(select(compare(length, hlo::broadcast_to(longest, length.dims()), hlo::Compare::eq),
                      i, scalar(i, static_cast<double>(n))),
               {d}, hlo::keep_dims);
  return reduced(pick(values, end, d), pick(place, end, d), d, keepdim);
}

// ---- search
// ----------------------------------------------------------------------------------------------------

Value place_type(Value i, bool out_int32) {
  return convert(i, out_int32 ? DType::s32 : DType::s64);
}

// PyTorch's refusals of values that are not rows beside the sorted ones.
void require_rows(Value sorted, Value x) {
  if (x.rank() == 0 && sorted.rank() != 1)
    throw UserError(
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension "
        "is 1, but we got boundaries tensor dim(" +
        std::to_string(sorted.rank()) + ") and input value's dim(0) numel(1)");
  if (sorted.rank() == 0)
    throw UserError(
        "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
        "dimension");
  const bool rows = sorted.rank() == x.rank() &&
                    std::equal(x.dims().begin(), x.dims().end() - 1, sorted.dims().begin());
  if (sorted.rank() != 1 && !rows)
    throw UserError(
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions "
        "of boundaries tensor and input value tensor must match, but we got boundaries tensor " +
        hlo::str(sorted.dims()) + " and input value tensor " + hlo::str(x.dims()));
}

// Where each value would be inserted into the sorted row (see `search`); `sorter` orders the row
// first.
Value searchsorted(Context& ctx, Value sorted_sequence, Arg self, bool out_int32, bool right,
                   std::optional<std::string> side, std::optional<Value> sorter) {
  if (side && *side != "left" && *side != "right") {
    throw UserError("torch.searchsorted(): side can only be 'left' or 'right' but got " + *side);
  }
  if (side && right && *side == "left") {
    throw UserError(
        "torch.searchsorted(): side and right can't be set to opposites, got side of left while "
        "right was True");
  }
  require_rows(sorted_sequence, as_value(self));
  Value row = sorted_sequence;
  if (sorter) {
    Value order = convert(*sorter, DType::s64);
    const int64_t n = row.dim(-1), rows = n == 0 ? 0 : row.numel() / n;
    Value first = hlo::iota(ctx.builder, {DType::s64, {rows, n}}, 0);
    first = reshape(first * hlo::full_like(first, static_cast<double>(n)), row.dims());
    row = hlo::take(row, first + order);
  }
  const DType t = result_type({row, self}, ctx.default_dtype);
  return place_type(
      search(convert(row, t), convert(as_value(self), t), right || (side && *side == "right")),
      out_int32);
}
Value bucketize(Context& ctx, Arg self, Value boundaries, bool out_int32, bool right) {
  return searchsorted(ctx, boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

// Whether each element is among test_elements (not, with `invert`). NaN is among none.
Value isin(Context& ctx, Arg elements, Arg test_elements, bool assume_unique, bool invert) {
  (void)assume_unique;
  constexpr int64_t kFew = 64;  // up to here comparing with each beats sorting
  const DType t = result_type({elements, test_elements}, ctx.default_dtype);
  Value x = convert(as_value(elements), t), among = flatten(convert(as_value(test_elements), t));
  const int64_t n = among.dim(0);
  Value found;
  if (n == 0) {
    found = hlo::full(ctx.builder, {DType::pred, x.dims()}, 0);
  } else if (n <= kFew || t == DType::pred) {
    Value wide = reshape(x, [&] {
      Dims d = x.dims();
      d.push_back(1);
      return d;
    }());
    found = hlo::any(compare(wide, among, hlo::Compare::eq), {x.rank()});
  } else {
    Value row = sorted(among, 0, false).first;
    // NaNs are last and never equal; for the search they must not look small.
    Value place = search(select(is_nan(row), hlo::highest(ctx.builder, t), row), x, false);
    found = compare(hlo::take(row, hlo::minimum(place, scalar(place, static_cast<double>(n - 1)))),
                    x, hlo::Compare::eq);
  }
  return invert ? not_(found) : found;
}

// Index i repeats[i] times, ascending: s64 [output_size], whose size must be their sum.
Value repeat_interleave(Context& ctx, Value repeats, std::optional<int64_t> output_size) {
  if (!output_size) {
    throw UserError("repeat_interleave without output_size has a data-dependent shape",
                    UserError::Kind::not_implemented);
  }
  Value counts = index64(repeats);
  ctx.builder.check(
      hlo::any(compare(counts, scalar(counts, 0), hlo::Compare::lt), all_dims(counts)),
      "RuntimeError: repeats can not be negative");
  Value total = sum(counts, all_dims(counts));
  ctx.builder.check(
      compare(total, scalar(total, static_cast<double>(*output_size)), hlo::Compare::ne),
      "RuntimeError: allocated size does not match required size");
  if (repeats.numel() == 0 || *output_size == 0)
    return hlo::full(ctx.builder, {DType::s64, {*output_size}}, 0);
  Value i = hlo::iota(ctx.builder, {DType::s64, {*output_size}}, 0);
  Value place = search(cumulative_sum(counts, 0), i, true);
  return index64(hlo::minimum(place, scalar(place, static_cast<double>(repeats.numel() - 1))));
}

}  // namespace

void register_sort(Registry& r) {
  r.add("aten::sort", sort);
  r.add("aten::sort.stable", sort_stable);
  r.add("aten::topk", topk);
  r.add("aten::kthvalue", kthvalue);
  r.add("aten::median", median);
  r.add("aten::median.dim", median_dim);
  r.add("aten::nanmedian", nanmedian);
  r.add("aten::nanmedian.dim", nanmedian_dim);
  r.add("aten::mode", mode);
  r.add("aten::searchsorted.Tensor", searchsorted);
  r.add("aten::searchsorted.Scalar", searchsorted);
  r.add("aten::bucketize.Tensor", bucketize);
  r.add("aten::bucketize.Scalar", bucketize);
  r.add("aten::isin.Tensor_Tensor", isin);
  r.add("aten::isin.Tensor_Scalar", isin);
  r.add("aten::isin.Scalar_Tensor", isin);
  r.add("aten::repeat_interleave.Tensor", repeat_interleave);
}

}  // namespace torch_tpu::lower
