// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "lower/families.h"
#include "lower/maths.h"
#include "lower/product.h"
#include "lower/registry.h"

// Scaled dot-product attention and its gradients:
//   out = dropout(softmax(q k^T scale + bias)) v,    scale = 1 / sqrt(e) unless given.
//   q  [b, h, lq, e]     k  [b, hk, lk, e]     v  [b, hk, lk, ev]     h a multiple of hk:
//   consecutive query heads share a key head bias  broadcasts to [b, h, lq, lk]; floating: added;
//   bool: true takes part is_causal  query i sees keys 0..i, also when lq and lk differ (PyTorch
//   aligns at the top left)
// Scores, softmax and sums are in f32 for 16-bit inputs. A query that may see no key gives zeros,
// as CPU's does; NaN spreads.
namespace torch_tpu::lower {
namespace {

using hlo::bitcast_convert;
using hlo::convert;
using hlo::exp;
using hlo::keep_dims;
using hlo::max_unless_nan;
using hlo::reshape;
using hlo::select;
using hlo::sum;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// All arrays are handled as [b, hk, g, l, .], g = h / hk, so that keys and values of shared heads
// are never copied.
struct Shape {
  int64_t b, h, hk, g, lq, lk, e;
  Shape(Value q, Value k)
      : b(q.dim(0)),
        h(q.dim(1)),
        hk(k.dim(1)),
        g(hk == 0 ? 1 : h / hk),
        lq(q.dim(2)),
        lk(k.dim(2)),
        e(q.dim(3)) {}
  Value split(Value x) const { return reshape(x, {b, hk, g, lq, x.dim(3)}); }  // of q's kind
  Value join(Value x, int64_t last) const { return reshape(x, {b, h, lq, last}); }
};

// [b, hk, g, lq, .] with [b, hk, lk, .]: contracts the last of both.
const hlo::DotDims kRowsWithRows{{0, 1}, {0, 1}, {4}, {3}};
// [b, hk, g, lq, lk] with [b, hk, lk, .]
const hlo::DotDims kWeightsWithKeys{{0, 1}, {0, 1}, {4}, {2}};
// [b, hk, g, lq, lk] with [b, hk, g, lq, .]: sums over the queries of all heads of the group
const hlo::DotDims kOverQueries{{0, 1}, {0, 1}, {2, 3}, {2, 3}};

// bias, aligned with scores: [b or 1, hk or 1, g or 1, lq or 1, lk or 1].
Value aligned(Value bias, const Shape& s) {
  Dims dims = bias.dims();
  dims.insert(dims.begin(), 4 - dims.size(), 1);
  const int64_t h = dims[1];
  return reshape(bias, {dims[0], h == 1 ? 1 : s.hk, h == 1 ? 1 : s.g, dims[2], dims[3]});
}

Value scores(const Context& ctx, const Shape& s, Value q, Value k, const std::optional<Value>& bias,
             bool is_causal, double scale) {
  Value x = product(ctx, s.split(q), k, kRowsWithRows) * scale;
  Value hidden = scalar(x, -kInfinity);
  if (bias && bias->dtype() == DType::pred) {
    x = select(aligned(*bias, s), x, hidden);
  } else if (bias) {
    x = x + convert(aligned(*bias, s), x.dtype());
  }
  if (is_causal) {
    const hlo::Type square{DType::s32, {s.lq, s.lk}};
    Value visible = hlo::iota(x.builder(), square, 1) <= hlo::iota(x.builder(), square, 0);
    x = select(visible, x, hidden);
  }
  return x;
}

// Softmax over keys, zeros where a row is all -inf, and log(sum(exp(row))).
struct Softmax {
  Value weights, logsumexp;
};
Softmax softmax(Value x) {
  const Dims keys{4};
  Value m = max_unless_nan(x, keys, keep_dims);
  m = select(m == -kInfinity, hlo::zeros_like(m), m);
  Value e = exp(x - m);
  Value total = sum(e, keys, keep_dims);
  return {select(total == 0, hlo::zeros_like(x), e / total), m + hlo::log(total)};
}

// Dropout's mask from the generator's state: 1 / (1 - p) where a weight is kept, else 0.
Value dropout_factor(Value state, Value like, double p) {
  Value bits = hlo::rng_bit_generator(state, {DType::u32, like.dims()}).second;
  const auto threshold = static_cast<int64_t>(std::min(std::ldexp(p, 32), std::ldexp(1.0, 32) - 1));
  Value keep = bits >= hlo::constant(bits.builder(), DType::u32, threshold);
  return select(keep, scalar(like, p < 1 ? 1 / (1 - p) : 0), scalar(like, 0));
}

double scale_or_default(std::optional<double> scale, const Shape& s) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(s.e)));
}

