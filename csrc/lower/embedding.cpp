// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"
#include "lower/rows.h"

// Rows of a table by number, and what training does with such a table.
//   weight  [v, d]     indices  s32 or s64, any shape
// An index outside [0, v) is reported as on CPU when the host next waits; the program reads some
// row and writes none.
namespace torch_tpu::lower {
namespace {

using hlo::convert;
using hlo::reshape;
using hlo::select;
using hlo::sum;

void check_range(Context& ctx, Value indices, int64_t rows) {
  Value bad = (indices < 0) | (indices >= static_cast<double>(rows));
  ctx.builder.check(hlo::any(bad, all_dims(bad)), "index out of range in self");
}

void require_index_dtype(Value indices) {
  if (indices.dtype() == DType::s64 || indices.dtype() == DType::s32) return;
  throw UserError(
      "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
      "Int; but got torch." +
      std::string(scalar_type_name(indices.dtype())) +
      "Tensor instead (while checking arguments for embedding)");
}

// out[i..., :] = weight[indices[i...], :]
Value embedding(Context& ctx, Value weight, Value indices, Ignored /*padding_idx*/, Ignored,
                Ignored) {
  require_index_dtype(indices);
  check_range(ctx, indices, weight.dim(0));
  Dims out = indices.dims();
  out.insert(out.end(), weight.dims().begin() + 1, weight.dims().end());
  if (hlo::numel(out) == 0 || weight.dim(0) == 0)
    return hlo::full(ctx.builder, {weight.dtype(), out}, 0);
  return reshape(hlo::index_select(weight, 0, hlo::flatten(indices)), out);
}

// dweight[r, :] = sum of grad over the places where r was read; summed in f32 for 16-bit grad.
//   padding_idx          a row that gets no gradient; negative: none
//   scale_grad_by_freq   each row's sum is divided by the number of its places
Value embedding_dense_backward(Value grad, Value indices, int64_t num_weights, int64_t padding_idx,
                               bool scale_grad_by_freq) {
  const DType acc = hlo::accumulate_type(grad.dtype());
  const int64_t width = grad.dim(-1);
  Value rows = hlo::flatten(indices);
  Value updates = reshape(convert(grad, acc), {rows.numel(), width});
  if (padding_idx >= 0) {  // out of range is dropped
    rows = select(rows == static_cast<double>(padding_idx),
                  scalar(rows, static_cast<double>(num_weights)), rows);
  }
  Value table = added_rows(num_weights, rows, updates);
  if (scale_grad_by_freq) {
    Value n = maximum(convert(occurrences(rows, num_weights), acc), 1);
    table = table / hlo::unsqueeze(n, 1);
  }
  return convert(table, grad.dtype());
}

// (sum_j |x_j|^p)^(1/p) of each row of x [v, d]: [v, 1]
Value row_norms(Value x, double p) {
  Value a = hlo::abs(x);
  if (p == 2) return hlo::sqrt(sum(square(a), {1}, hlo::keep_dims));
  if (p == 1) return sum(a, {1}, hlo::keep_dims);
  if (std::isinf(p))
    return p > 0 ? hlo::max(a, {1}, hlo::keep_dims) : hlo::min(a, {1}, hlo::keep_dims);
  if (p == 0) return sum(convert(a != 0, a.dtype()), {1}, hlo::keep_dims);
  return power(sum(power(a, scalar(a, p)), {1}, hlo::keep_dims), scalar(a, 1 / p));
}

// Rows named in `indices` whose p-norm exceeds max_norm are scaled down to it; the others are
// unchanged.
Value embedding_renorm(Context& ctx, Value weight, Value indices, Value max_norm,
                       double norm_type) {
  Value rows = hlo::flatten(indices);
  check_range(ctx, rows, weight.dim(0));
  Value x = convert(weight, hlo::accumulate_type(weight.dtype()));
  Value norms = row_norms(x, norm_type), limit = convert(max_norm, x.dtype());
  Value named = hlo::unsqueeze(occurrences(rows, weight.dim(0)) > 0, 1);
  Value scaled = convert(x * (limit / (norms + 1e-7)), weight.dtype());
  return select(named & (norms > limit), scaled, weight);
}

}  // namespace

void register_embedding(Registry& r) {
  r.add("aten::embedding", embedding);
  r.add("aten::embedding_dense_backward", embedding_dense_backward);
  r.add("aten::embedding_renorm", embedding_renorm);
}

}  // namespace torch_tpu::lower
