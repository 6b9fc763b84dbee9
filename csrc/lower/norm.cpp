// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Normalisation by mean and variance (layer, group, batch) or by root mean square. Statistics are
// kept in f32 for 16-bit inputs, in two passes (mean, then the mean of squared differences). NaN
// spreads through its own group only; a group of no elements has NaN statistics. Weight and bias
// may be absent, and wider than a 16-bit input.
namespace torch_tpu::lower {
namespace {

using hlo::accumulate_type;
using hlo::convert;
using hlo::keep_dims;
using hlo::rsqrt;
using hlo::sum;

Value widen(Value x) { return convert(x, accumulate_type(x.dtype())); }
Value mean(Value x, const Dims& dims) {
  return sum(x, dims, keep_dims) / static_cast<double>(count(x, dims));
}

// y * weight + bias, either absent; both are given in a shape that broadcasts to y's.
Value affine(Value y, const std::optional<Value>& weight, const std::optional<Value>& bias,
             const Dims& dims) {
  if (weight) y = y * convert(reshape(*weight, dims), y.dtype());
  if (bias) y = y + convert(reshape(*bias, dims), y.dtype());
  return y;
}

struct Moments {
  Value mean, variance;  // dims kept
};
Moments moments(Value x, const Dims& dims) {
  Value m = mean(x, dims);
  return {m, mean(square(x - m), dims)};
}

// dL/dx for x_hat = (x - mean(x)) rstd(x), given g = dL/dx_hat:  rstd (g - mean(g) - x_hat mean(g
// x_hat)).
Value normalised_backward(Value g, Value x_hat, Value rstd, const Dims& dims) {
  return rstd * (g - mean(g, dims) - x_hat * mean(g * x_hat, dims));
}

Dims trailing(int64_t n, int64_t rank) {
  Dims dims;
  for (int64_t d = rank - n; d < rank; ++d) dims.push_back(d);
  return dims;
}

// ---- layer norm and RMS norm
// ------------------------------------------------------------------------------------

// PyTorch's refusal of an x that does not end in normalized_shape.
void require_ending(Value x, const Dims& normalized_shape) {
  const auto n = static_cast<int64_t>(normalized_shape.size());
  if (x.rank() >= n &&
      std::equal(normalized_shape.begin(), normalized_shape.end(), x.dims().end() - n))
    return;
  std::string wanted = "[*";
  for (int64_t d : normalized_shape) wanted += ", " + std::to_string(d);
  throw UserError("Given normalized_shape=" + hlo::str(normalized_shape) +
                  ", expected input with shape " + wanted + "], but got input of size" +
                  hlo::str(x.dims()));
}

// out = (x - mean) rstd * weight + bias over the last dimensions, rstd = 1 / sqrt(variance + eps).
//   x  [..., *normalized_shape]     weight, bias  [*normalized_shape] or None
//   results  out (x's dtype), mean and rstd (accumulating dtype, x's shape with 1 in the normalised
//   dimensions)
Values native_layer_norm(Value x, const Dims& normalized_shape, const std::optional<Value>& weight,
                         const std::optional<Value>& bias, double eps) {
  require_ending(x, normalized_shape);
  require_floating("LayerNormKernelImpl", x);
  const Dims dims = trailing(normalized_shape.size(), x.rank());
  Value z = widen(x);
  auto [m, variance] = moments(z, dims);
  Value rstd = rsqrt(variance + eps);
  Value y = affine((z - m) * rstd, weight, bias, normalized_shape);
  return {convert(y, x.dtype()), m, rstd};
}

// Gradients of x, weight, bias, those asked for.
Values native_layer_norm_backward(Value grad, Value x, const Dims& normalized_shape, Value mean,
                                  Value rstd, const std::optional<Value>& weight,
                                  const std::optional<Value>& bias, const std::vector<bool>& mask) {
  const int64_t n = normalized_shape.size();
  const Dims dims = trailing(n, x.rank()), rows = all_dims(x.rank() - n);
  Value g = widen(grad);
  rstd = convert(rstd, g.dtype());
  Value x_hat = (widen(x) - convert(mean, g.dtype())) * rstd;
  Value dx, dweight, dbias;
  if (mask[0]) {
    Value gw = affine(g, weight, std::nullopt, normalized_shape);
    dx = convert(normalised_backward(gw, x_hat, rstd, dims), x.dtype());
  }
  if (mask[1] && weight) dweight = convert(sum(g * x_hat, rows), weight->dtype());
  if (mask[2] && bias) dbias = convert(sum(g, rows), bias->dtype());
  return {dx, dweight, dbias};
}

// out = x rstd * weight over the last dimensions, rstd = 1 / sqrt(mean(x^2) + eps).
//   eps  None: the smallest step of the accumulating dtype
//   results  out (x's dtype), rstd (accumulating dtype, 1 in the normalised dimensions)
Values fused_rms_norm(Value x, const Dims& normalized_shape, const std::optional<Value>& weight,
                      std::optional<double> eps) {
  require_floating("rms_norm", x);
  const Dims dims = trailing(normalized_shape.size(), x.rank());
  Value z = widen(x);
  const double step = z.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                              : std::numeric_limits<float>::epsilon();
  Value rstd = rsqrt(mean(square(z), dims) + eps.value_or(step));
  return {convert(affine(z * rstd, weight, std::nullopt, normalized_shape), x.dtype()), rstd};
}

// Gradients of x and weight, those asked for:  dx = rstd (g - x_hat mean(g x_hat)), g = grad
// weight, x_hat = x rstd.
Values fused_rms_norm_backward(Value grad, Value x, const Dims& normalized_shape, Value rstd,
                               const std::optional<Value>& weight, const std::vector<bool>& mask) {
  const int64_t n = normalized_shape.size();
  const Dims dims = trailing(n, x.rank());
  Value g = widen(grad);
  rstd = convert(rstd, g.dtype());
  Value x_hat = widen(x) * rstd;
  Value dx, dweight;
  if (mask[0]) {
    Value gw = affine(g, weight, std::nullopt, normalized_shape);
    dx = convert(rstd * (gw - x_hat * mean(gw * x_hat, dims)), x.dtype());
  }
  if (mask[1] && weight) dweight = convert(sum(g * x_hat, all_dims(x.rank() - n)), weight->dtype());
  return {dx, dweight};
}

// ---- group norm
// -------------------------------------------------------------------------------------------------

// x as [n, groups, channels a group, elements a channel], statistics over the last two.
struct Groups {
  Dims split, channel, statistic;
  Groups(int64_t n, int64_t c, int64_t hxw, int64_t groups) : statistic{n, groups, 1, 1} {
    if (groups <= 0)
      throw UserError("Expected num groups to be greater than 0, got " + std::to_string(groups));
    split = {n, groups, c / groups, hxw};
    channel = {1, groups, c / groups, 1};
  }
  Dims reduced() const { return {2, 3}; }
};

// out = (x - mean) rstd * weight + bias, with mean and rstd over each group of channels.
//   x  [n, c, *], hxw elements a channel     weight, bias  [c] or None
//   results  out, mean [n, groups], rstd [n, groups], all of x's dtype
Values native_group_norm(Value x, const std::optional<Value>& weight,
                         const std::optional<Value>& bias, int64_t n, int64_t c, int64_t hxw,
                         int64_t groups, double eps) {
  require_floating("GroupNormKernelImpl", x);
  const Groups shape(n, c, hxw, groups);
  Value z = widen(reshape(x, shape.split));
  auto [m, variance] = moments(z, shape.reduced());
  Value rstd = rsqrt(variance + eps);
  Value y = affine((z - m) * rstd, weight, bias, shape.channel);
  auto saved = [&](Value v) { return convert(reshape(v, {n, groups}), x.dtype()); };
  return {convert(reshape(y, x.dims()), x.dtype()), saved(m), saved(rstd)};
}

// Gradients of x, weight, bias, those asked for.
Values native_group_norm_backward(Value grad, Value x, Value mean, Value rstd,
                                  const std::optional<Value>& weight, int64_t n, int64_t c,
                                  int64_t hxw, int64_t groups, const std::vector<bool>& mask) {
  const Groups shape(n, c, hxw, groups);
  Value g = widen(reshape(grad, shape.split));
  auto statistic = [&](Value v) { return convert(reshape(v, shape.statistic), g.dtype()); };
  rstd = statistic(rstd);
  Value x_hat = (widen(reshape(x, shape.split)) - statistic(mean)) * rstd;
  const DType parameter = weight ? weight->dtype() : x.dtype();
  auto channel = [&](Value v) { return convert(reshape(sum(v, {0, 3}), {c}), parameter); };
  Value dx, dweight, dbias;
  if (mask[0]) {
    Value gw = affine(g, weight, std::nullopt, shape.channel);
    dx = convert(reshape(normalised_backward(gw, x_hat, rstd, shape.reduced()), x.dims()),
                 x.dtype());
  }
  if (mask[1]) dweight = channel(g * x_hat);
  if (mask[2]) dbias = channel(g);
  return {dx, dweight, dbias};
}

// ---- batch norm
// -------------------------------------------------------------------------------------------------

// x is [n, c, *]: statistics over all dimensions but 1; a per-channel [c] broadcasts as [1, c, 1,
// ...].
Dims batch_dims(Value x) { return other_dims({1}, x.rank()); }
Dims channel_shape(Value x) {
  Dims dims(x.rank(), 1);
  dims[1] = x.dim(1);
  return dims;
}

// (1 - momentum) * running + momentum * batch's, in running's dtype; null stays null.
Value updated(const std::optional<Value>& running, Value batch, Value momentum) {
  if (!running) return {};
  momentum = convert(momentum, batch.dtype());
  return convert(convert(*running, batch.dtype()) * (1.0 - momentum) + batch * momentum,
                 running->dtype());
}

struct BatchNorm {
  Value out, mean, invstd;          // mean and invstd [c], accumulating dtype
  Value running_mean, running_var;  // new values; null where nothing is written
};

// out = (x - mean) / sqrt(variance + eps) * weight + bias by channel. Training takes the batch's
// own statistics and moves the running ones towards them (the variance with n / (n - 1)); otherwise
// the running ones serve.
BatchNorm batch_norm(Value x, const std::optional<Value>& weight, const std::optional<Value>& bias,
                     const std::optional<Value>& running_mean,
                     const std::optional<Value>& running_var, bool training, Value momentum,
                     double eps) {
  require_floating("batch_norm", x);
  const Dims dims = batch_dims(x), shape = channel_shape(x), channels{x.dim(1)};
  Value z = widen(x);
  BatchNorm result;
  Value m, variance;
  if (training) {
    std::tie(m, variance) = [&] {
      auto s = moments(z, dims);
      return std::pair(s.mean, s.variance);
    }();
    const double n = count(x, dims);
    if (running_mean) result.running_mean = updated(running_mean, reshape(m, channels), momentum);
    if (running_var)
      result.running_var =
          updated(running_var, reshape(variance, channels) * (n / (n - 1)), momentum);
  } else {
    if (!running_mean || !running_var)
      throw UserError(
          "running_mean and running_var must be given where a batch norm is not trained");
    m = reshape(convert(*running_mean, z.dtype()), shape);
    variance = reshape(convert(*running_var, z.dtype()), shape);
  }
  Value invstd = rsqrt(variance + eps);
  result.out = convert(affine((z - m) * invstd, weight, bias, shape), x.dtype());
  result.mean = reshape(m, channels);
  result.invstd = reshape(invstd, channels);
  return result;
}

using MaybeValue = std::optional<Value>;

// The forms with running statistics written in place return their new values after the schema's
// results (null: unchanged).
Values native_batch_norm(Value x, const MaybeValue& weight, const MaybeValue& bias,
                         const MaybeValue& running_mean, const MaybeValue& running_var,
                         bool training, Value momentum, double eps) {
  BatchNorm r = batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps);
  return {r.out, r.mean, r.invstd, r.running_mean, r.running_var};
}

Values native_batch_norm_legit_no_stats(Value x, const MaybeValue& weight, const MaybeValue& bias,
                                        bool, Value momentum, double eps) {
  BatchNorm r = batch_norm(x, weight, bias, std::nullopt, std::nullopt, true, momentum, eps);
  return {r.out, r.mean, r.invstd};
}

Values native_batch_norm_legit_no_training(Value x, const MaybeValue& weight,
                                           const MaybeValue& bias, Value running_mean,
                                           Value running_var, Value momentum, double eps) {
  BatchNorm r = batch_norm(x, weight, bias, running_mean, running_var, false, momentum, eps);
  return {r.out, r.mean, r.invstd};
}

Values native_batch_norm_legit_functional(Value x, const MaybeValue& weight, const MaybeValue& bias,
                                          Value running_mean, Value running_var, bool training,
                                          Value momentum, double eps) {
  BatchNorm r = batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps);
  if (!training) return {r.out, r.mean, r.invstd, running_mean, running_var};
  return {r.out, r.mean, r.invstd, r.running_mean, r.running_var};
}

