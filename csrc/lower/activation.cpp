// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Activation functions and their gradients. g is the gradient of the output, x the input, y the
// output. Slopes, bounds and the like are run-time operands. Computed in f32 for 16-bit floats and
// rounded once. Which side of a kink NaN and the kink itself fall on is that of the CPU kernels:
// hence "!(x <= t)" written as select(x <= t, ..).
namespace torch_tpu::lower {
namespace {

Value zero_where(Value p, Value g) { return select(p, zeros_like(g), g); }
Value conj(Value x) { return hlo::is_complex(x.dtype()) ? complex(real(x), -imag(x)) : x; }

// ---- smooth
// ----------------------------------------------------------------------------------------------------
Value sigmoid_backward(Value g, Value y) { return g * conj((1.0 - y) * y); }
Value tanh_backward(Value g, Value y) { return g * conj(1.0 - y * y); }

// x sigmoid(x)
Value silu(Value x) {
  require_inexact("silu_cpu", x);
  return x * logistic(x);
}
Value silu_backward(Value g, Value x) {
  const Value s = logistic(x);
  return g * s * (1.0 + x * (1.0 - s));
}

// x tanh(log(1 + e^x))
Value mish(Value x) {
  require_floating("mish_cpu", x);
  return x * tanh(log_plus_one(exp(x)));
}
Value mish_backward(Value g, Value x) {
  const Value t = tanh(log_plus_one(exp(x)));
  return g * (t + x * logistic(x) * (1.0 - t * t));
}

// x Phi(x), or with "tanh" its approximation x/2 (1 + tanh u), u = sqrt(2 / pi) (x + 0.044715 x^3).
constexpr double kCubic = 0.044715;
const double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;

Value gelu(Value x, std::string approximate) {
  require_floating("GeluKernelImpl", x);
  if (approximate == "tanh") return 0.5 * x * (1.0 + tanh(kBeta * (x + kCubic * x * x * x)));
  return 0.5 * x * (1.0 + saturated_erf(x * (std::numbers::sqrt2 / 2)));
}
Value gelu_backward(Value g, Value x, std::string approximate) {
  require_floating("GeluBackwardKernelImpl", x);
  if (approximate == "tanh") {
    const Value t = tanh(kBeta * (x + kCubic * x * x * x));
    const Value du = kBeta * (1.0 + 3 * kCubic * x * x);
    return g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * du);
  }
  const Value cdf = 0.5 * (1.0 + saturated_erf(x * (std::numbers::sqrt2 / 2)));
  const Value pdf = exp(-0.5 * x * x) * (0.5 * kBeta);
  return g * (cdf + x * pdf);
}

// log(1 + e^(beta x)) / beta; x itself where beta x > threshold.
Value softplus(Value x, Value beta, Value threshold) {
  require_floating("softplus_cpu", x);
  const Value z = beta * x;
  return select(z > threshold, x, log_plus_one(exp(z)) / beta);
}
Value softplus_backward(Value g, Value x, Value beta, Value threshold) {
  const Value z = beta * x, e = exp(z);
  return select(z > threshold, g, g * e / (e + 1.0));
}

// (log sigmoid(x), e^-|x|): the second is what CPU's backward would want; ours computes it again.
std::pair<Value, Value> log_sigmoid_forward(Value x) {
  require_floating("log_sigmoid_cpu", x);
  const Value e = exp(-abs(x));
  return {minimum(x, 0) - log_plus_one(e), e};
}
// sigmoid(-x) = z / (1 + z) or 1 - z / (1 + z), z = e^-|x|
Value log_sigmoid_backward(Value g, Value x, Value /*buffer*/) {
  const Value z = exp(-abs(x)), s = z / (1.0 + z);
  return g * select(x < 0, 1.0 - s, s);
}

// log(x / (1 - x)), x first brought into [eps, 1 - eps] if eps is given.
Value logit(Value x, std::optional<Value> eps) {
  require_not_complex("logit_cpu", x);
  if (eps) x = hlo::minimum(hlo::maximum(x, *eps), 1.0 - *eps);
  return log(x / (1.0 - x));
}
// g / (x (1 - x)); outside the bounds 0 with eps, NaN without.
Value logit_backward(Value g, Value x, std::optional<Value> eps) {
  require_floating("logit_backward_cpu", x);
  const Value lo = eps ? *eps : scalar(x, 0);
  const Value outside = (x < lo) | (x > 1.0 - lo);
  return select(outside, eps ? scalar(g, 0) : nan_like(g), g / (x * (1.0 - x)));
}

// x > 0: scale x;  otherwise scale alpha (e^(input_scale x) - 1)
Value elu(Value x, Value alpha, Value scale, Value input_scale) {
  require_floating("elu_cpu", x);
  return select(x <= 0, exponential_minus_one(x * input_scale) * (alpha * scale), x * scale);
}
Value elu_backward(Value g, Value alpha, Value scale, Value input_scale, bool is_result, Value x) {
  const Value a = alpha * scale;
  const Value negative =
      is_result ? g * input_scale * (x + a) : g * input_scale * a * exp(x * input_scale);
  return select(x <= 0, negative, g * scale);
}

// ---- with kinks
// ------------------------------------------------------------------------------------------------
// clamp's refusal, which is by type NotImplementedError here.
void require_ordered(Value x) {
  require_not_complex_or("clamp is not supported for complex types", x,
                         UserError::Kind::not_implemented);
}

Value relu(Value x) {
  if (x.dtype() == DType::pred) throw UserError("Boolean inputs not supported for relu");
  require_ordered(x);
  return maximum(x, 0);
}

Value threshold(Value x, Value t, Value v) {
  require_real_number("threshold_cpu", x);
  return select(x <= t, v, x);
}
Value threshold_backward(Value g, Value x, Value t) {
  require_real_number("threshold_cpu", x);
  return zero_where(x <= t, g);
}

Value leaky_relu(Value x, Value slope) {
  require_floating("leaky_relu_cpu", x);
  return select(x > 0, x, x * slope);
}
Value leaky_relu_backward(Value g, Value x, Value slope, bool /*is_result: has the same sign*/) {
  require_floating("leaky_relu_backward_cpu", x);
  return select(x > 0, g, g * slope);
}

Value prelu(Value x, Value w) {
  require_floating("prelu_cpu", x);
  return select(x > 0, x, w * x);
}
std::pair<Value, Value> prelu_backward(Value g, Value x, Value w) {
  return {select(x > 0, g, w * g), zero_where(x > 0, x * g)};
}

Value hardtanh(Value x, Value lo, Value hi) {
  if (x.dtype() == DType::pred) throw UserError("Bool inputs not supported for hardtanh");
  require_ordered(x);
  return hlo::minimum(hlo::maximum(x, lo), hi);
}
Value hardtanh_backward(Value g, Value x, Value lo, Value hi) {
  return zero_where((x <= lo) | (x >= hi), g);
}

// min(max(x + 3, 0), 6) / 6
Value hardsigmoid(Value x) {
  require_floating("hardsigmoid_cpu", x);
  return minimum(maximum(x + 3, 0), 6) / 6;
}
Value hardsigmoid_backward(Value g, Value x) {
  require_floating("hardsigmoid_backward", x);
  return select((x > -3) & (x < 3), g / 6, zeros_like(g));
}

// x hardsigmoid(x)
Value hardswish(Value x) {
  require_floating("hardswish_cpu", x);
  return x * minimum(maximum(x + 3, 0), 6) / 6;
}
Value hardswish_backward(Value g, Value x) {
  require_floating("hardswish_backward_cpu", x);
  return zero_where(x <= -3, select(x < 3, g * (x / 3 + 0.5), g));
}

Value is_within(Value x, Value lambda) { return (x >= -lambda) & (x <= lambda); }

Value hardshrink(Value x, Value lambda) {
  require_floating("hardshrink_cpu", x);
  return zero_where(is_within(x, lambda), x);
}
// Both shrinks: 0 within [-lambda, lambda].
Value shrink_backward(Value g, Value x, Value lambda) {
  require_floating("shrink_backward_cpu", x);
  return zero_where(is_within(x, lambda), g);
}

// x moved toward 0 by lambda; within, x * 0 keeps NaN and the sign.
Value softshrink(Value x, Value lambda) {
  require_floating("softshrink_check", x);
  return select(x > lambda, x - lambda, select(x < -lambda, x + lambda, x * 0));
}

// ---- gated
// -----------------------------------------------------------------------------------------------------
std::pair<Value, Value> halves(Value x, int64_t dim) {
  const int64_t n = x.dim(dim) / 2;
  return {slice_in_dim(x, dim, 0, n), slice_in_dim(x, dim, n, 2 * n)};
}

// a sigmoid(b), x = [a, b] along `dim`
Value glu(Value x, int64_t dim) {
  require_floating("glu_cpu", x);
  const auto [a, b] = halves(x, wrap(dim, x.rank()));
  return a * logistic(b);
}
Value glu_backward(Value g, Value x, int64_t dim) {
  dim = wrap(dim, x.rank());
  const auto [a, b] = halves(x, dim);
  const Value s = logistic(b);
  return hlo::concatenate({g * s, g * a * s * (1.0 - s)}, dim);
}
// d(a sigmoid(b)) = da sigmoid(b) + y (1 - sigmoid(b)) db
Value glu_jvp(Value y, Value x, Value dx, int64_t dim) {
  dim = wrap(dim, x.rank());
  const auto [a, b] = halves(x, dim);
  const auto [da, db] = halves(dx, dim);
  const Value s = logistic(b);
  return da * s + y * (1.0 - s) * db;
}

}  // namespace

