// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/attribute.h"
#include "hlo/ops.h"

namespace torch_tpu::hlo {
namespace {

Value reduce_by(std::string_view op, Value x, Value init, const Dims& dims, Keep keep,
                Value (*combine)(Value, Value)) {
  const Dims d = wrap_dims(op, dims, x);
  if (d.empty()) return x;
  Value y = reduce({x}, {init}, d, [combine](const Values& a, const Values& b) {
    return Values{combine(a[0], b[0])};
  })[0];
  if (keep == drop_dims) return y;
  Dims kept = x.dims();
  for (int64_t i : d) kept[i] = 1;
  return reshape(y, kept);
}

void require_pred(std::string_view op, Value x) {
  if (x.dtype() != DType::pred) fail(op, {x}, "pred is needed");
}

}  // namespace

Values reduce(const Values& xs, const Values& inits, const Dims& dims, const Combine& combine) {
  if (xs.empty() || xs.size() != inits.size())
    throw Error("reduce: as many arrays as initial values are needed");
  const Dims d = wrap_dims("reduce", dims, xs.front());
  std::vector<Type> results, scalars;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].dims() != xs[0].dims()) fail("reduce", xs, "shapes differ");
    require_same_dtype("reduce", {xs[i], inits[i]});
    require_scalar("reduce", inits[i]);
    scalars.push_back({xs[i].dtype(), {}});
    Dims rest;
    for (int64_t j = 0; j < xs[i].rank(); ++j) {
      if (std::find(d.begin(), d.end(), j) == d.end()) rest.push_back(xs[i].dims()[j]);
    }
    results.push_back({xs[i].dtype(), rest});
  }
  if (d.empty()) return xs;
  Values operands = xs;
  operands.insert(operands.end(), inits.begin(), inits.end());
  Dims sorted = d;
  std::sort(sorted.begin(), sorted.end());
  return xs[0].builder().emit("stablehlo.reduce", operands, "dimensions = " + i64_array(sorted),
                              results,
                              {combine_region("reduce", xs[0].builder(), scalars, combine)});
}

Value prod(Value x, const Dims& dims, Keep keep) {
  return reduce_by("prod", x, constant(x.builder(), x.dtype(), 1), dims, keep, multiply);
}

namespace {

// The number of lanes for rows of n elements, 0 where lanes do not pay. A power of two: the lanes
// are combined by halves. XLA:CPU cuts a reduction of more than 32 elements into windows of 32 and
// pads the last one, which costs more than lanes save: where 32 does not divide n / 16, wider lanes
// keep each of them below that length.
constexpr int64_t kLanes = 16, kMostLanes = 64, kWindow = 32;
int64_t lanes_for(int64_t n) {
  if (n < 32) return 0;
  if (n < 8 * kLanes) return kLanes / 2;
  for (int64_t lanes = kLanes; lanes <= kMostLanes && n % lanes == 0; lanes *= 2) {
    const int64_t length = n / lanes;
    if (length <= kWindow || length % kWindow == 0) return lanes;
  }
  return kLanes;
}

// Long rows in lanes, for XLA:CPU: neither its NaN-keeping maximum nor a sum with something fused
// into it vectorises along a reduced dimension, but both do across a kept one (128 rows of 768: the
// maximum of each 505 us, in lanes 30; that of all 499, in lanes 56; layer norm 97, in lanes 62;
// 4096 rows of 64: softmax 896, in lanes 251). A sum in lanes also rounds less. The reduced
// dimensions must be the last ones: together they are the row. What is left of a row that lanes do
// not divide is reduced by itself. Null where it does not pay.
Value reduce_in_lanes(std::string_view op, Value x, Value init, const Dims& dims, Keep keep,
                      Value (*combine)(Value, Value)) {
  if (x.builder().target() != Target::cpu || !is_floating(x.dtype())) return {};
  const auto kept = static_cast<ptrdiff_t>(x.rank() - wrap_dims(op, dims, x).size());
  for (int64_t d : wrap_dims(op, dims, x)) {
    if (d < kept) return {};
  }
  Dims shape(x.dims().begin(), x.dims().begin() + kept);
  const Dims rows = shape;
  const int64_t n = numel(Dims(x.dims().begin() + kept, x.dims().end()));
  const int64_t lanes = lanes_for(n);
  if (lanes == 0) return {};
  const int64_t whole = n - n % lanes;
  shape.push_back(n);
  const Value row = reshape(x, shape);
  shape.back() = whole / lanes;
  shape.push_back(lanes);
  Value y = reduce_by(op, reshape(slice_in_dim(row, kept, 0, whole), shape), init, {kept},
                      drop_dims, combine);
  // Not by a second reduce: XLA would merge it with the first again.
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    y = combine(slice_in_dim(y, kept, 0, half), slice_in_dim(y, kept, half, 2 * half));
  y = reshape(y, rows);
  if (whole < n) {
    const Value rest = slice_in_dim(row, kept, whole, n);
    y = combine(y, reduce_by(op, rest, init, {kept}, drop_dims, combine));
  }
  if (keep == drop_dims) return y;
  Dims ones = x.dims();
  std::fill(ones.begin() + kept, ones.end(), 1);
  return reshape(y, ones);
}

Value reduce_rows(std::string_view op, Value x, Value init, const Dims& dims, Keep keep,
                  Value (*combine)(Value, Value)) {
  if (const Value lanes = reduce_in_lanes(op, x, init, dims, keep, combine)) return lanes;
  return reduce_by(op, x, init, dims, keep, combine);
}

// One instruction of the processor: `maximum` takes five, one after the other, which the maximum of
// a row waits for (softmax of 128 rows of 768: 85 us with it, 59 so).
Value larger(Value x, Value y) { return select(x > y, x, y); }

}  // namespace

