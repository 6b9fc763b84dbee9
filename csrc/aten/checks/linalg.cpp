// SPDX-License-Identifier: Apache-2.0
#include <ATen/ExpandUtils.h>

#include <algorithm>

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

void addmm(CheckArgs a) {
  const at::Tensor &x = a[1].toTensor(), &y = a[2].toTensor();
  if (x.dim() == 2 && y.dim() == 2 && x.size(1) == y.size(0))
    at::expand_size(a[0].toTensor(), {x.size(0), y.size(1)});
}

// CPU makes an addmm of all rows where they lie one after the other, and adds the bias otherwise.
void linear(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &w = a[1].toTensor(), bias = optional_tensor(a[2]);
  if (!bias.defined() || x.dim() == 0 || w.dim() != 2 || x.size(-1) != w.size(1)) return;
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = w.size(0);
  if (x.dim() <= 3 && x.is_contiguous()) {
    int64_t rows = 1;
    for (int64_t d = 0; d + 1 < x.dim(); ++d) rows *= x.size(d);
    at::expand_size(bias, {rows, w.size(0)});
  } else {
    const auto sum = at::infer_size(sizes, bias.sizes());
    TORCH_CHECK(sum == sizes, "output with shape ", at::IntArrayRef(sizes),
                " doesn't match the broadcast shape ", at::IntArrayRef(sum));
  }
}

// self is expanded to the product's shape.
void addbmm(CheckArgs a) {
  const at::Tensor &x = a[1].toTensor(), &y = a[2].toTensor();
  if (x.dim() == 3 && y.dim() == 3 && x.size(2) == y.size(1) && x.size(0) == y.size(0))
    at::expand_size(a[0].toTensor(), {x.size(1), y.size(2)});
}

void baddbmm(CheckArgs a) {
  const at::Tensor &x = a[1].toTensor(), &y = a[2].toTensor();
  if (x.dim() == 3 && y.dim() == 3 && x.size(2) == y.size(1) && x.size(0) == y.size(0))
    at::expand_size(a[0].toTensor(), {x.size(0), x.size(1), y.size(2)});
}

void addr(CheckArgs a) {
  const at::Tensor &x = a[1].toTensor(), &y = a[2].toTensor();
  if (x.dim() == 1 && y.dim() == 1) at::expand_size(a[0].toTensor(), {x.size(0), y.size(0)});
  for (int i = 0; i < 3; ++i) {
    if (!at::isIntegralType(a[i].toTensor().scalar_type(), /*includeBool=*/true)) return;
  }
  TORCH_CHECK(!a[3].isDouble(),
              "For integral input tensors, argument beta must not be a floating point number.");
  TORCH_CHECK(!a[4].isDouble(),
              "For integral input tensors, argument alpha must not be a floating point number.");
}

void trace(CheckArgs a) {
  TORCH_CHECK(a[0].toTensor().dim() == 2, "trace: expected a matrix, but got tensor with dim ",
              a[0].toTensor().dim());
}

void dot(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &y = a[1].toTensor();
  if (x.dim() != 1 || y.dim() != 1) return;
  TORCH_CHECK(x.scalar_type() == y.scalar_type(),
              "dot : expected both vectors to have same dtype, but found ", x.scalar_type(),
              " and ", y.scalar_type());
  TORCH_CHECK(x.numel() == y.numel(), "inconsistent tensor size, expected tensor [", x.numel(),
              "] and src [", y.numel(), "] to have the same number of elements, but got ",
              x.numel(), " and ", y.numel(), " elements respectively");
}

void ormqr(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &tau = a[1].toTensor(), &other = a[2].toTensor();
  const int64_t side = a[3].toBool() ? -2 : -1;
  if (x.dim() < 2 || other.dim() < 2 || tau.dim() < 1 || other.size(side) != x.size(-2)) return;
  TORCH_CHECK(tau.size(-1) <= other.size(side), "torch.ormqr: other.shape[", side,
              "] must be greater than or equal to tau.shape[-1]");
  TORCH_CHECK(tau.size(-1) == std::min(other.size(side), x.size(-1)),
              "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[", side,
              "], input.shape[-1])");
}

