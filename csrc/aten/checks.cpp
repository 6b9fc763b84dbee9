// SPDX-License-Identifier: Apache-2.0
#include "aten/checks.h"

#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/layer_norm.h>

#include <unordered_map>

namespace torch_tpu::aten {
namespace {

using Args = const c10::IValue*;

void convolution(Args a) {
  const at::Tensor &x = a[0].toTensor(), &w = a[1].toTensor();
  const bool transposed = a[6].toBool();
  const int64_t groups = a[8].toInt();
  if (transposed || x.dim() != w.dim() || groups <= 0) return;  // the meta function's matter
  TORCH_CHECK(w.size(0) >= groups && w.size(0) % groups == 0, "Given groups=", groups,
              ", expected weight to be divisible by ", groups,
              " at dimension 0, but got weight of size ", w.sizes(), " instead");
  TORCH_CHECK(x.size(1) == w.size(1) * groups, "Given groups=", groups, ", weight of size ",
              w.sizes(), ", expected input", x.sizes(), " to have ", w.size(1) * groups,
              " channels, but got ", x.size(1), " channels instead");
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
  };
  return table;
}

}  // namespace

void check_call(const OpPlan& plan, Args args) {
  auto it = checks().find(plan.functional);
  if (it != checks().end()) it->second(args);
}

}  // namespace torch_tpu::aten