// Results as the schema's: output (q's dtype), logsumexp f32 [b, h, lq], no cumulative lengths,
// (two integers: the layer above), the generator's state as seed and offset (s64, rank 0; zeros
// without dropout), no debug mask.
Values attention(Context& ctx, Value q, Value k, Value v, const std::optional<Value>& bias,
                 double dropout_p, bool is_causal, Ignored, std::optional<double> scale) {
  const Shape s(q, k);
  auto [weights, logsumexp] =
      softmax(scores(ctx, s, q, k, bias, is_causal, scale_or_default(scale, s)));
  Value seed = hlo::constant(q.builder(), DType::s64, 0), offset = seed;
  if (dropout_p > 0) {
    Value state = ctx.draw(weights.numel());
    auto word = [&](int64_t i) {
      return bitcast_convert(reshape(hlo::slice_in_dim(state, 0, i, i + 1), {}), DType::s64);
    };
    seed = word(0);
    offset = word(1);
    weights = weights * dropout_factor(state, weights, dropout_p);
  }
  Value out = product(ctx, convert(weights, v.dtype()), v, kWeightsWithKeys);
  const Value none;
  return {convert(s.join(out, v.dim(3)), q.dtype()),
          convert(reshape(logsumexp, {s.b, s.h, s.lq}), DType::f32),
          none,
          none,
          none,
          none,
          seed,
          offset,
          none};
}

// Sums x over the dimensions in which `dims` (same rank) has 1.
Value sum_to(Value x, const Dims& dims) {
  Dims stretched;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (dims[d] == 1 && x.dim(d) != 1) stretched.push_back(d);
  }
  return sum(x, stretched, keep_dims);
}

// Gradients of q, k, v, bias, those asked for. The weights are formed again from q and k, and
// dropout's mask from seed and offset; with w the weights, d the mask and G = dL/dout:
//   dv = (w d)^T G,   dw = (G v^T) d,   dscores = w (dw - sum_keys(dw w)),   dq = dscores k scale,
//   dk = dscores^T q scale
Values attention_backward(Context& ctx, Value grad, Value q, Value k, Value v,
                          const std::optional<Value>& bias, const std::vector<bool>& mask, Ignored,
                          Ignored, Ignored, Ignored, Ignored, Ignored, double dropout_p,
                          bool is_causal, const std::optional<Value>& seed,
                          const std::optional<Value>& offset, std::optional<double> scale_) {
  const Shape s(q, k);
  const double scale = scale_or_default(scale_, s);
  Value weights = softmax(scores(ctx, s, q, k, bias, is_causal, scale)).weights;
  Value g = s.split(grad);
  Value dropped = weights, dweights = product(ctx, g, v, kRowsWithRows);
  if (dropout_p > 0) {
    auto word = [](Value x) { return reshape(bitcast_convert(x, DType::u64), {1}); };
    Value factor =
        dropout_factor(hlo::concatenate({word(*seed), word(*offset)}, 0), weights, dropout_p);
    dropped = weights * factor;
    dweights = dweights * factor;
  }
  Value dscores = weights * (dweights - sum(dweights * weights, {4}, keep_dims));
  Value rounded = convert(dscores, q.dtype());
  Value dq, dk, dv, dbias;
  if (mask[0])
    dq = convert(s.join(product(ctx, rounded, k, kWeightsWithKeys) * scale, s.e), q.dtype());
  if (mask[1]) dk = convert(product(ctx, rounded, s.split(q), kOverQueries) * scale, k.dtype());
  if (mask[2])
    dv = convert(product(ctx, convert(dropped, grad.dtype()), g, kOverQueries), v.dtype());
  if (mask[3] && bias)
    dbias =
        convert(reshape(sum_to(dscores, aligned(*bias, s).dims()), bias->dims()), bias->dtype());
  return {dq, dk, dv, dbias};
}

}  // namespace

void register_attention(Registry& r) {
  r.add_random("aten::_scaled_dot_product_fused_attention_overrideable", attention);
  r.add("aten::_scaled_dot_product_fused_attention_overrideable_backward", attention_backward);
}

}  // namespace torch_tpu::lower
