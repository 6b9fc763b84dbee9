// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorUtils.h>
#include <ATen/native/LossMulti.h>
#include <ATen/native/cpu/mixed_data_type.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/result_type.h>

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

// Parameters are of the input's dtype, or float32 to a 16-bit input.
void mixed_dtypes(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (at::native::is_mixed_type(x, weight, bias)) {
    at::native::check_mixed_data_type(x, weight, bias);
  } else {
    TORCH_CHECK(!bias.defined() || bias.scalar_type() == x.scalar_type(), "expected scalar type ",
                x.scalar_type(), " but found ", bias.scalar_type());
  }
}

void layer_norm(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), weight = optional_tensor(a[2]),
                   bias = optional_tensor(a[3]);
  at::native::_check_layer_norm_inputs(x, a[1].toIntVector(), weight, bias);
  mixed_dtypes(x, weight, bias);
}

void group_norm(CheckArgs a) {
  mixed_dtypes(a[0].toTensor(), optional_tensor(a[1]), optional_tensor(a[2]));
}

// native_batch_norm: weight, bias, running mean and variance.
void batch_norm(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), weight = optional_tensor(a[1]),
                   bias = optional_tensor(a[2]), mean = optional_tensor(a[3]),
                   var = optional_tensor(a[4]);
  TORCH_CHECK_VALUE(mean.defined() == var.defined(),
                    "running_mean and running_var must either both be None or neither be None");
  if (at::native::is_mixed_type(x, weight, bias, mean, var))
    at::native::check_mixed_data_type(x, weight, bias, mean, var);
}

void multi_margin_loss(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &target = a[1].toTensor();
  int64_t frames = 0, dim = 0;
  at::native::multi_margin_loss_shape_check(frames, dim, x.dim(), x, target, optional_tensor(a[4]));
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ",
              target.scalar_type());
}

void multilabel_margin_loss(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &target = a[1].toTensor();
  int64_t frames = 0, dim = 0;
  at::native::multilabel_margin_loss_shape_check(frames, dim, x.dim(), x, target);
}

void gelu(CheckArgs a) {
  const std::string& approximate = a[1].toStringRef();
  TORCH_CHECK(approximate == "none" || approximate == "tanh",
              "approximate argument must be either none or tanh.");
}

void embedding_renorm(CheckArgs a) {
  at::checkDim("embedding_renorm_", at::TensorArg(a[0].toTensor(), "self", 1), 2);
  at::checkScalarTypes("embedding_renorm_", at::TensorArg(a[1].toTensor(), "indices", 2),
                       {at::kLong, at::kInt});
}

void embedding(CheckArgs a) { TORCH_CHECK(a[0].toTensor().dim() == 2, "'weight' must be 2-D"); }

// self, target: what CPU writes is of the target's dtype.
void binary_cross_entropy_with_logits(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &target = a[1].toTensor();
  const at::ScalarType t = at::result_type(x, target);
  TORCH_CHECK(c10::canCast(t, target.scalar_type()), "result type ", t,
              " can't be cast to the desired output type ", target.scalar_type());
  if (!at::isFloatingType(x.scalar_type())) refuse_dtype("log_sigmoid_cpu", x.scalar_type());
}

void binary_cross_entropy(CheckArgs a) {
  const at::ScalarType x = a[0].toTensor().scalar_type(), target = a[1].toTensor().scalar_type();
  TORCH_CHECK(x == target, "Found dtype ", target, " but expected ", x);
}

// self [N, C, H, W], target [N, H, W], weight.
void nll_loss2d(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &target = a[1].toTensor(), weight = optional_tensor(a[2]);
  TORCH_CHECK(
      target.dim() == 3,
      "only batches of spatial targets supported (3D tensors) but got targets of dimension: ",
      target.dim());
  TORCH_CHECK(x.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got input of dimension: ",
              x.dim());
  TORCH_CHECK(!weight.defined() || weight.numel() == x.size(1),
              "weight tensor should be defined either for all or no classes");
  TORCH_CHECK(
      x.size(0) == target.size(0) && x.size(2) == target.size(1) && x.size(3) == target.size(2),
      "size mismatch (got input: ", x.sizes(), " , target: ", target.sizes());
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ",
              target.scalar_type());
}

}  // namespace

void add_norm_loss_checks(CheckTable& table) {
  table.insert({
      {"aten::binary_cross_entropy", binary_cross_entropy},
      {"aten::binary_cross_entropy_with_logits", binary_cross_entropy_with_logits},
      {"aten::nll_loss2d_forward", nll_loss2d},
      {"aten::native_layer_norm", layer_norm},
      {"aten::native_group_norm", group_norm},
      {"aten::native_batch_norm", batch_norm},
      {"aten::_native_batch_norm_legit", batch_norm},
      {"aten::multi_margin_loss", multi_margin_loss},
      {"aten::multilabel_margin_loss_forward", multilabel_margin_loss},
      {"aten::gelu", gelu},
      {"aten::gelu_backward", [](CheckArgs a) { gelu(a + 1); }},
      {"aten::embedding", embedding},
      {"aten::embedding_renorm_", embedding_renorm},
  });
}

}  // namespace torch_tpu::aten