void register_activation(Registry& r) {
  const auto add = [&](const char* op, int operands, auto f) {
    r.pointwise(std::string("aten::") + op, Promote::arithmetic, operands, f);
  };
  add("sigmoid_backward", 2, sigmoid_backward);
  add("tanh_backward", 2, tanh_backward);
  add("silu", 1, silu);
  add("silu_backward", 2, silu_backward);
  add("mish", 1, mish);
  add("mish_backward", 2, mish_backward);
  add("gelu", 1, gelu);
  add("gelu_backward", 2, gelu_backward);
  add("softplus", 1, softplus);
  add("softplus_backward", 2, softplus_backward);
  add("log_sigmoid_forward", 1, log_sigmoid_forward);
  add("log_sigmoid_backward", 2, log_sigmoid_backward);
  r.pointwise("aten::logit", Promote::to_floating, 1, logit);
  add("logit_backward", 2, logit_backward);
  add("elu", 1, elu);
  add("elu_backward", 1, elu_backward);

  add("relu", 1, relu);
  add("threshold", 1, threshold);
  add("threshold_backward", 2, threshold_backward);
  add("leaky_relu", 1, leaky_relu);
  add("leaky_relu_backward", 2, leaky_relu_backward);
  add("_prelu_kernel", 2, prelu);
  add("_prelu_kernel_backward", 3, prelu_backward);
  add("hardtanh", 1, hardtanh);
  add("hardtanh_backward", 2, hardtanh_backward);
  add("hardsigmoid", 1, hardsigmoid);
  add("hardsigmoid_backward", 2, hardsigmoid_backward);
  add("hardswish", 1, hardswish);
  add("hardswish_backward", 2, hardswish_backward);
  add("hardshrink", 1, hardshrink);
  add("hardshrink_backward", 2, shrink_backward);
  add("softshrink", 1, softshrink);
  add("softshrink_backward", 2, shrink_backward);

  add("glu", 1, glu);
  add("glu_backward", 2, glu_backward);
  add("glu_jvp", 3, glu_jvp);
}

}  // namespace torch_tpu::lower