Value sum(Value x, const Dims& dims, Keep keep) {
  return reduce_rows("sum", x, constant(x.builder(), x.dtype(), 0), dims, keep, add);
}

Value max(Value x, const Dims& dims, Keep keep) {
  return reduce_rows("max", x, lowest(x.builder(), x.dtype()), dims, keep, maximum);
}

Value max_unless_nan(Value x, const Dims& dims, Keep keep) {
  if (x.builder().target() != Target::cpu || !is_floating(x.dtype())) return max(x, dims, keep);
  return reduce_rows("max", x, lowest(x.builder(), x.dtype()), dims, keep, larger);
}

Value min(Value x, const Dims& dims, Keep keep) {
  return reduce_rows("min", x, highest(x.builder(), x.dtype()), dims, keep, minimum);
}

Value any(Value x, const Dims& dims, Keep keep) {
  require_pred("any", x);
  return reduce_by("any", x, constant(x.builder(), DType::pred, false), dims, keep, or_);
}

Value all(Value x, const Dims& dims, Keep keep) {
  require_pred("all", x);
  return reduce_by("all", x, constant(x.builder(), DType::pred, true), dims, keep, and_);
}

Values sort(const Values& xs, int64_t dim, bool is_stable, const Less& less) {
  if (xs.empty()) throw Error("sort: no operands");
  Builder& b = xs[0].builder();
  std::vector<Type> results, pairs;
  for (const Value& x : xs) {
    if (x.dims() != xs[0].dims()) fail("sort", xs, "shapes differ");
    results.push_back(x.type());
    pairs.insert(pairs.end(), 2, Type{x.dtype(), {}});
  }
  if (xs[0].rank() == 0) return xs;
  const int64_t d = wrap_dim("sort", dim, xs[0]);
  const std::string body = b.region(pairs, [&](const Values& args) {
    Values left, right;
    for (size_t i = 0; i < args.size(); i += 2) {
      left.push_back(args[i]);
      right.push_back(args[i + 1]);
    }
    Value p = less(left, right);
    if (p.type() != Type{DType::pred, {}})
      fail("sort", {p}, "the comparator must give a rank-0 pred");
    return Values{p};
  });
  return b.emit(
      "stablehlo.sort", xs,
      "dimension = " + std::to_string(d) + " : i64, is_stable = " + (is_stable ? "true" : "false"),
      results, {body});
}

}  // namespace torch_tpu::hlo
