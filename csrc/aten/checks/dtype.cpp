// SPDX-License-Identifier: Apache-2.0
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/ops/result_type.h>

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
constexpr char kKthvalue[] = "kthvalue_cpu", kMedian[] = "median_cpu", kMedianOut[] = "median_out",
               kCummax[] = "cummax_cpu", kCummin[] = "cummin_cpu",
               kSearchsorted[] = "searchsorted_out_cpu", kUnique[] = "unique",
               kAminmax[] = "aminmax_cpu", kBesselJ0[] = "bessel_j0_cpu",
               kBesselJ1[] = "bessel_j1_cpu", kBesselY0[] = "bessel_y0_cpu",
               kBesselY1[] = "bessel_y1_cpu", kModifiedBesselI0[] = "modified_bessel_i0_cpu",
               kModifiedBesselI1[] = "modified_bessel_i1_cpu",
               kModifiedBesselK0[] = "modified_bessel_k0_cpu",
               kModifiedBesselK1[] = "modified_bessel_k1_cpu",
               kScaledModifiedBesselK0[] = "scaled_modified_bessel_k0_cpu",
               kScaledModifiedBesselK1[] = "scaled_modified_bessel_k1_cpu",
               kSphericalBesselJ0[] = "spherical_bessel_j0_cpu", kAiryAi[] = "airy_ai_cpu",
               kI0[] = "i0_vml_cpu", kEntr[] = "entr_cpu", kErfcx[] = "erfcx_cpu",
               kI0e[] = "i0e_cpu", kI1[] = "i1_cpu", kI1e[] = "i1e_cpu", kNdtri[] = "ndtri_cpu",
               kLogNdtr[] = "log_ndtr_cpu";

template <const char* kKernel>
void only_floating(CheckArgs a) {
  const at::ScalarType t = a[0].toTensor().scalar_type();
  if (!at::isFloatingType(t)) refuse_dtype(kKernel, t);
}
constexpr char kSoftplusBackward[] = "softplus_backward_cpu", kPdist[] = "pdist";

// Operators whose kernel has neither complex numbers nor bool.
template <const char* kKernel>
void real_number(CheckArgs a) {
  no_complex<kKernel>(a);
  const at::ScalarType t = a[0].toTensor().scalar_type();
  if (t == at::kBool) refuse_dtype(kKernel, t);
}

// Of integers and bool. The lowerings see bfloat16 as float32.
template <const char* kKernel>
void only_integral(CheckArgs a) {
  const at::ScalarType t = a[0].toTensor().scalar_type();
  if (!at::isIntegralType(t, /*includeBool=*/true)) refuse_dtype(kKernel, t);
}
template <const char* kKernel>
void both_integral(CheckArgs a) {
  const at::ScalarType t = at::result_type(a[0].toTensor(), a[1].toTensor());
  if (!at::isIntegralType(t, /*includeBool=*/true)) refuse_dtype(kKernel, t);
}
constexpr char kBitwiseNot[] = "bitwise_not_cpu", kBitwiseAnd[] = "bitwise_and_cpu",
               kBitwiseOr[] = "bitwise_or_cpu", kBitwiseXor[] = "bitwise_xor_cpu",
               kLshift[] = "lshift_cpu", kRshift[] = "rshift_cpu", kGcd[] = "gcd_cpu",
               kLcm[] = "lcm_cpu";

void kthvalue(CheckArgs a) {
  const at::Tensor& x = a[0].toTensor();
  const int64_t dim = at::maybe_wrap_dim(a[2].toInt(), x.dim());
  TORCH_CHECK_INDEX(x.dim() == 0 || x.size(dim) != 0, "kthvalue(): Expected reduction dim ", dim,
                    " to have non-zero size.");
  if (x.dim() > 0) real_number<kKthvalue>(a);
}

constexpr char kMse[] = "mse_cpu", kSmoothL1[] = "smooth_l1_cpu", kHuber[] = "huber_cpu";
constexpr char kMinimum[] = "minimum_cpu", kMaximum[] = "maximum_cpu";