// The backend's reserve space: we need none.
Value no_reserve(Value x) { return hlo::full(x.builder(), {DType::u8, {0}}, 0); }

Values batch_norm_with_update(Value x, const MaybeValue& weight, const MaybeValue& bias,
                              Value running_mean, Value running_var, Value momentum, double eps) {
  BatchNorm r = batch_norm(x, weight, bias, running_mean, running_var, true, momentum, eps);
  return {r.out, r.mean, r.invstd, no_reserve(x), r.running_mean, r.running_var};
}

Values batch_norm_no_update(Value x, const MaybeValue& weight, const MaybeValue& bias,
                            const MaybeValue& running_mean, const MaybeValue& running_var,
                            Value momentum, double eps) {
  BatchNorm r =
      batch_norm(x, weight, bias, running_mean, running_var, !running_mean, momentum, eps);
  return {r.out, r.mean, r.invstd, no_reserve(x)};
}

// Gradients of x, weight, bias, those asked for. With the batch's statistics (train) they too
// depend on x:
//   dx = weight invstd (g - mean(g) - x_hat mean(g x_hat));   with the running ones dx = weight
//   invstd g.
Values native_batch_norm_backward(Value grad, Value x, const MaybeValue& weight,
                                  const MaybeValue& running_mean, const MaybeValue& running_var,
                                  const MaybeValue& save_mean, const MaybeValue& save_invstd,
                                  bool train, double eps, const std::vector<bool>& mask) {
  const Dims dims = batch_dims(x), shape = channel_shape(x);
  Value g = widen(grad);
  auto channel = [&](Value v) { return reshape(convert(v, g.dtype()), shape); };
  Value m = channel(train ? *save_mean : *running_mean);
  Value invstd = train ? channel(*save_invstd) : rsqrt(channel(*running_var) + eps);
  Value x_hat = (widen(x) - m) * invstd;
  const DType parameter = weight ? weight->dtype() : x.dtype();
  Value dx, dweight, dbias;
  if (mask[0]) {
    Value gw = affine(g, weight, std::nullopt, shape);
    dx = convert(train ? normalised_backward(gw, x_hat, invstd, dims) : gw * invstd, x.dtype());
  }
  if (mask[1]) dweight = convert(sum(g * x_hat, dims), parameter);
  if (mask[2]) dbias = convert(sum(g, dims), parameter);
  return {dx, dweight, dbias};
}

