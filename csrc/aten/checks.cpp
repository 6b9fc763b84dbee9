// SPDX-License-Identifier: Apache-2.0
#include "aten/checks.h"

#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/PixelShuffle.h>
#include <ATen/native/im2col_shape_check.h>
#include <ATen/native/layer_norm.h>

#include <string>
#include <unordered_map>

namespace torch_tpu::aten {
namespace {

using Args = const c10::IValue*;

// In the CPU's words and order; the meta function has others, and divides by `groups`.
void convolution(Args a) {
  const at::Tensor &x = a[0].toTensor(), &w = a[1].toTensor();
  const bool transposed = a[6].toBool();
  const int64_t groups = a[8].toInt();
  TORCH_CHECK(groups > 0, "non-positive groups is not supported");
  if (x.dim() != w.dim() || w.dim() < 3) return;  // the meta function's matter
  for (int64_t padding : a[4].toIntVector())
    TORCH_CHECK(padding >= 0, "negative padding is not supported");
  TORCH_CHECK(w.size(0) >= groups, "Given groups=", groups, ", expected weight to be at least ",
              groups, " at dimension 0, but got weight of size ", w.sizes(), " instead");
  TORCH_CHECK(w.size(0) % groups == 0, "Given groups=", groups,
              ", expected weight to be divisible by ", groups,
              " at dimension 0, but got weight of size [", w.sizes(), "] instead");
  const int64_t in = transposed ? w.size(0) : w.size(1) * groups;
  const int64_t out = transposed ? w.size(1) * groups : w.size(0);
  const std::string given =
      transposed ? std::string("transposed=1") : "groups=" + std::to_string(groups);
  TORCH_CHECK(x.size(1) == in, "Given ", given, ", weight of size ", w.sizes(), ", expected input",
              x.sizes(), " to have ", in, " channels, but got ", x.size(1), " channels instead");
  for (int64_t stride : a[3].toIntVector())
    TORCH_CHECK(stride > 0, "non-positive stride is not supported");
  if (!a[2].isTensor() || !a[2].toTensor().defined()) return;
  const at::Tensor& bias = a[2].toTensor();
  TORCH_CHECK(bias.dim() == 1 && bias.size(0) == out, "Given ", transposed ? "transposed=1, " : "",
              "weight of size ", w.sizes(), ", expected bias to be 1-dimensional with ", out,
              " elements, but got bias of size ", bias.sizes(), " instead");
}

void layer_norm(Args a) {
  const auto tensor = [](const c10::IValue& v) {
    return v.isTensor() ? v.toTensor() : at::Tensor();
  };
  at::native::_check_layer_norm_inputs(a[0].toTensor(), a[1].toIntVector(), tensor(a[2]),
                                       tensor(a[3]));
}

void where(Args a) {
  const at::Tensor &x = a[1].toTensor(), &y = a[2].toTensor();
  at::infer_size(at::infer_size(a[0].toTensor().sizes(), x.sizes()), y.sizes());
}

void addmm(Args a) {
  const at::Tensor &x = a[1].toTensor(), &y = a[2].toTensor();
  if (x.dim() == 2 && y.dim() == 2 && x.size(1) == y.size(0))
    at::expand_size(a[0].toTensor(), {x.size(0), y.size(1)});
}

void uniform(Args a) {
  const double from = a[1].toDouble(), to = a[2].toDouble();
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from,
              " > to=", to);
}

void addr(Args a) {
  for (int i = 0; i < 3; ++i) {
    if (!at::isIntegralType(a[i].toTensor().scalar_type(), /*includeBool=*/true)) return;
  }
  TORCH_CHECK(!a[3].isDouble(),
              "For integral input tensors, argument beta must not be a floating point number.");
  TORCH_CHECK(!a[4].isDouble(),
              "For integral input tensors, argument alpha must not be a floating point number.");
}

void flip(Args a) {
  at::dim_list_to_bitset(a[1].toIntVector(), static_cast<size_t>(a[0].toTensor().dim()));
}

void mvlgamma(Args a) {
  TORCH_CHECK(a[0].toTensor().scalar_type() != at::kBool,
              "The input tensor may not be a boolean tensor.");
  TORCH_CHECK(a[1].toInt() >= 1, "p has to be greater than or equal to 1");
}

template <int N>
void adaptive_avg_pool(Args a) {
  const at::Tensor& x = a[0].toTensor();
  TORCH_CHECK(x.dim() == N + 1 || x.dim() == N + 2, "adaptive_avg_pool", N, "d(): Expected ", N + 1,
              "D or ", N + 2, "D tensor, but got ", x.sizes());
}

void grid_sampler_2d(Args a) {
  at::native::check_grid_sampler_common(a[0].toTensor(), a[1].toTensor());
  at::native::check_grid_sampler_2d(a[0].toTensor(), a[1].toTensor());
}

void grid_sampler_3d(Args a) {
  at::native::check_grid_sampler_common(a[0].toTensor(), a[1].toTensor());
  at::native::check_grid_sampler_3d(a[0].toTensor(), a[1].toTensor(), a[2].toInt());
}

void im2col(Args a) {
  const auto kernel = a[1].toIntVector(), dilation = a[2].toIntVector(),
             padding = a[3].toIntVector(), stride = a[4].toIntVector();
  if (kernel.size() != 2 || dilation.size() != 2 || padding.size() != 2 || stride.size() != 2)
    return;
  at::native::im2col_shape_check(a[0].toTensor(), at::Tensor(), kernel[0], kernel[1], dilation[0],
                                 dilation[1], padding[0], padding[1], stride[0], stride[1]);
}

void col2im(Args a) {
  const auto size = a[1].toIntVector(), kernel = a[2].toIntVector(), dilation = a[3].toIntVector(),
             padding = a[4].toIntVector(), stride = a[5].toIntVector();
  if (size.size() != 2 || kernel.size() != 2 || dilation.size() != 2 || padding.size() != 2 ||
      stride.size() != 2)
    return;
  at::native::col2im_shape_check(a[0].toTensor(), at::Tensor(), size[0], size[1], kernel[0],
                                 kernel[1], dilation[0], dilation[1], padding[0], padding[1],
                                 stride[0], stride[1]);
}

void pixel_shuffle(Args a) {
  at::native::check_pixel_shuffle_shapes(a[0].toTensor(), a[1].toInt());
}

void pixel_unshuffle(Args a) {
  at::native::check_pixel_unshuffle_shapes(a[0].toTensor(), a[1].toInt());
}

void stack(Args a) {
  const auto tensors = a[0].toListRef();
  for (size_t i = 1; i < tensors.size(); ++i) {
    TORCH_CHECK(tensors[i].toTensor().sizes() == tensors[0].toTensor().sizes(),
                "stack expects each tensor to be equal size, but got ",
                tensors[0].toTensor().sizes(), " at entry 0 and ", tensors[i].toTensor().sizes(),
                " at entry ", i);
  }
}

void roll(Args a) {
  const auto shifts = a[1].toIntVector(), dims = a[2].toIntVector();
  TORCH_CHECK(
      shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1) || shifts.empty(),
      "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
}

void trace(Args a) {
  TORCH_CHECK(a[0].toTensor().dim() == 2, "trace: expected a matrix, but got tensor with dim ",
              a[0].toTensor().dim());
}

void dot(Args a) {
  const at::Tensor &x = a[0].toTensor(), &y = a[1].toTensor();
  if (x.dim() != 1 || y.dim() != 1 || x.scalar_type() != y.scalar_type()) return;
  TORCH_CHECK(x.numel() == y.numel(), "inconsistent tensor size, expected tensor [", x.numel(),
              "] and src [", y.numel(), "] to have the same number of elements, but got ",
              x.numel(), " and ", y.numel(), " elements respectively");
}

void index_select(Args a) {
  TORCH_CHECK_INDEX(a[2].toTensor().dim() <= 1, "index_select(): Index is supposed to be a vector");
}

void masked_fill(Args a) {
  TORCH_CHECK(a[2].toTensor().dim() == 0,
              "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              a[2].toTensor().dim(), " dimension(s).");
}

void bucketize(Args a) {
  TORCH_CHECK(a[1].toTensor().dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
              a[1].toTensor().dim(), ")");
}

void gelu(Args a) {
  const std::string& approximate = a[1].toStringRef();
  TORCH_CHECK(approximate == "none" || approximate == "tanh",
              "approximate argument must be either none or tanh.");
}

void frexp(Args a) {
  TORCH_CHECK(a[0].toTensor().is_floating_point(),
              "torch.frexp() only supports floating-point dtypes");
}

void multinomial(Args a) {
  const at::Tensor& weights = a[0].toTensor();
  TORCH_CHECK(weights.dim() == 1 || weights.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(
      at::isFloatingType(weights.scalar_type()),
      "multinomial only supports floating-point dtypes for input, got: ", weights.scalar_type());
  TORCH_CHECK(a[1].toInt() > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(a[2].toBool() || a[1].toInt() <= weights.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
}

void random_from(Args a) {
  if (a[2].isNone()) return;
  TORCH_CHECK(a[1].toInt() < a[2].toInt(),
              "random_ expects 'from' to be less than 'to', but got from=", a[1].toInt(),
              " >= to=", a[2].toInt());
}

void normal(Args a) {
  TORCH_CHECK(a[2].toDouble() >= 0.0, "normal expects std >= 0.0, but found std ", a[2].toDouble());
}

void broadcast(Args a) { at::infer_size(a[0].toTensor().sizes(), a[1].toTensor().sizes()); }

// PyTorch's meta function of an in-place form without one of its own only returns `self`, and out=
// may have none: what TensorIterator refuses of the tensor that receives the result.
template <int kReceiver>
void receives_binary(Args a) {
  const at::Tensor &x = a[0].toTensor(), &to = a[kReceiver].toTensor();
  const bool is_tensor = a[1].isTensor();
  if (kReceiver == 0 && is_tensor) {
    const auto shape = at::infer_size(x.sizes(), a[1].toTensor().sizes());
    TORCH_CHECK(x.sizes() == at::IntArrayRef(shape), "output with shape ", x.sizes(),
                " doesn't match the broadcast shape ", at::IntArrayRef(shape));
  }
  const at::ScalarType t =
      is_tensor ? at::result_type(x, a[1].toTensor()) : at::result_type(x, a[1].toScalar());
  TORCH_CHECK(c10::canCast(t, to.scalar_type()), "result type ", t,
              " can't be cast to the desired output type ", to.scalar_type());
}

// Draws of continuous distributions into a tensor: the dtype first, as on CPU.
template <const char* kName, const char* kRange, int kArgument, bool (*kFits)(double)>
void draw(Args a) {
  if (!at::isFloatingType(a[0].toTensor().scalar_type())) return;
  const double v = a[kArgument].toDouble();
  TORCH_CHECK(kFits(v), kName, kRange, v);
}
bool is_positive(double v) { return v > 0.0; }
bool is_probability(double v) { return v > 0.0 && v < 1.0; }
constexpr char kExponential[] = "exponential_", kGeometric[] = "geometric_", kCauchy[] = "cauchy_",
               kLogNormal[] = "log_normal_", kLambda[] = " expects lambda > 0.0, but found lambda=",
               kP[] = " expects p to be in (0, 1), but got p=",
               kSigma[] = " expects sigma > 0.0, but found sigma=",
               kStd[] = " expects std > 0.0, but found std=";

const std::unordered_map<std::string, void (*)(Args)>& checks() {
  static const std::unordered_map<std::string, void (*)(Args)> table{
      {"aten::convolution", convolution},
      {"aten::convolution_overrideable", convolution},
      {"aten::native_layer_norm", layer_norm},
      {"aten::where.self", where},
      {"aten::addmm", addmm},
      {"aten::uniform", uniform},
      {"aten::flip", flip},
      {"aten::mvlgamma", mvlgamma},
      {"aten::addr", addr},
      {"aten::_add_relu.Tensor", broadcast},
      {"aten::_add_relu.out", receives_binary<3>},
      {"aten::_add_relu_.Tensor", receives_binary<0>},
      {"aten::_add_relu_.Scalar", receives_binary<0>},
      {"aten::_adaptive_avg_pool2d", adaptive_avg_pool<2>},
      {"aten::_adaptive_avg_pool3d", adaptive_avg_pool<3>},
      {"aten::grid_sampler_2d", grid_sampler_2d},
      {"aten::grid_sampler_3d", grid_sampler_3d},
      {"aten::im2col", im2col},
      {"aten::col2im", col2im},
      {"aten::pixel_shuffle", pixel_shuffle},
      {"aten::pixel_unshuffle", pixel_unshuffle},
      {"aten::stack", stack},
      {"aten::roll", roll},
      {"aten::trace", trace},
      {"aten::dot", dot},
      {"aten::index_select", index_select},
      {"aten::masked_fill.Tensor", masked_fill},
      {"aten::bucketize.Tensor", bucketize},
      {"aten::gelu", gelu},
      {"aten::gelu_backward", [](Args a) { gelu(a + 1); }},
      {"aten::frexp.Tensor", frexp},
      {"aten::multinomial", multinomial},
      {"aten::random.from", random_from},
      {"aten::normal_functional", normal},
      {"aten::exponential", draw<kExponential, kLambda, 1, is_positive>},
      {"aten::geometric", draw<kGeometric, kP, 1, is_probability>},
      {"aten::cauchy", draw<kCauchy, kSigma, 2, is_positive>},
      {"aten::log_normal", draw<kLogNormal, kStd, 2, is_positive>},
  };
  return table;
}

}  // namespace

void check_call(const OpPlan& plan, Args args) {
  const auto check = [&](const std::string& name) {
    const auto it = checks().find(name);
    if (it != checks().end()) it->second(args);
  };
  if (plan.name != plan.functional) check(plan.name);  // what only this form refuses
  check(plan.functional);
}

}  // namespace torch_tpu::aten
