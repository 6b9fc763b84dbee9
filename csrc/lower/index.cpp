// SPDX-License-Identifier: Apache-2.0
#include "lower/dims.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/registry.h"
#include "lower/scan.h"

namespace torch_tpu::lower {
namespace {

Value zeros(Context& ctx, DType t, const Dims& dims) {
  return hlo::full(ctx.builder, {t, dims}, 0);
}

// Rank 0 as a row of one element, so that dimension 0 exists.
Value at_least_1d(Value x) { return x.rank() == 0 ? reshape(x, {1}) : x; }

// out[i] = self[i_0, .., index[i], .., i_n], `index` standing at `dim`.
//   self   [..]          index  self's rank, no size above self's beside `dim`          out index's
//   shape, self's dtype
// Rank 0 counts as one element, in self or index.
Value gather(Context& ctx, Value self, int64_t dim, Value index, bool sparse_grad) {
  (void)sparse_grad;  // how the gradient is stored; ours is dense
  if (index.numel() == 0) return zeros(ctx, self.dtype(), index.dims());
  Value x = at_least_1d(self), at = at_least_1d(index);
  const int64_t d = wrap(dim, x.rank());
  at = bounded(ctx, at, x.dim(d), Negative::refused, out_of_bounds_at_run(d, x.dim(d)));
  if (x.rank() == 1) return reshape(hlo::take(x, at), index.dims());

  Dims limit = at.dims(), column = at.dims();
  limit[d] = x.dim(d);
  column.push_back(1);
  x = hlo::slice(x, Dims(x.rank(), 0), limit, Dims(x.rank(), 1));
  const Dims others = other_dims({d}, x.rank());
  const hlo::GatherDims dims{.offset_dims = {},
                             .collapsed_slice_dims = {d},
                             .operand_batching_dims = others,
                             .start_indices_batching_dims = others,
                             .start_index_map = {d},
                             .index_vector_dim = x.rank()};
  return hlo::gather(x, reshape(at, column), dims, Dims(x.rank(), 1));
}

// self[indices]: integer tensors broadcast together, null for a whole dimension (a mask arrives as
// its nonzero indices). The result's sizes are those of IndexPlan; negative indices wrap.
Value index_Tensor(Context& ctx, Value self, Values indices) {
  const IndexPlan plan = plan_index(ctx, self.dims(), indices);
  if (plan.indexed.empty()) return self;
  if (hlo::numel(plan.result) == 0) return zeros(ctx, self.dtype(), plan.result);
  const hlo::GatherDims dims{.offset_dims = plan.offset_dims,
                             .collapsed_slice_dims = plan.indexed,
                             .operand_batching_dims = {},
                             .start_indices_batching_dims = {},
                             .start_index_map = plan.indexed,
                             .index_vector_dim = plan.starts.rank() - 1};
  return hlo::gather(self, plan.starts, dims, plan.slice_sizes);
}

// Rows `index` (rank 0 or 1) of self along `dim`. A rank-0 self stays rank 0.
Value index_select(Context& ctx, Value self, int64_t dim, Value index) {
  Value x = at_least_1d(self);
  const int64_t d = wrap(dim, x.rank());
  // CPU has one kernel for rows and another for the other dimensions.
  std::string message = "index out of range in self";
  if (d > 0)
    message = "RuntimeError: INDICES element is out of DATA bounds, id={0} axis_dim=" +
              std::to_string(x.dim(d));
  if (x.rank() > 1 && x.dim(d) == 0)
    message = "RuntimeError: index_select(): self indexing axis dim should be positive";
  Value rows = bounded(ctx, at_least_1d(index), x.dim(d), Negative::refused, message);
  Dims out = x.dims();
  out[d] = rows.dim(0);
  if (self.rank() == 0) out = {};
  if (rows.numel() == 0 || hlo::numel(out) == 0) return zeros(ctx, self.dtype(), out);
  return reshape(hlo::index_select(x, d, rows), out);
}

// self.flat[index], index of any shape; negative indices wrap.
Value take(Context& ctx, Value self, Value index) {
  const std::string message = self.numel() == 0
                                  ? "take(): tried to take from an empty tensor"
                                  : "out of range: tried to access index {0} on a tensor of " +
                                        std::to_string(self.numel()) + " elements.";
  Value at = bounded(ctx, index, self.numel(), Negative::wraps, message);
  if (index.numel() == 0) return zeros(ctx, self.dtype(), index.dims());
  return hlo::take(self, at);
}

// out[.., k] = self[..] == k: s64, self's shape and `num_classes` more; an entry outside of
// [0, num_classes) is reported.
Value one_hot(Context& ctx, Value self, int64_t num_classes) {
  if (num_classes < 1) {
    throw UserError("one_hot without num_classes has a data-dependent shape",
                    UserError::Kind::not_implemented);
  }
  Value classes = constant(ctx.builder, self.dtype(), num_classes), zero = hlo::zeros_like(self);
  ctx.builder.check(hlo::any(compare(self, zero, hlo::Compare::lt), all_dims(self)),
                    "RuntimeError: Class values must be non-negative.");
  ctx.builder.check(
      hlo::any(compare(self, broadcast_to(classes, self.dims()), hlo::Compare::ge), all_dims(self)),
      "RuntimeError: Class values must be smaller than num_classes.");
  Dims dims = self.dims();
  dims.push_back(num_classes);
  Value k = hlo::iota(ctx.builder, {self.dtype(), dims}, self.rank());
  Value wide = hlo::broadcast_in_dim(self, dims, all_dims(self));
  return convert(compare(k, wide, hlo::Compare::eq), DType::s64);
}

Value nonzero_mask(Value x) {
  return x.dtype() == DType::pred ? x : compare(x, hlo::zeros_like(x), hlo::Compare::ne);
}

Value count_true(Value mask) { return sum(convert(mask, DType::s64), all_dims(mask)); }

// Coordinates of flat positions in an array of these sizes: s64 [n, rank].
Value unravel(Value position, const Dims& sizes) {
  Values columns;
  int64_t stride = hlo::numel(sizes);
  Value p = convert(position, DType::s64);
  for (int64_t size : sizes) {
    stride /= size;
    Value c = hlo::divide(p, hlo::full_like(p, static_cast<double>(stride)));
    columns.push_back(
        reshape(hlo::remainder(c, hlo::full_like(c, static_cast<double>(size))), {p.dim(0), 1}));
  }
  return columns.size() == 1 ? columns[0] : hlo::concatenate(columns, 1);
}

// Coordinates of the first `size` non-zero elements in row-major order, then rows of fill_value:
// s64 [size, rank].
Value nonzero_static(Context& ctx, Value self, int64_t size, Value fill_value) {
  const int64_t n = self.numel(), rank = self.rank();
  if (rank == 0 || size == 0) return zeros(ctx, DType::s64, {size, rank});
  Value fill = broadcast_to(convert(fill_value, DType::s64), {size, rank});
  if (n == 0) return fill;
  Value position = true_positions(nonzero_mask(self));
  if (size <= n) {
    position = slice_in_dim(position, 0, 0, size);
  } else {
    position = hlo::pad(position, constant(ctx.builder, position.dtype(), n), {0}, {size - n}, {0});
  }
  Value found =
      compare(position, hlo::full_like(position, static_cast<double>(n)), hlo::Compare::lt);
  return select(hlo::broadcast_in_dim(found, {size, rank}, {0}), unravel(position, self.dims()),
                fill);
}

// The static part of nonzero: (s64 [n, rank], s64 count): the first `count` rows are the
// coordinates.
std::pair<Value, Value> nonzero(Context& ctx, Value self) {
  Value mask = nonzero_mask(self);
  if (self.rank() == 0 || self.numel() == 0)
    return {zeros(ctx, DType::s64, {self.numel(), self.rank()}), count_true(mask)};
  return {unravel(true_positions(mask), self.dims()), count_true(mask)};
}

// The static part of masked_select: (values [n], s64 count) of the common shape; the first `count`
// values are those selected.
std::pair<Value, Value> masked_select(Context& ctx, Value self, Value mask) {
  auto [x, m] = hlo::broadcast(self, mask);
  m = nonzero_mask(m);
  if (x.numel() == 0) return {zeros(ctx, x.dtype(), {0}), count_true(m)};
  Value position = true_positions(m);
  return {hlo::take(x, hlo::minimum(position,
                                    hlo::full_like(position, static_cast<double>(x.numel() - 1)))),
          count_true(m)};
}

// self where mask is false, else the next element of source in row-major order.
//   self, mask  broadcast together          source  any shape, at least as many elements as mask
//   has true ones
Value masked_scatter(Context& ctx, Value self, Value mask, Value source) {
  auto [x, m] = hlo::broadcast(self, nonzero_mask(mask));
  if (x.numel() == 0) return x;
  const std::string message = "RuntimeError: Number of elements of source < number of ones in mask";
  ctx.builder.check(
      compare(count_true(m), constant(ctx.builder, DType::s64, source.numel()), hlo::Compare::gt),
      message);
  if (source.numel() == 0) return x;
  const DType t = x.numel() > INT32_MAX ? DType::s64 : DType::s32;
  Value nth = cumulative_sum(convert(flatten(m), t), 0);
  Value last = constant(ctx.builder, t, source.numel()), one = constant(ctx.builder, t, 1);
  Value next =
      hlo::take(source, hlo::maximum(hlo::minimum(nth, last) - one, constant(ctx.builder, t, 0)));
  return select(m, reshape(convert(next, x.dtype()), x.dims()), x);
}

}  // namespace

void register_index(Registry& r) {
  r.add("aten::gather", gather);
  r.add("aten::index.Tensor", index_Tensor);
  r.alias("aten::_unsafe_index.Tensor", "aten::index.Tensor");
  r.add("aten::index_select", index_select);
  r.add("aten::take", take);
  r.add("aten::nonzero_static", nonzero_static);
  r.add("aten::one_hot", one_hot);
  r.add("tpu::nonzero", nonzero);
  r.add("tpu::masked_select", masked_select);
  r.add("aten::masked_scatter", masked_scatter);
}

}  // namespace torch_tpu::lower
