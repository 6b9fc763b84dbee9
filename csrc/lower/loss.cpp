// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/maths.h"
#include "lower/promote.h"
#include "lower/registry.h"
#include "lower/require.h"

// Loss functions. Each is a formula for one element (or one sample), then a reduction:
//   none (0)  as it is      mean (1)  sum / n, NaN when n = 0      sum (2)
// Computed and summed in f32 for 16-bit inputs, rounded once.
namespace torch_tpu::lower {
namespace {

using hlo::abs;
using hlo::accumulate_type;
using hlo::convert;
using hlo::exp;
using hlo::log;
using hlo::reshape;
using hlo::select;
using hlo::sum;

enum class Reduction : int64_t { none, mean, sum };

Value widen(Value x) { return convert(x, accumulate_type(x.dtype())); }

Value reduce(Value x, int64_t reduction) {
  if (static_cast<Reduction>(reduction) == Reduction::none) return x;
  Value total = sum(x, all_dims(x));
  return static_cast<Reduction>(reduction) == Reduction::mean
             ? total / static_cast<double>(x.numel())
             : total;
}

// What an element's gradient is multiplied with: the reduction's own derivative times dL/dout.
// Broadcasts to x.
Value reduced_grad(Value grad, Value x, int64_t reduction) {
  grad = convert(grad, x.dtype());
  return static_cast<Reduction>(reduction) == Reduction::mean
             ? grad / static_cast<double>(x.numel())
             : grad;
}

// ---- losses of two equal arrays
// -----------------------------------------------------------------------------------

// Both in their common dtype, widened; `type` is what the result is rounded to.
struct Pair {
  Value x, y;
  DType type;
};
Pair pair(const std::string& kernel, Value x, Value target) {
  auto [a, b] = promoted(x, target);
  require_inexact(kernel, a);
  return {widen(a), widen(b), a.dtype()};
}

// (x - y)^2
Value mse_loss(Value x, Value target, int64_t reduction) {
  auto [a, b, type] = pair("mse_cpu", x, target);
  return convert(reduce(square(a - b), reduction), type);
}
Value mse_loss_backward(Value grad, Value x, Value target, int64_t reduction) {
  auto [a, b, type] = pair("mse_backward_cpu_out", x, target);
  Value d = a - b;
  return convert(d * 2.0 * reduced_grad(grad, d, reduction), type);
}

// d = |x - y|:  d^2 / (2 beta) below beta, d - beta / 2 above. beta = 0 is the absolute error.
Value smooth_l1_loss(Value x, Value target, int64_t reduction, Value beta) {
  auto [a, b, type] = pair("smooth_l1_cpu", x, target);
  Value d = abs(a - b);
  beta = convert(beta, d.dtype());
  return convert(reduce(select(d < beta, square(d) * 0.5 / beta, d - beta * 0.5), reduction), type);
}
Value smooth_l1_loss_backward(Value grad, Value x, Value target, int64_t reduction, Value beta) {
  auto [a, b, type] = pair("smooth_l1_backward_cpu_out", x, target);
  Value d = a - b;
  beta = convert(beta, d.dtype());
  Value slope = select(abs(d) < beta, d / beta, hlo::sign(d));
  return convert(slope * reduced_grad(grad, d, reduction), type);
}

// d = |x - y|:  d^2 / 2 up to delta, delta (d - delta / 2) above. In x's dtype, as on CPU, whose
// other losses of two dtypes promote.
Value huber_loss(Value x, Value target, int64_t reduction, Value delta) {
  auto [a, b, promoted_type] = pair("huber_cpu", x, target);
  Value d = abs(a - b);
  delta = convert(delta, d.dtype());
  return convert(reduce(select(d <= delta, square(d) * 0.5, delta * (d - delta * 0.5)), reduction),
                 x.dtype());
}
Value huber_loss_backward(Value grad, Value x, Value target, int64_t reduction, Value delta) {
  auto [a, b, type] = pair("huber_backward_cpu_out", x, target);
  Value d = a - b;
  delta = convert(delta, d.dtype());
  Value slope = select(abs(d) <= delta, d, hlo::sign(d) * delta);
  return convert(slope * reduced_grad(grad, d, reduction), type);
}

// ---- binary cross entropy
// ---------------------------------------------------------------------------------------

Value weighted(Value loss, const std::optional<Value>& weight) {
  return weight ? loss * convert(*weight, loss.dtype()) : loss;
}

// -(y log x + (1 - y) log(1 - x)) weight, each logarithm at least -100. x outside [0, 1] is
// reported.
Value binary_cross_entropy(Context& ctx, Value x, Value target, std::optional<Value> weight,
                           int64_t reduction) {
  require_floating("binary_cross_entropy", x);
  Value a = widen(x), y = convert(target, a.dtype());
  Value inside = (a >= 0) & (a <= 1);
  ctx.builder.check(hlo::any(~inside, all_dims(inside)),
                    "RuntimeError: all elements of input should be between 0 and 1");
  Value loss = (y - 1.0) * maximum(hlo::log_plus_one(-a), -100) - y * maximum(log(a), -100);
  return convert(reduce(weighted(loss, weight), reduction), x.dtype());
}
// (x - y) / max((1 - x) x, 1e-12) weight
Value binary_cross_entropy_backward(Value grad, Value x, Value target, std::optional<Value> weight,
                                    int64_t reduction) {
  Value a = widen(x), y = convert(target, a.dtype());
  Value slope = weighted((a - y) / maximum((1.0 - a) * a, 1e-12), weight);
  return convert(slope * reduced_grad(grad, slope, reduction), x.dtype());
}

// (1 - y) x + c softplus(-x), c = 1 + (pos_weight - 1) y: binary cross entropy of the logistic
// function of x, without its overflow.
Value binary_cross_entropy_with_logits(Value x, Value target, std::optional<Value> weight,
                                       std::optional<Value> pos_weight, int64_t reduction) {
  Value a = convert(x, accumulate_type(promote_types(x.dtype(), target.dtype())));
  Value y = convert(target, a.dtype());
  Value softplus = hlo::log_plus_one(exp(-abs(a))) + maximum(-a, 0);
  if (pos_weight) softplus = softplus * (1.0 + (convert(*pos_weight, a.dtype()) - 1.0) * y);
  return convert(reduce(weighted((1.0 - y) * a + softplus, weight), reduction), target.dtype());
}

// ---- negative log likelihood
// --------------------------------------------------------------------------------------

// x [n, c, *] or [c], target [n, *] or []: x is seen as [outer, c, inner] and target as [outer,
// inner].
struct Classes {
  int64_t outer, c, inner;
  Dims samples;  // target's own shape
  explicit Classes(Value x, Value target) : outer(1), c(x.dim(0)), inner(1) {
    if (x.rank() < 2) return;  // one sample, whose target may be [1]
    samples = target.dims();
    outer = x.dim(0);
    c = x.dim(1);
    inner = 1;
    for (int64_t d = 2; d < x.rank(); ++d) inner *= x.dim(d);
  }
  Dims flat() const { return {outer, c, inner}; }
};

// For each sample, as [outer, inner]: its class and its weight (both 0 where it is ignored), and
// whether it is used.
struct Targets {
  Value index, weight, used;
};
Targets targets(Context& ctx, const Classes& s, Value target, const std::optional<Value>& weight,
                int64_t ignore_index, DType acc) {
  if (target.dtype() != DType::s64 && target.dtype() != DType::u8) {
    throw UserError("expected target dtype to be Long or Byte, but got " +
                    std::string(scalar_type_name(target.dtype())));
  }
  Value t = reshape(convert(target, DType::s64), {s.outer, s.inner});
  Value used = t != scalar(t, static_cast<double>(ignore_index));
  Value bad = used & ((t < 0) | (t >= static_cast<double>(s.c)));
  ctx.builder.check(s.c == 0 ? hlo::any(bad, {0, 1}) : first_wrong(bad, t),
                    s.c == 0 ? "Target 0 is out of bounds." : "Target {0} is out of bounds.");
  t = hlo::clamp(scalar(t, 0), select(used, t, scalar(t, 0)),
                 scalar(t, static_cast<double>(std::max<int64_t>(s.c - 1, 0))));
  Value w = hlo::full(t.builder(), {acc, t.dims()}, 1);
  if (weight) w = reshape(hlo::take(convert(*weight, acc), t), t.dims());
  return {t, select(used, w, hlo::zeros_like(w)), used};
}

// -weight[t] x[t] for each sample's class t; samples of `ignore_index` count for nothing.
//   results  out, and the sum of the weights (what `mean` divides by); for reduction none
//            0 of several samples, the one's weight of one
// A target outside [0, c) is reported.
std::pair<Value, Value> nll_loss_forward(Context& ctx, Value x, Value target,
                                         std::optional<Value> weight, int64_t reduction,
                                         int64_t ignore_index) {
  require_floating("nll_loss_out_frame", x);
  const Classes s(x, target);
  const DType acc = accumulate_type(x.dtype());
  auto [t, w, used] = targets(ctx, s, target, weight, ignore_index, acc);
  const hlo::Type place{DType::s64, {s.outer, s.inner}};
  Value row = hlo::iota(ctx.builder, place, 0), column = hlo::iota(ctx.builder, place, 1);
  Value loss = hlo::zeros_like(w);
  if (x.numel() > 0) {
    Value at = (row * static_cast<double>(s.c) + t) * static_cast<double>(s.inner) + column;
    Value picked = convert(reshape(hlo::take(x, at), w.dims()), acc);
    loss = select(used, -picked * w, loss);  // not 0 * inf
  }
  if (static_cast<Reduction>(reduction) == Reduction::none) {
    Value total = x.rank() == 1 ? reshape(w, {}) : hlo::constant(ctx.builder, acc, 0);
    return {convert(reshape(loss, s.samples), x.dtype()), convert(total, x.dtype())};
  }
  Value out = sum(loss, {0, 1}), total = sum(w, {0, 1});
  if (static_cast<Reduction>(reduction) == Reduction::mean) out = out / total;
  return {convert(out, x.dtype()), convert(total, x.dtype())};
}

// -weight[t] grad at each sample's class, 0 elsewhere; grad is divided by total_weight for `mean`.
Value nll_loss_backward(Context& ctx, Value grad, Value x, Value target,
                        std::optional<Value> weight, int64_t reduction, int64_t ignore_index,
                        Value total_weight) {
  const Classes s(x, target);
  const DType acc = accumulate_type(x.dtype());
  auto [t, w, used] = targets(ctx, s, target, weight, ignore_index, acc);
  Value g = convert(grad, acc);
  if (static_cast<Reduction>(reduction) == Reduction::none) g = reshape(g, w.dims());
  if (static_cast<Reduction>(reduction) == Reduction::mean) g = g / convert(total_weight, acc);
  Value hit = hlo::iota(ctx.builder, {DType::s64, s.flat()}, 1) == hlo::unsqueeze(t, 1);
  Value dx = hlo::broadcast_to(hlo::unsqueeze(-w * g, 1), s.flat());
  return convert(reshape(select(hit & hlo::unsqueeze(used, 1), dx, hlo::zeros_like(dx)), x.dims()),
                 x.dtype());
}

// ---- margins
// --------------------------------------------------------------------------------------------------------

// x [n, c] or [c] and target of one class a sample ([n] or []), as [n, c] and [n].
Value rows(Value x) { return x.rank() < 2 ? reshape(x, {1, x.numel()}) : x; }

struct Margins {
  Value z;       // margin - x[t] + x, [n, c]
  Value active;  // z > 0 and not the sample's own class
  Value own;     // [n, c], true at the sample's class
  Value weight;  // weight[t], [n, 1], or null
};
Margins margins(Context& ctx, Value x, Value target, Value margin,
                const std::optional<Value>& weight) {
  x = rows(x);
  Value t = reshape(target, {x.dim(0), 1});
  ctx.builder.check(hlo::any((t < 0) | (t >= static_cast<double>(x.dim(1))), {0, 1}),
                    "RuntimeError: target out of range");
  Value own = hlo::iota(ctx.builder, {t.dtype(), x.dims()}, 1) == t;
  Value at = sum(select(own, x, hlo::zeros_like(x)), {1}, hlo::keep_dims);
  Value z = convert(margin, x.dtype()) - at + x;
  Value w = weight ? reshape(hlo::take(convert(*weight, x.dtype()), t), t.dims()) : Value();
  return {z, (z > 0) & ~own, own, w};
}

void require_power(int64_t p) {
  if (p != 1 && p != 2) throw UserError("only p == 1 and p == 2 supported");
}

// sum over i != t of max(0, margin - x[t] + x[i])^p / c, times weight[t]; p is 1 or 2.
Value multi_margin_loss(Context& ctx, Value x, Value target, Number p, Value margin,
                        std::optional<Value> weight, int64_t reduction) {
  require_floating("multi_margin_loss", x);
  require_power(p.to_int());
  Margins m = margins(ctx, widen(x), target, margin, weight);
  Value term = p.to_int() == 1 ? m.z : square(m.z);
  if (m.weight) term = term * m.weight;
  const double c = m.z.dim(1);
  Value loss = sum(select(m.active, term, hlo::zeros_like(term)), {1}) / c;
  loss = reduce(loss, reduction);
  if (static_cast<Reduction>(reduction) == Reduction::none) loss = reshape(loss, target.dims());
  return convert(loss, x.dtype());
}

Value multi_margin_loss_backward(Context& ctx, Value grad, Value x, Value target, Number p,
                                 Value margin, std::optional<Value> weight, int64_t reduction) {
  require_power(p.to_int());
  Margins m = margins(ctx, widen(x), target, margin, weight);
  Value slope = p.to_int() == 1 ? hlo::ones_like(m.z) : m.z * 2.0;
  if (m.weight) slope = slope * m.weight;
  slope = select(m.active, slope, hlo::zeros_like(slope)) / static_cast<double>(m.z.dim(1));
  Value own = -sum(slope, {1}, hlo::keep_dims);
  Value dx = select(m.own, own, slope);
  Value g = convert(grad, dx.dtype());
  if (static_cast<Reduction>(reduction) == Reduction::none) g = reshape(g, {dx.dim(0), 1});
  if (static_cast<Reduction>(reduction) == Reduction::mean) g = g / static_cast<double>(dx.dim(0));
  return convert(reshape(dx * g, x.dims()), x.dtype());
}

// ---- several classes a sample
// ---------------------------------------------------------------------------------------

// target [n, c] lists classes, ended by the first -1. For each pair (listed class y, class i not
// listed): max(0, 1 - x[y] + x[i]) / c, summed.
struct Listed {
  Value x;          // [n, c]
  Value index;      // [n, c], the listed class at each place (0 after the end)
  Value valid;      // [n, c], before the end
  Value is_target;  // [n, c], pred: the class is listed
  Value hinge;      // [n, place, c]: 1 - x[y] + x[i]
  Value active;     // [n, place, c]: the pair counts and its hinge is positive
};
Listed listed(Context& ctx, Value x, Value target, const std::string& argument) {
  x = rows(widen(x));
  target = rows(target);
  const int64_t n = x.dim(0), c = x.dim(1);
  hlo::Builder& b = x.builder();
  Value outside = (target < -1) | (target >= static_cast<double>(c));
  ctx.builder.check(hlo::any(outside, {0, 1}),
                    "RuntimeError: argument " + argument + " 'target' is out of range");
  Value place = hlo::iota(b, {DType::s64, {n, c}}, 1);
  Value past = scalar(place, static_cast<double>(c));
  Value end = hlo::min(select(target < 0, place, past), {1}, hlo::keep_dims);
  Value valid = place < end;
  Value index = select(valid, convert(target, DType::s64), scalar(place, 0));
  Value match = (hlo::iota(b, {DType::s64, {n, c, c}}, 2) == hlo::unsqueeze(index, 2)) &
                hlo::unsqueeze(valid, 2);
  Value is_target = hlo::any(match, {1});
  Value wide = hlo::broadcast_to(hlo::unsqueeze(x, 1), {n, c, c});
  Value at = sum(select(match, wide, hlo::zeros_like(wide)), {2}, hlo::keep_dims);
  Value hinge = 1.0 - at + wide;
  Value active = hlo::unsqueeze(valid, 2) & ~hlo::unsqueeze(is_target, 1) & (hinge > 0);
  return {x, index, valid, is_target, hinge, active};
}

std::pair<Value, Value> multilabel_margin_loss_forward(Context& ctx, Value x, Value target,
                                                       int64_t reduction) {
  require_floating("multilabel_margin_loss_forward_out_frame", x);
  Listed l = listed(ctx, x, target, "#2");
  Value loss = sum(select(l.active, l.hinge, hlo::zeros_like(l.hinge)), {1, 2}) /
               static_cast<double>(l.x.dim(1));
  loss = reduce(loss, reduction);
  if (static_cast<Reduction>(reduction) == Reduction::none)
    loss = reshape(loss, x.rank() < 2 ? Dims{} : Dims{x.dim(0)});
  return {convert(loss, x.dtype()), convert(reshape(l.is_target, target.dims()), x.dtype())};
}

Value multilabel_margin_loss_backward(Context& ctx, Value grad, Value x, Value target,
                                      int64_t reduction, Ignored /*is_target*/) {
  Listed l = listed(ctx, x, target, "#3");
  const int64_t n = l.x.dim(0), c = l.x.dim(1);
  Value pairs = convert(l.active, l.x.dtype()) / static_cast<double>(c);
  Value up = sum(pairs, {1});                       // of the classes not listed
  Value down = hlo::unsqueeze(sum(pairs, {2}), 2);  // of each listed place
  Value own = hlo::iota(l.x.builder(), {DType::s64, {n, c, c}}, 2) == hlo::unsqueeze(l.index, 2);
  Value spread = hlo::broadcast_to(down, {n, c, c});
  Value dx = up - sum(select(own, spread, hlo::zeros_like(spread)), {1});
  Value g = convert(grad, dx.dtype());
  if (static_cast<Reduction>(reduction) == Reduction::none) g = reshape(g, {n, 1});
  if (static_cast<Reduction>(reduction) == Reduction::mean) g = g / static_cast<double>(n);
  return convert(reshape(dx * g, x.dims()), x.dtype());
}

}  // namespace

void register_loss(Registry& r) {
  r.add("aten::mse_loss", mse_loss);
  r.add("aten::mse_loss_backward", mse_loss_backward);
  r.add("aten::smooth_l1_loss", smooth_l1_loss);
  r.add("aten::smooth_l1_loss_backward", smooth_l1_loss_backward);
  r.add("aten::huber_loss", huber_loss);
  r.add("aten::huber_loss_backward", huber_loss_backward);
  r.add("aten::binary_cross_entropy", binary_cross_entropy);
  r.add("aten::binary_cross_entropy_backward", binary_cross_entropy_backward);
  r.add("aten::binary_cross_entropy_with_logits", binary_cross_entropy_with_logits);
  r.add("aten::nll_loss_forward", nll_loss_forward);
  r.add("aten::nll_loss_backward", nll_loss_backward);
  r.add("aten::nll_loss2d_forward", nll_loss_forward);
  r.add("aten::nll_loss2d_backward", nll_loss_backward);
  r.add("aten::multi_margin_loss", multi_margin_loss);
  r.add("aten::multi_margin_loss_backward", multi_margin_loss_backward);
  r.add("aten::multilabel_margin_loss_forward", multilabel_margin_loss_forward);
  r.add("aten::multilabel_margin_loss_backward", multilabel_margin_loss_backward);
}

}  // namespace torch_tpu::lower