void lstsq(CheckArgs a) {
  TORCH_CHECK(a[0].toTensor().dim() >= 2,
              "torch.linalg.lstsq: input must have at least 2 dimensions.");
  TORCH_CHECK(a[1].toTensor().dim() >= 1,
              "torch.linalg.lstsq: other must have at least 1 dimension.");
}

// What LAPACK factors: by the kernel's name. float16 and bfloat16 are computed in float32 here.
template <const char* kKernel>
void factored(CheckArgs a) {
  const at::ScalarType t = a[0].toTensor().scalar_type();
  if (!at::isFloatingType(t) && !at::isComplexType(t)) refuse_dtype(kKernel, t);
}
constexpr char kCholesky[] = "cholesky_cpu", kCholeskyInverse[] = "cholesky_inverse_out_cpu",
               kGeqrf[] = "geqrf_cpu", kLu[] = "lu_cpu";

void matrices(const char* name, const at::Tensor& x) {
  TORCH_CHECK(x.dim() >= 2, name, ": The input tensor A must have at least 2 dimensions.");
}

void cholesky(CheckArgs a) {
  matrices("cholesky", a[0].toTensor());
  factored<kCholesky>(a);
}

void cholesky_inverse(CheckArgs a) {
  matrices("cholesky_inverse", a[0].toTensor());
  factored<kCholeskyInverse>(a);
}

void geqrf(CheckArgs a) {
  TORCH_CHECK(a[0].toTensor().dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  factored<kGeqrf>(a);
}

void matrix_exp(CheckArgs a) {
  const at::Tensor& x = a[0].toTensor();
  TORCH_CHECK(at::isFloatingType(x.scalar_type()) || x.is_complex(),
              "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got ",
              x.scalar_type());
  matrices("linalg.matrix_exp", x);
}

void cross(CheckArgs a) {
  const at::ScalarType t = a[0].toTensor().scalar_type();
  if (t == at::kBool) refuse_dtype("cross", t);
}

void cdist(CheckArgs a) {
  const at::ScalarType t1 = a[0].toTensor().scalar_type(), t2 = a[1].toTensor().scalar_type();
  TORCH_CHECK(at::isFloatingType(t1), "cdist only supports floating-point dtypes, X1 got: ", t1);
  TORCH_CHECK(at::isFloatingType(t2), "cdist only supports floating-point dtypes, X2 got: ", t2);
}

void lu_unpack(CheckArgs a) {
  TORCH_CHECK(a[1].toTensor().dim() > 0,
              "lu_unpack: LU_pivots has no dimension: its last one is "
              "of the size of the smaller dimension of LU_data");
}

}  // namespace

void add_linalg_checks(CheckTable& table) {
  table.insert({
      {"aten::geqrf", geqrf},
      {"aten::addmm", addmm},
      {"aten::addbmm", addbmm},
      {"aten::baddbmm", baddbmm},
      {"aten::linear", linear},
      {"aten::addr", addr},
      {"aten::trace", trace},
      {"aten::dot", dot},
      {"aten::vdot", dot},
      {"aten::ormqr", ormqr},
      {"aten::linalg_lstsq", lstsq},
      {"aten::cholesky", cholesky},
      {"aten::linalg_cholesky_ex", factored<kCholesky>},
      {"aten::cholesky_inverse", cholesky_inverse},
      {"aten::linalg_lu", factored<kLu>},
      {"aten::linalg_lu_factor_ex", factored<kLu>},
      {"aten::lu_unpack", lu_unpack},
      {"aten::linalg_matrix_exp", matrix_exp},
      {"aten::linalg_cross", cross},
      {"aten::_cdist_forward", cdist},
  });
}

}  // namespace torch_tpu::aten
