// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace torch_tpu::aten {
namespace {

// Whether `x.data = y` may make the tensor object x hold y. Core's own answer knows no PrivateUse1,
// and then Module.to() makes a new Parameter at each place: tied weights come apart, and an
// optimizer made before the move keeps the old ones. Ours are stock tensors with a stock storage,
// as a CPU's are, so they may take each other's place.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto is_plain = [](const at::Tensor& t) {
    return t.layout() == at::kStrided && (t.device().is_cpu() || t.device().is_privateuseone()) &&
           t.key_set().has_any(c10::DispatchKeySet(c10::DispatchKey::Dense)) &&
           !t.key_set().has(c10::DispatchKey::Python);
  };
  return self.key_set() == from.key_set() || (is_plain(self) && is_plain(from));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
}

}  // namespace
}  // namespace torch_tpu::aten
