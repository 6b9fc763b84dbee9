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

// Bags of rows of a table, each reduced to one row.
//   weight   [v, d]    indices  [n], s32 or s64: the bags' rows, one bag after the other
//   offsets  [b]: where each bag begins; with include_last_offset [b + 1], its last the end of the
//            last bag
// An index outside [0, v), and offsets that CPU refuses, are reported when the host next waits.
// Sums are in f32 for 16-bit weights. A row that is `padding_idx` counts nowhere.
namespace torch_tpu::lower {
namespace {

using hlo::convert;
using hlo::reshape;
using hlo::select;
using hlo::unsqueeze;

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

Values larger(const Values& a, const Values& b) { return {hlo::maximum(a[0], b[0])}; }
Values smaller(const Values& a, const Values& b) { return {hlo::minimum(a[0], b[0])}; }

// Index `none` in place of those that `keep` [n] refuses: what scatters drop.
Value only(Value keep, Value at, int64_t none) {
  return select(keep, at, scalar(at, static_cast<double>(none)));
}

// The bag of each index [n], in the indices' dtype; an index behind the last bag's end has bag b.
Value bags_of(Value indices, Value offsets, bool include_last_offset) {
  const int64_t n = indices.dim(0), b = offsets.dim(0) - include_last_offset;
  Value starts = hlo::slice_in_dim(offsets, 0, 0, b);
  Value bag = cumulative_sum(occurrences(starts, n), 0) - 1.0;
  if (include_last_offset) {
    Value end = reshape(hlo::slice_in_dim(offsets, 0, b, b + 1), {});
    Value i = hlo::iota(indices.builder(), {offsets.dtype(), {n}}, 0);
    bag = only(i < end, bag, b);
  }
  return convert(bag, indices.dtype());
}

void check_arguments(Context& ctx, Value weight, Value indices, Value offsets, int64_t mode) {
  const std::string rows = std::to_string(weight.dim(0));
  Value outside = (indices < 0) | (indices >= static_cast<double>(weight.dim(0)));
  if (weight.dim(0) == 0) {  // a 0 is wrong too
    ctx.builder.check(
        hlo::any(outside, {0}),
        "RuntimeError: Index 0 of input takes value 0 which is not in the valid range "
        "[0, 0)");
  } else if (mode == kMax) {
    ctx.builder.check(first_wrong(outside, indices),
                      "RuntimeError: embedding_bag: Expected idx >= 0 && idx < num_embeddings but "
                      "found idx to be {0}");
  } else {
    ctx.builder.check(first_wrong_and_place(outside, indices),
                      "RuntimeError: Index {1} of input takes value {0} which is not in the valid "
                      "range [0, " +
                          rows + ")");
  }
  if (offsets.dim(0) == 0) return;
  Value first = reshape(hlo::slice_in_dim(offsets, 0, 0, 1), {});
  Value last = reshape(hlo::slice_in_dim(offsets, 0, offsets.dim(0) - 1, offsets.dim(0)), {});
  ctx.builder.check(first_wrong(first != 0.0, first),
                    "RuntimeError: offsets[0] has to be 0, i.e., the first sequence in the "
                    "mini-batch has to start from position 0. However, got {0}");
  const std::string length = std::to_string(indices.dim(0));
  ctx.builder.check(first_wrong(last > static_cast<double>(indices.dim(0)), last),
                    "RuntimeError: offsets[-1] can not be greater than input's length " + length +
                        " but got offsets[-1] of {0}");
}

// out[k, :] = sum, mean or maximum of the rows of bag k; 0 for an empty bag.
//   per_sample_weights  [n], factors of the rows; sums only
// Results: out [b, d]; the bag of each index [n]; each bag's number of rows, in offsets' shape; of
// a maximum, the row that it is from [b, d] (the first of equals), else [0].
Values embedding_bag(Context& ctx, Value weight, Value indices, Value offsets, Ignored,
                     int64_t mode, Ignored /*sparse*/, std::optional<Value> per_sample_weights,
                     bool include_last_offset, int64_t padding_idx) {
  const int64_t n = indices.dim(0), b = offsets.dim(0) - include_last_offset, d = weight.dim(1);
  const DType acc = hlo::accumulate_type(weight.dtype()), index = indices.dtype();
  hlo::Builder& builder = ctx.builder;
  Value out = hlo::full(builder, {acc, {b, d}}, 0);
  Value sizes = hlo::full(builder, {index, offsets.dims()}, 0);
  Value from = hlo::full(builder, {index, mode == kMax ? Dims{b, d} : Dims{0}}, 0);
  if (n == 0 || b == 0 || weight.dim(0) == 0) {
    if (n > 0 && weight.dim(0) == 0) check_arguments(ctx, weight, indices, offsets, mode);
    return {convert(out, weight.dtype()), hlo::full(builder, {index, {n}}, 0), sizes, from};
  }
  check_arguments(ctx, weight, indices, offsets, mode);
  Value bag = bags_of(indices, offsets, include_last_offset);
  Value at = only(indices != static_cast<double>(padding_idx), bag, b);
  Value count = occurrences(at, b);
  Value filled = unsqueeze(count > 0, 1);
  Value rows = convert(hlo::index_select(weight, 0, indices), acc);
  if (per_sample_weights) rows = rows * unsqueeze(convert(*per_sample_weights, acc), 1);
  if (mode == kMax) {
    Value least = hlo::full_like(out, -std::numeric_limits<double>::infinity());
    Value most = combine_rows(least, at, rows, larger);
    // The place of each maximum: the first index whose row equals it.
    Value own = hlo::index_select(most, 0, hlo::minimum(bag, scalar(bag, b - 1.0)));
    Value place = hlo::iota(builder, {index, {n, d}}, 0);
    place = select(rows == own, place, scalar(place, n - 1.0));
    Value first = combine_rows(hlo::full(builder, {index, {b, d}}, n - 1.0), at, place, smaller);
    from = select(hlo::broadcast_to(filled, {b, d}), hlo::take(indices, first), from);
    out = select(hlo::broadcast_to(filled, {b, d}), most, out);
  } else {
    out = added_rows(b, at, rows);
    if (mode == kMean) out = out / unsqueeze(convert(maximum(count, 1), acc), 1);
  }
  count = convert(count, index);
  if (include_last_offset) count = hlo::pad(count, hlo::constant(builder, index, 0), {0}, {1}, {0});
  return {convert(out, weight.dtype()), bag, count, from};
}

// dweight [v, d] of the above; grad [b, d], and what it returned.
//   scale_grad_by_freq  each row's gradient is divided by the number of its occurrences
Value embedding_bag_dense_backward(Context& ctx, Value grad, Value indices, Value bag, Value sizes,
                                   Value from, int64_t num_weights, bool scale_grad_by_freq,
                                   int64_t mode, std::optional<Value> per_sample_weights,
                                   int64_t padding_idx) {
  const DType acc = hlo::accumulate_type(grad.dtype());
  const int64_t b = grad.dim(0), d = grad.dim(1), v = num_weights;
  hlo::Builder& builder = ctx.builder;
  Value g = convert(grad, acc);
  if (indices.dim(0) == 0 || b == 0 || v == 0 || d == 0)
    return hlo::full(builder, {grad.dtype(), {v, d}}, 0);
  if (mode == kMax) {
    Value filled = unsqueeze(hlo::slice_in_dim(sizes, 0, 0, b) > 0, 1);
    Value column = hlo::iota(builder, {from.dtype(), {b, d}}, 1);
    Value at =
        only(hlo::broadcast_to(filled, {b, d}), from * static_cast<double>(d) + column, v * d);
    Value flat = added_rows(v * d, hlo::flatten(at), hlo::flatten(g));
    return convert(reshape(flat, {v, d}), grad.dtype());
  }
  Value keep = (indices != static_cast<double>(padding_idx)) & (bag < static_cast<double>(b));
  if (mode == kMean)
    g = g / unsqueeze(convert(maximum(hlo::slice_in_dim(sizes, 0, 0, b), 1), acc), 1);
  Value updates = hlo::index_select(g, 0, hlo::minimum(bag, scalar(bag, b - 1.0)));
  if (per_sample_weights) updates = updates * unsqueeze(convert(*per_sample_weights, acc), 1);
  Value at = only(keep, indices, v);
  Value out = added_rows(v, at, updates);
  if (scale_grad_by_freq) out = out / unsqueeze(convert(maximum(occurrences(at, v), 1), acc), 1);
  return convert(out, grad.dtype());
}

Value embedding_bag_backward(Context& ctx, Value grad, Value indices, Ignored /*offsets*/,
                             Value bag, Value sizes, Value from, int64_t num_weights,
                             bool scale_grad_by_freq, int64_t mode, bool sparse,
                             std::optional<Value> per_sample_weights, int64_t padding_idx) {
  if (sparse)
    throw UserError("embedding_bag: sparse gradients are not implemented for tpu",
                    UserError::Kind::not_implemented);
  return embedding_bag_dense_backward(ctx, grad, indices, bag, sizes, from, num_weights,
                                      scale_grad_by_freq, mode, per_sample_weights, padding_idx);
}

// The gradient of per_sample_weights [n]: grad[bag_i] . weight[indices_i]; 0 for padding.
Value per_sample_weights_backward(Context& ctx, Value grad, Value weight, Value indices, Ignored,
                                  Value bag, Ignored, int64_t padding_idx) {
  const DType acc = hlo::accumulate_type(grad.dtype());
  const int64_t b = grad.dim(0);
  Value zero = hlo::full(ctx.builder, {acc, indices.dims()}, 0);
  if (indices.dim(0) == 0 || b == 0 || weight.dim(0) == 0) return convert(zero, grad.dtype());
  Value keep = (indices != static_cast<double>(padding_idx)) & (bag < static_cast<double>(b));
  Value g = hlo::index_select(convert(grad, acc), 0, hlo::minimum(bag, scalar(bag, b - 1.0)));
  Value w = hlo::index_select(convert(weight, acc), 0, indices);
  return convert(select(keep, hlo::sum(g * w, {1}), zero), grad.dtype());
}

}  // namespace

void register_embedding_bag(Registry& r) {
  r.add("aten::_embedding_bag", embedding_bag);
  r.alias("aten::_embedding_bag_forward_only", "aten::_embedding_bag");
  r.add("aten::_embedding_bag_backward", embedding_bag_backward);
  r.add("aten::_embedding_bag_dense_backward", embedding_bag_dense_backward);
  r.add("aten::_embedding_bag_per_sample_weights_backward", per_sample_weights_backward);
}

}  // namespace torch_tpu::lower
