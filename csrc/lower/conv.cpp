// SPDX-License-Identifier: Apache-2.0
#include "lower/dims.h"
#include "lower/families.h"
#include "lower/product.h"
#include "lower/registry.h"
#include "lower/require.h"

// Convolution of any number of spatial dimensions, transposed or not, and its gradients.
//   x       [n, c, *in]                    weight  [o, c / groups, *k], transposed: [c, o / groups,
//   *k] bias    [o] or None                    out     [n, o, *out]
// Sums in f32 for 16-bit inputs, rounded once; integers wrap; complex products are formed from real
// ones. Where a dimension is empty the sum is 0.
namespace torch_tpu::lower {
namespace {

using hlo::accumulate_type;
using hlo::convert;
using hlo::reshape;
using hlo::sum;

using Padding = std::vector<std::pair<int64_t, int64_t>>;

struct Window {
  Dims stride, padding, dilation;  // one entry a spatial dimension
  bool transposed;
  Dims output_padding;
  int64_t groups;
  int64_t rank() const { return static_cast<int64_t>(stride.size()); }
};

// PyTorch allows one number for all spatial dimensions.
Dims each(Dims v, int64_t rank) { return v.size() == 1 ? Dims(rank, v[0]) : v; }

Window window_of(Value weight, const Dims& stride, const Dims& padding, const Dims& dilation,
                 bool transposed, const Dims& output_padding, int64_t groups) {
  const int64_t n = weight.rank() - 2;
  return {each(stride, n), each(padding, n),        each(dilation, n),
          transposed,      each(output_padding, n), groups};
}

Dims spatial(int64_t rank) {
  Dims dims(rank);
  for (int64_t d = 0; d < rank; ++d) dims[d] = d + 2;
  return dims;
}

// The same for 64-bit integers, which a TPU's compiler does not convolve: a loop over the kernel's
// places adds, for each, the products of all channels with what lies under it. x is [n, c, *in];
// the result is [n, o, *out].
Value convolve_in_a_loop(Value x, Value kernel, const hlo::ConvolutionDims& dims,
                         const hlo::ConvolutionWindow& window, int64_t groups) {
  hlo::Builder& b = x.builder();
  const int64_t n = x.dim(0), c = x.dim(1) / groups, spatial_rank = x.rank() - 2;
  if (dims.kernel_input_feature == 0) {
    Dims swap = all_dims(kernel);
    std::swap(swap[0], swap[1]);
    kernel = hlo::transpose(kernel, swap);
  }
  const int64_t o = kernel.dim(0) / groups;
  Dims low(x.rank(), 0), high(x.rank(), 0), interior(x.rank(), 0), window_sizes{n, x.dim(1)};
  Dims strides{1, 1}, out{n, groups, o}, under{n, groups, 1, c}, weights{1, groups, o, c};
  int64_t places = 1;
  for (int64_t d = 0; d < spatial_rank; ++d) {
    low[d + 2] = window.padding[d].first;
    high[d + 2] = window.padding[d].second;
    interior[d + 2] = window.lhs_dilation[d] - 1;
    const int64_t in = (x.dim(d + 2) - 1) * window.lhs_dilation[d] + 1 + low[d + 2] + high[d + 2];
    const int64_t reach = (kernel.dim(d + 2) - 1) * window.rhs_dilation[d];
    const int64_t count = (in - reach - 1) / window.strides[d] + 1;
    window_sizes.push_back((count - 1) * window.strides[d] + 1);
    strides.push_back(window.strides[d]);
    out.push_back(count);
    under.push_back(count);
    weights.push_back(1);
    places *= kernel.dim(d + 2);
  }
  Dims result{n, groups * o};
  result.insert(result.end(), out.begin() + 3, out.end());
  Value padded = hlo::pad(x, hlo::constant(b, x.dtype(), 0), low, high, interior);
  Value flat = reshape(kernel, {groups * o, c, places}), zero = hlo::constant(b, DType::s32, 0);
  auto body = [&](const Values& v) {
    Value k = v[0], left = k;
    Values at(x.rank(), zero);
    for (int64_t d = spatial_rank - 1; d >= 0; --d) {
      Value size = hlo::constant(b, DType::s32, kernel.dim(d + 2));
      at[d + 2] = hlo::remainder(left, size) * static_cast<double>(window.rhs_dilation[d]);
      left = left / size;
    }
    Value here = hlo::dynamic_slice(v[2], at, window_sizes);
    here = reshape(hlo::slice(here, Dims(x.rank(), 0), window_sizes, strides), under);
    Value w = reshape(hlo::dynamic_slice(v[3], {zero, zero, k}, {groups * o, c, 1}), weights);
    return Values{k + hlo::constant(b, DType::s32, 1), v[1] + sum(here * w, {3}), v[2], v[3]};
  };
  Values end = hlo::while_(
      {zero, hlo::full(b, {x.dtype(), out}, 0), padded, flat},
      [&](const Values& v) {
        return compare(v[0], hlo::constant(b, DType::s32, places), hlo::Compare::lt);
      },
      body);
  return reshape(end[1], result);
}

// StableHLO's convolution on real or complex arrays, in the accumulating dtype.
Value convolve(const Context& ctx, Value x, Value kernel, const hlo::ConvolutionDims& dims,
               const hlo::ConvolutionWindow& window, int64_t feature_groups, int64_t batch_groups) {
  if (x.dtype() == DType::s64 || x.dtype() == DType::u64)
    return convolve_in_a_loop(x, kernel, dims, window, feature_groups);
  auto real = [&](Value a, Value b) {
    return hlo::convolution(a, b, dims, window, feature_groups, batch_groups,
                            accumulate_type(a.dtype()), precision(ctx, a.dtype()));
  };
  if (!hlo::is_complex(x.dtype())) return real(x, kernel);
  Value a = hlo::real(x), b = hlo::imag(x), c = hlo::real(kernel), d = hlo::imag(kernel);
  return hlo::complex(real(a, c) - real(b, d), real(a, d) + real(b, c));
}

hlo::ConvolutionWindow plain_window(const Dims& strides, Padding padding, const Dims& lhs_dilation,
                                    const Dims& rhs_dilation) {
  return {strides, lhs_dilation, rhs_dilation, std::move(padding),
          std::vector<bool>(strides.size(), false)};
}

Value zeros(Value x, const Dims& dims) {
  return hlo::full(x.builder(), {accumulate_type(x.dtype()), dims}, 0);
}

// (in + 2 padding - dilation (k - 1) - 1) / stride + 1, a spatial dimension
Dims plain_sizes(Value x, Value weight, const Window& w) {
  Dims out;
  for (int64_t d = 0; d < w.rank(); ++d) {
    out.push_back((x.dim(d + 2) + 2 * w.padding[d] - w.dilation[d] * (weight.dim(d + 2) - 1) - 1) /
                      w.stride[d] +
                  1);
  }
  return out;
}

// out[n, o, i] = sum over c, k of x[n, c, i stride + k dilation - padding] weight[o, c, k], for i
// below `sizes`
Value correlate(const Context& ctx, Value x, Value weight, const Window& w, const Dims& sizes) {
  const int64_t n = w.rank();
  Dims out{x.dim(0), weight.dim(0)};
  out.insert(out.end(), sizes.begin(), sizes.end());
  if (x.numel() == 0 || weight.numel() == 0) return zeros(x, out);
  Padding padding;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t reach = w.dilation[d] * (weight.dim(d + 2) - 1) + 1;
    padding.emplace_back(w.padding[d],
                         (sizes[d] - 1) * w.stride[d] + reach - x.dim(d + 2) - w.padding[d]);
  }
  return convolve(ctx, x, weight, {0, 1, spatial(n), 1, 0, spatial(n), 0, 1, spatial(n)},
                  plain_window(w.stride, padding, Dims(n, 1), w.dilation), w.groups, 1);
}

// The transpose of `correlate` as a map of x, applied to g [n, o, *out]: gives [n, c, *in] of the
// sizes `in`. Each g is spread by the stride and meets the kernel reversed, with its input and
// output channels exchanged inside each group.
Value spread(const Context& ctx, Value g, Value weight, const Window& w, const Dims& in) {
  const int64_t n = w.rank(), o = weight.dim(0) / w.groups, c = weight.dim(1);
  Dims result{g.dim(0), c * w.groups};
  result.insert(result.end(), in.begin(), in.end());
  if (g.numel() == 0 || weight.numel() == 0) return zeros(g, result);
  Padding padding;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t reach = w.dilation[d] * (weight.dim(d + 2) - 1), low = reach - w.padding[d];
    const int64_t dilated = (g.dim(d + 2) - 1) * w.stride[d] + 1;
    padding.emplace_back(low, in[d] + reach - dilated - low);
  }
  Value kernel = hlo::reverse(weight, spatial(n));
  if (w.groups > 1) {  // [groups * o, c, *k] -> [o, groups * c, *k]
    const Dims k(weight.dims().begin() + 2, weight.dims().end());
    auto with_k = [&](Dims dims) {
      dims.insert(dims.end(), k.begin(), k.end());
      return dims;
    };
    Dims swap = all_dims(n + 3);
    std::swap(swap[0], swap[1]);
    kernel = reshape(hlo::transpose(reshape(kernel, with_k({w.groups, o, c})), swap),
                     with_k({o, w.groups * c}));
  }
  return convolve(ctx, g, kernel, {0, 1, spatial(n), 0, 1, spatial(n), 0, 1, spatial(n)},
                  plain_window(Dims(n, 1), padding, w.stride, w.dilation), w.groups, 1);
}

