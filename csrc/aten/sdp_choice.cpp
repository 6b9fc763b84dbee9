// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <torch/library.h>

// scaled_dot_product_attention asks this stub, not the operator _fused_sdp_choice, which backend to
// take: ours is the overrideable one, unless the user turned it off
// (torch.nn.attention.sdpa_kernel).
namespace torch_tpu::aten {
namespace {

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>&, double, bool, std::optional<double>, bool) {
  // The operator's schema is for [batch, heads, length, width]; other ranks are the math
  // composite's.
  const bool four = query.dim() == 4 && key.dim() == 4 && value.dim() == 4;
  const bool ours = four && at::globalContext().userEnabledOverrideableSDP();
  return static_cast<int64_t>(ours ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

// nn.TransformerEncoder asks this before it packs a padded batch into a nested tensor: there are
// none on tpu. It then computes the padded places too, where CPU gives zeros.
bool packs_padding(const at::Tensor&, const at::Tensor&) { return false; }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_tensor_from_mask_left_aligned", &packs_padding);
}

}  // namespace
}  // namespace torch_tpu::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_tpu::aten::choose)
}  // namespace at::native
