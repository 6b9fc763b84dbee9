// SPDX-License-Identifier: Apache-2.0
// Meta functions that PyTorch 2.13 lacks: without them a trace runs the operator itself to learn
// the result's shape, and for a draw that moves the generator on. dtypes are the lowerings' to
// refuse.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <torch/library.h>

namespace torch_tpu::aten {
namespace {

at::Tensor broadcast_result(const at::Tensor& like, const at::Tensor& a, const at::Tensor& b) {
  return like.new_empty_symint(at::infer_size_symint(a.sym_sizes(), b.sym_sizes()));
}

at::Tensor sample_dirichlet(const at::Tensor& self, std::optional<at::Generator>) {
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}

at::Tensor dirichlet_grad(const at::Tensor& x, const at::Tensor& alpha, const at::Tensor& total) {
  return broadcast_result(x, broadcast_result(x, x, alpha), total);
}

at::Tensor standard_gamma_grad(const at::Tensor& self, const at::Tensor& output) {
  return broadcast_result(self, self, output);
}

at::Tensor binomial(const at::Tensor& count, const at::Tensor& prob, std::optional<at::Generator>) {
  TORCH_CHECK_VALUE(
      at::isFloatingType(count.scalar_type()),
      "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  TORCH_CHECK_VALUE(
      at::isFloatingType(prob.scalar_type()),
      "binomial only supports floating-point dtypes for prob, got: ", prob.scalar_type());
  return broadcast_result(count, count, prob);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("_sample_dirichlet", &sample_dirichlet);
  m.impl("_dirichlet_grad", &dirichlet_grad);
  m.impl("_standard_gamma_grad", &standard_gamma_grad);
  m.impl("binomial", &binomial);
}

}  // namespace torch_tpu::aten
