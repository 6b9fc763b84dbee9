// SPDX-License-Identifier: Apache-2.0
// solve, det and slogdet over LU. As on CPU the factorization that det and slogdet return is A^T's
// where A is real and contiguous: their gradients use it and decide by the same test which of the
// two it is, and a lowering does not see strides.
#include <ATen/Functions.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_tpu::aten {
namespace {

bool factor_transpose(const at::Tensor& a) { return a.is_contiguous() && !a.is_complex(); }

std::tuple<at::Tensor, at::Tensor, at::Tensor> factor(const at::Tensor& a) {
  return at::linalg_lu_factor_ex(factor_transpose(a) ? a.mT() : a, /*pivot=*/true,
                                 /*check_errors=*/false);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> solve_ex(const at::Tensor& a,
                                                                    const at::Tensor& b, bool left,
                                                                    bool check_errors) {
  at::native::checkFloatingOrComplex(a, "linalg.solve");
  at::native::squareCheckInputs(a, "linalg.solve");
  auto [lu, pivots, info] = at::linalg_lu_factor_ex(a, /*pivot=*/true, /*check_errors=*/false);
  if (check_errors) at::_linalg_check_errors(info, "torch.linalg.solve_ex", a.dim() == 2);
  TORCH_CHECK(a.scalar_type() == b.scalar_type(),
              "linalg.solve: Expected A and B to have the same dtype, but found A of type ",
              a.scalar_type(), " and B of type ", b.scalar_type(), " instead");
  const bool vector = at::native::linalg_solve_is_vector_rhs(a, b);
  at::native::checkInputsSolver(a, vector ? b.unsqueeze(-1) : b, left, "linalg.solve");
  const at::Tensor x =
      at::linalg_lu_solve(lu, pivots, vector ? b.unsqueeze(-1) : b, left, /*adjoint=*/false);
  return {vector ? x.squeeze(-1) : x, lu, pivots, info};
}

// Every exchange of two rows changes the sign.
at::Tensor sign_of(const at::Tensor& pivots) {
  const at::Tensor place = at::arange(1, pivots.size(-1) + 1, pivots.options());
  return at::ne(pivots, place).sum(-1).remainder(2).mul(-2).add(1);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> det_of(const at::Tensor& a) {
  at::native::checkFloatingOrComplex(a, "linalg.det");
  at::native::squareCheckInputs(a, "linalg.det");
  auto [lu, pivots, info] = factor(a);
  return {sign_of(pivots).mul(lu.diagonal(0, -2, -1).prod(-1)), lu, pivots};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> slogdet_of(const at::Tensor& a) {
  at::native::checkFloatingOrComplex(a, "linalg.slogdet");
  at::native::squareCheckInputs(a, "linalg.slogdet");
  auto [lu, pivots, info] = factor(a);
  const at::Tensor diagonal = lu.diagonal(0, -2, -1);
  return {diagonal.sgn().prod(-1).mul(sign_of(pivots)), diagonal.abs().log().sum(-1), lu, pivots};
}

at::Tensor& put(at::Tensor& out, const at::Tensor& value) {
  at::native::resize_output(out, value.sizes());
  return out.copy_(value);
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&> solve_ex_out(
    const at::Tensor& a, const at::Tensor& b, bool left, bool check_errors, at::Tensor& result,
    at::Tensor& lu, at::Tensor& pivots, at::Tensor& info) {
  auto [x, f, p, i] = solve_ex(a, b, left, check_errors);
  return {put(result, x), put(lu, f), put(pivots, p), put(info, i)};
}
std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> det_out(const at::Tensor& a, at::Tensor& result,
                                                          at::Tensor& lu, at::Tensor& pivots) {
  auto [x, f, p] = det_of(a);
  return {put(result, x), put(lu, f), put(pivots, p)};
}
std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&> slogdet_out(const at::Tensor& a,
                                                                           at::Tensor& sign,
                                                                           at::Tensor& logabsdet,
                                                                           at::Tensor& lu,
                                                                           at::Tensor& pivots) {
  auto [s, l, f, p] = slogdet_of(a);
  return {put(sign, s), put(logabsdet, l), put(lu, f), put(pivots, p)};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_linalg_solve_ex", &solve_ex);
  m.impl("_linalg_solve_ex.result", &solve_ex_out);
  m.impl("_linalg_det", &det_of);
  m.impl("_linalg_det.result", &det_out);
  m.impl("_linalg_slogdet", &slogdet_of);
  m.impl("_linalg_slogdet.sign", &slogdet_out);
}

}  // namespace torch_tpu::aten
