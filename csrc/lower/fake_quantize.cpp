// SPDX-License-Identifier: Apache-2.0
#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Fake quantization: x as it comes back from whole numbers in [quant_min, quant_max]. PyTorch has
// no meta functions for these, so the checks of shapes are here too.
namespace torch_tpu::lower {
namespace {

void require_range(int64_t quant_min, int64_t quant_max) {
  if (quant_min > quant_max)
    throw UserError("`quant_min` should be less than or         equal to `quant_max`.");
}

// A zero point is known when the program runs: out of range is raised when the host next waits.
void check_zero_point(Value zero, int64_t quant_min, int64_t quant_max) {
  const Value z = flatten(zero);
  const Value outside = (z < static_cast<double>(quant_min)) | (z > static_cast<double>(quant_max));
  zero.builder().check(any(outside, {0}),
                       "RuntimeError: `zero_point` must be between `quant_min` and `quant_max`.");
}

// (output, mask) in x's shape; output in x's dtype, mask pred:
//   q      = round(x / scale) + zero, half to even   (a fractional zero is added before rounding)
//   output = (clamp(q, quant_min, quant_max) - zero) * scale
//   mask   = q is in [quant_min, quant_max]
//   scale  any floating dtype, used as f32; zero any real dtype; both broadcast to x
//   product   the dtype of the last product for f64 x: f32 where the CPU's kernel has one grid
// NaN gives quant_min and mask false, infinities the end of the range, as on the CPU.
std::pair<Value, Value> quantized(Value x, Value scale, Value zero, int64_t quant_min,
                                  int64_t quant_max, DType product) {
  const DType t = hlo::accumulate_type(x.dtype());
  const Value s = convert(scale, DType::f32), z = convert(zero, t);
  const Value scaled = convert(x, t) * convert(1.0 / s, t);  // by the f32 inverse, as on the CPU
  const Value q = hlo::is_floating(zero.dtype()) ? round_nearest_even(z + scaled)
                                                 : z + round_nearest_even(scaled);
  const double lo = static_cast<double>(quant_min), hi = static_cast<double>(quant_max);
  const Value inside = (q >= lo) & (q <= hi);
  const Value clamped = minimum(maximum(select(is_nan(q), scalar(q, lo), q), lo), hi);
  return {convert(convert(clamped - z, product) * convert(s, product), x.dtype()), inside};
}

std::pair<Value, Value> per_tensor(Value x, Value scale, Value zero, int64_t quant_min,
                                   int64_t quant_max) {
  require_range(quant_min, quant_max);
  check_zero_point(zero, quant_min, quant_max);
  require_floating("fake_quantize_tensor_cachemask_kernel_type_handling", x);
  return quantized(x, scale, zero, quant_min, quant_max, DType::f32);
}

// The same by tensors of which the first element counts; where `enabled` is 0, x and a mask of
// true.
std::pair<Value, Value> per_tensor_qparams(Value x, Value scale, Value zero, Value enabled,
                                           int64_t quant_min, int64_t quant_max) {
  require_range(quant_min, quant_max);
  require_floating("fake_quantize_tensor_cachemask_kernel_type_handling", x);
  const auto first = [](Value v) { return reshape(slice_in_dim(flatten(v), 0, 0, 1), {}); };
  const Value whole_zero = convert(first(zero), DType::s64);
  const auto [y, mask] = quantized(x, first(scale), whole_zero, quant_min, quant_max, DType::f32);
  const Value on = first(enabled) != 0;
  return {select(on, y, x), mask | ~on};
}

// scale and zero [x.dim(axis)]: one grid for each slice along `axis`.
std::pair<Value, Value> per_channel(Value x, Value scale, Value zero, int64_t axis,
                                    int64_t quant_min, int64_t quant_max) {
  const auto found = [](Value v) { return std::string(scalar_type_name(v.dtype())); };
  if (scale.dtype() != DType::f32 && scale.dtype() != DType::bf16)
    throw UserError("Scale must be Float or BFloat16, found " + found(scale));
  if (zero.dtype() != DType::s32 && zero.dtype() != DType::f32 && zero.dtype() != DType::f16)
    throw UserError("Zero-point must be Int32, Float or Half, found " + found(zero));
  if (scale.rank() != 1) throw UserError("scale should be a 1-D tensor");
  if (zero.rank() != 1) throw UserError("zero point should be a 1-D tensor");
  if (scale.numel() != zero.numel())
    throw UserError("scale and zero-point need to have the same dimensions");
  const int64_t dim = wrap(axis, x.rank());
  if (scale.numel() != (x.rank() == 0 ? 1 : x.dim(dim)))
    throw UserError("dimensions of scale and zero-point are not consistent with input tensor");
  require_range(quant_min, quant_max);
  if (!hlo::is_floating(zero.dtype())) check_zero_point(zero, quant_min, quant_max);
  if (axis < 0) throw UserError("`axis` must be between 0 and number of dimensions of input");
  require_floating("fake_quantize_channel_cachemask_cpu_type_handling", x);
  const auto along = [&](Value v) {
    Dims sizes(x.rank(), 1);
    if (x.rank() > 0) sizes[dim] = v.numel();
    return reshape(v, sizes);
  };
  return quantized(x, along(scale), along(zero), quant_min, quant_max,
                   hlo::accumulate_type(x.dtype()));
}

}  // namespace

void register_fake_quantize(Registry& r) {
  r.add("aten::fake_quantize_per_tensor_affine_cachemask", per_tensor);
  r.add("aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", per_tensor_qparams);
  r.add("aten::fake_quantize_per_channel_affine_cachemask", per_channel);
}

}  // namespace torch_tpu::lower