void complex(CheckArgs a) {
  const at::ScalarType t[] = {a[0].toTensor().scalar_type(), a[1].toTensor().scalar_type()};
  const auto known = [](at::ScalarType s) {
    return s == at::kHalf || s == at::kFloat || s == at::kDouble;
  };
  TORCH_CHECK(known(t[0]) && known(t[1]),
              "Expected both inputs to be Half, Float or Double tensors but got ", t[0], " and ",
              t[1]);
}

void pdist(CheckArgs a) {
  at::maybe_wrap_dim(1, a[0].toTensor().dim());
  only_floating<kPdist>(a);
}

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
      {"aten::kthvalue", kthvalue},
      {"aten::median", real_number<kMedian>},
      {"aten::median.dim", real_number<kMedianOut>},
      {"aten::nanmedian", real_number<kMedian>},
      {"aten::nanmedian.dim", real_number<kMedianOut>},
      {"aten::clamp_min.Tensor", no_complex<kMaximum>},
      {"aten::clamp_max.Tensor", no_complex<kMinimum>},
      {"aten::complex", complex},
      {"aten::mse_loss", no_complex<kMse>},
      {"aten::smooth_l1_loss", no_complex<kSmoothL1>},
      {"aten::huber_loss", no_complex<kHuber>},
      {"aten::bitwise_not", only_integral<kBitwiseNot>},
      {"aten::bitwise_and.Tensor", both_integral<kBitwiseAnd>},
      {"aten::bitwise_or.Tensor", both_integral<kBitwiseOr>},
      {"aten::bitwise_xor.Tensor", both_integral<kBitwiseXor>},
      {"aten::bitwise_left_shift.Tensor", both_integral<kLshift>},
      {"aten::bitwise_right_shift.Tensor", both_integral<kRshift>},
      {"aten::gcd", both_integral<kGcd>},
      {"aten::lcm", both_integral<kLcm>},
      {"aten::cummax", no_complex<kCummax>},
      {"aten::cummin", no_complex<kCummin>},
      {"aten::searchsorted.Tensor", no_complex<kSearchsorted>},
      {"aten::searchsorted.Scalar", no_complex<kSearchsorted>},
      {"tpu::unique", no_complex<kUnique>},
      {"aten::special_bessel_j0", no_complex<kBesselJ0>},
      {"aten::special_bessel_j1", no_complex<kBesselJ1>},
      {"aten::special_bessel_y0", no_complex<kBesselY0>},
      {"aten::special_bessel_y1", no_complex<kBesselY1>},
      {"aten::special_modified_bessel_i0", no_complex<kModifiedBesselI0>},
      {"aten::special_modified_bessel_i1", no_complex<kModifiedBesselI1>},
      {"aten::special_modified_bessel_k0", no_complex<kModifiedBesselK0>},
      {"aten::special_modified_bessel_k1", no_complex<kModifiedBesselK1>},
      {"aten::special_scaled_modified_bessel_k0", no_complex<kScaledModifiedBesselK0>},
      {"aten::special_scaled_modified_bessel_k1", no_complex<kScaledModifiedBesselK1>},
      {"aten::special_spherical_bessel_j0", no_complex<kSphericalBesselJ0>},
      {"aten::special_airy_ai", no_complex<kAiryAi>},
      {"aten::i0", no_complex<kI0>},
      {"aten::special_entr", no_complex<kEntr>},
      {"aten::special_erfcx", no_complex<kErfcx>},
      {"aten::special_i0e", no_complex<kI0e>},
      {"aten::special_i1", no_complex<kI1>},
      {"aten::special_i1e", no_complex<kI1e>},
      {"aten::special_ndtri", no_complex<kNdtri>},
      {"aten::special_log_ndtr", no_complex<kLogNdtr>},
      {"aten::softplus_backward", only_floating<kSoftplusBackward>},
      {"aten::_pdist_forward", pdist},
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
