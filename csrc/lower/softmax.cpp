// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/registry.h"
#include "lower/require.h"

// Softmax and its logarithm along one dimension. A rank-0 x is one row of one element; an empty row
// has no elements to give. Sums in f32 for 16-bit x. A row of -inf gives NaN, as on CPU; so does a
// row with NaN or +inf.
namespace torch_tpu::lower {
namespace {

using hlo::accumulate_type;
using hlo::convert;
using hlo::exp;
using hlo::keep_dims;
using hlo::max_unless_nan;
using hlo::sum;

// CPU has two kernels, and refuses in their names.
void require_softmax_dtype(const std::string& kernel, int64_t dim, Value x) {
  const bool last = x.rank() == 0 || wrap(dim, x.rank()) == x.rank() - 1;
  require_floating(kernel + (last ? "_lastdim" : "") + "_kernel_impl", x);
}

DType result_dtype(Value x, bool half_to_float) { return half_to_float ? DType::f32 : x.dtype(); }

// softmax(x)_i = exp(x_i - m) / sum_j exp(x_j - m),  m = max_j x_j,  along `dim`.
//   x    floating, any rank
//   out  x's shape and dtype; f32 if `half_to_float` (x is then 16-bit)
// A row is divided by its sum as one reciprocal: a division an element took a sixth of the time of
// 128 rows of 768 on XLA:CPU. The sum is at least 1 (the largest element's term) and finite, so its
// reciprocal neither overflows nor is subnormal; the result is within one more rounding.
Value softmax(Value x, int64_t dim, bool half_to_float) {
  require_softmax_dtype("softmax", dim, x);
  const Dims row = wrap(dim, x);
  Value z = convert(x, accumulate_type(x.dtype()));
  Value e = exp(z - max_unless_nan(z, row, keep_dims));
  return convert(e * (1 / sum(e, row, keep_dims)), result_dtype(x, half_to_float));
}

// log_softmax(x)_i = (x_i - m) - log sum_j exp(x_j - m). Dtypes as softmax.
Value log_softmax(Value x, int64_t dim, bool half_to_float) {
  require_softmax_dtype("log_softmax", dim, x);
  const Dims row = wrap(dim, x);
  Value z = convert(x, accumulate_type(x.dtype()));
  z = z - max_unless_nan(z, row, keep_dims);
  return convert(z - hlo::log(sum(exp(z), row, keep_dims)), result_dtype(x, half_to_float));
}

// dL/dx_i = y_i (g_i - sum_j g_j y_j) for y = softmax(x), g = dL/dy; in x's dtype.
Value softmax_backward_data(Value grad, Value output, int64_t dim, DType input_dtype) {
  const Dims row = wrap(dim, grad);
  const DType acc = accumulate_type(grad.dtype());
  Value g = convert(grad, acc), y = convert(output, acc);
  Value gy = g * y;
  return convert(gy - y * sum(gy, row, keep_dims), input_dtype);
}

// dL/dx_i = g_i - exp(y_i) sum_j g_j for y = log_softmax(x), g = dL/dy; in x's dtype.
Value log_softmax_backward_data(Value grad, Value output, int64_t dim, DType input_dtype) {
  const Dims row = wrap(dim, grad);
  const DType acc = accumulate_type(grad.dtype());
  Value g = convert(grad, acc);
  return convert(g - exp(convert(output, acc)) * sum(g, row, keep_dims), input_dtype);
}

// softmax, but a row that is all -inf gives zeros: attention with nothing to attend to.
Value safe_softmax(Value x, int64_t dim, std::optional<DType> dtype) {
  const DType out = dtype.value_or(x.dtype());
  Value y = softmax(convert(x, out), dim, false);
  Value masked = hlo::all(x == -std::numeric_limits<double>::infinity(), wrap(dim, x), keep_dims);
  return hlo::select(masked, hlo::zeros_like(y), y);
}

}  // namespace

void register_softmax(Registry& r) {
  r.add("aten::_softmax", softmax);
  r.add("aten::_log_softmax", log_softmax);
  r.add("aten::_softmax_backward_data", softmax_backward_data);
  r.add("aten::_log_softmax_backward_data", log_softmax_backward_data);
  r.add("aten::_safe_softmax", safe_softmax);
}

}  // namespace torch_tpu::lower