Values batch_norm_backward(Value grad, Value x, Value weight, const MaybeValue& running_mean,
                           const MaybeValue& running_var, const MaybeValue& save_mean,
                           const MaybeValue& save_invstd, bool update, double eps,
                           const std::vector<bool>& mask, Ignored) {
  return native_batch_norm_backward(grad, x, weight, running_mean, running_var, save_mean,
                                    save_invstd, update, eps, mask);
}

}  // namespace

void register_norm(Registry& r) {
  r.add("aten::native_layer_norm", native_layer_norm);
  r.add("aten::native_layer_norm_backward", native_layer_norm_backward);
  r.add("aten::_fused_rms_norm", fused_rms_norm);
  r.add("aten::_fused_rms_norm_backward", fused_rms_norm_backward);
  r.add("aten::native_group_norm", native_group_norm);
  r.add("aten::native_group_norm_backward", native_group_norm_backward);
  r.add("aten::native_batch_norm", native_batch_norm);
  r.add("aten::_native_batch_norm_legit", native_batch_norm);
  r.add("aten::_native_batch_norm_legit.no_stats", native_batch_norm_legit_no_stats);
  r.add("aten::_native_batch_norm_legit_no_training", native_batch_norm_legit_no_training);
  r.add("aten::_native_batch_norm_legit_functional", native_batch_norm_legit_functional);
  r.add("aten::_batch_norm_with_update", batch_norm_with_update);
  r.add("aten::_batch_norm_with_update_functional", batch_norm_with_update);
  r.add("aten::_batch_norm_no_update", batch_norm_no_update);
  r.add("aten::native_batch_norm_backward", native_batch_norm_backward);
  r.add("aten::batch_norm_backward", batch_norm_backward);
}

}  // namespace torch_tpu::lower