// The gradient of `correlate` by its weight, of shape `weight` [o, c / groups, *k]:
//   dweight[o, c, k] = sum over n, i of x[n, c, i stride + k dilation - padding] g[n, o, i]
// a convolution in which channels act as the batch and the batch as the channels summed over.
Value weight_gradient(const Context& ctx, Value x, Value g, const Window& w, const Dims& weight) {
  const int64_t n = w.rank();
  if (x.numel() == 0 || g.numel() == 0 || hlo::numel(weight) == 0) return zeros(x, weight);
  Padding padding;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t dilated = (g.dim(d + 2) - 1) * w.stride[d] + 1;
    const int64_t low = w.padding[d];
    padding.emplace_back(low, w.dilation[d] * (weight[d + 2] - 1) + dilated - x.dim(d + 2) - low);
  }
  return convolve(ctx, x, g, {1, 0, spatial(n), 0, 1, spatial(n), 1, 0, spatial(n)},
                  plain_window(w.dilation, padding, Dims(n, 1), w.stride), 1, w.groups);
}

// (in - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1, a spatial dimension
Dims transposed_sizes(Value x, Value weight, const Window& w) {
  Dims out;
  for (int64_t d = 0; d < w.rank(); ++d) {
    out.push_back((x.dim(d + 2) - 1) * w.stride[d] - 2 * w.padding[d] +
                  w.dilation[d] * (weight.dim(d + 2) - 1) + w.output_padding[d] + 1);
  }
  return out;
}

