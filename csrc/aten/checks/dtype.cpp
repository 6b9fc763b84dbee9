// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/native/BinaryOps.h>

#include <array>

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

// Operators whose kernel has no complex numbers, by the name that the kernel has.
template <const char* kKernel>
void no_complex(CheckArgs a) {
  const at::ScalarType t = a[0].toTensor().scalar_type();
  if (at::isComplexType(t)) refuse_dtype(kKernel, t);
}
constexpr char kKthvalue[] = "kthvalue_cpu", kMedian[] = "median_cpu", kCummax[] = "cummax_cpu",
               kCummin[] = "cummin_cpu", kSearchsorted[] = "searchsorted_out_cpu",
               kUnique[] = "unique", kAminmax[] = "aminmax_cpu";

void sort(CheckArgs a) {
  TORCH_CHECK(!a[0].toTensor().is_complex(), " Sort does not support complex dtypes on CPU");
}

void mvlgamma(CheckArgs a) {
  TORCH_CHECK(a[0].toTensor().scalar_type() != at::kBool,
              "The input tensor may not be a boolean tensor.");
  TORCH_CHECK(a[1].toInt() >= 1, "p has to be greater than or equal to 1");
}

void frexp(CheckArgs a) {
  TORCH_CHECK(a[0].toTensor().is_floating_point(),
              "torch.frexp() only supports floating-point dtypes");
}

// `min` and `max` that are equal stand for the data's own.
void histc(CheckArgs a) {
  const at::ScalarType t = a[0].toTensor().scalar_type();
  if (a[2].toScalar().toDouble() == a[3].toScalar().toDouble()) no_complex<kAminmax>(a);
  if (t == at::kBool) refuse_dtype("linspace_cpu", t);
}

void histc_out(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &out = a[4].toTensor();
  TORCH_CHECK(x.dtype() == out.dtype(),
              "torch.histogram: input tensor and hist tensor should have the same dtype, but got "
              "input ",
              x.dtype(), " and hist ", out.dtype());
}

// In-place and out= forms of a result that is always floating.
template <int kOut>
void ldexp_into(CheckArgs a) {
  const at::ScalarType t = a[kOut].toTensor().scalar_type();
  TORCH_CHECK(!at::isIntegralType(t, /*includeBool=*/true),
              "ldexp can't be cast to the desired output type ", t);
}

void sub_scalar(CheckArgs a) { at::native::sub_check(a[0].toTensor(), a[1].toScalar()); }

}  // namespace

void add_dtype_checks(CheckTable& table) {
  table.insert({
      {"aten::kthvalue", no_complex<kKthvalue>},
      {"aten::median", no_complex<kMedian>},
      {"aten::median.dim", no_complex<kMedian>},
      {"aten::cummax", no_complex<kCummax>},
      {"aten::cummin", no_complex<kCummin>},
      {"aten::searchsorted.Tensor", no_complex<kSearchsorted>},
      {"aten::searchsorted.Scalar", no_complex<kSearchsorted>},
      {"tpu::unique", no_complex<kUnique>},
      {"aten::sort", sort},
      {"aten::sort.stable", sort},
      {"aten::mvlgamma", mvlgamma},
      {"aten::frexp.Tensor", frexp},
      {"aten::histc", histc},
      {"aten::histc.out", histc_out},
      {"aten::sub.Scalar", sub_scalar},
      {"aten::ldexp_", ldexp_into<0>},
      {"aten::ldexp.out", ldexp_into<2>},
  });
}

}  // namespace torch_tpu::aten