Dims spatial_sizes(Value x) { return {x.dims().begin() + 2, x.dims().end()}; }

void require_conv_dtypes(Value x, Value weight) {
  if (x.dtype() != weight.dtype()) {
    throw UserError("expected scalar type " + std::string(scalar_type_name(x.dtype())) +
                    " but found " + std::string(scalar_type_name(weight.dtype())));
  }
  require_not_bool(weight.rank() == 5 ? "slow_conv3d_cpu" : "slow_conv2d_cpu", x);
}

void require_positive_strides(const Window& w) {
  for (int64_t s : w.stride) {
    if (s <= 0) throw UserError("non-positive stride is not supported");
  }
}

// Without a batch dimension x is a batch of one.
Value convolution(Context& ctx, Value x, Value weight, const std::optional<Value>& bias,
                  const Dims& stride, const Dims& padding, const Dims& dilation, bool transposed,
                  const Dims& output_padding, int64_t groups) {
  require_conv_dtypes(x, weight);
  const Window w = window_of(weight, stride, padding, dilation, transposed, output_padding, groups);
  const bool batched = x.rank() == weight.rank();
  if (!batched) x = hlo::unsqueeze(x, 0);
  require_positive_strides(w);
  Value out = transposed ? spread(ctx, x, weight, w, transposed_sizes(x, weight, w))
                         : correlate(ctx, x, weight, w, plain_sizes(x, weight, w));
  if (bias) {
    Dims channel(out.rank(), 1);
    channel[1] = out.dim(1);
    out = out + convert(reshape(*bias, channel), out.dtype());
  }
  out = convert(out, x.dtype());
  return batched ? out : hlo::squeeze(out, {0});
}

// Gradients of x, weight, bias, those asked for. Complex: conjugated, as PyTorch's are.
Values convolution_backward(Context& ctx, Value grad, Value x, Value weight, const Dims& stride,
                            const Dims& padding, const Dims& dilation, bool transposed,
                            const Dims& output_padding, int64_t groups,
                            const std::vector<bool>& mask) {
  const Window w = window_of(weight, stride, padding, dilation, transposed, output_padding, groups);
  const bool batched = x.rank() == weight.rank();
  if (!batched) {
    x = hlo::unsqueeze(x, 0);
    grad = hlo::unsqueeze(grad, 0);
  }
  Value dx, dweight, dbias;
  if (mask[0]) {
    Value k = conj(weight);
    dx = convert(transposed ? correlate(ctx, grad, k, w, spatial_sizes(x))
                            : spread(ctx, grad, k, w, spatial_sizes(x)),
                 x.dtype());
    if (!batched) dx = hlo::squeeze(dx, {0});
  }
  if (mask[1]) {
    dweight = transposed ? weight_gradient(ctx, grad, conj(x), w, weight.dims())
                         : weight_gradient(ctx, conj(x), grad, w, weight.dims());
    dweight = convert(dweight, weight.dtype());
  }
  if (mask[2])
    dbias = convert(sum(convert(grad, accumulate_type(grad.dtype())), other_dims({1}, grad.rank())),
                    grad.dtype());
  return {dx, dweight, dbias};
}

}  // namespace

void register_conv(Registry& r) {
  r.add("aten::convolution", convolution);
  r.alias("aten::convolution_overrideable", "aten::convolution");
  r.add("aten::convolution_backward_overrideable", convolution_backward);
  r.add("aten::convolution_backward",
        [](Context& ctx, Value grad, Value x, Value weight, std::optional<Dims> /*bias_sizes*/,
           const Dims& stride, const Dims& padding, const Dims& dilation, bool transposed,
           const Dims& output_padding, int64_t groups, const std::vector<bool>& mask) {
          return convolution_backward(ctx, grad, x, weight, stride, padding, dilation, transposed,
                                      output_padding, groups, mask);
        });
}

}  // namespace torch_tpu::lower
