// SPDX-License-Identifier: Apache-2.0
#include <ATen/native/im2col_shape_check.h>

#include <string>

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

// In the CPU's words and order; the meta function has others, and divides by `groups`.
void convolution(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &w = a[1].toTensor();
  const bool transposed = a[6].toBool();
  const int64_t groups = a[8].toInt();
  TORCH_CHECK(w.dim() > 2, "weight should have at least three dimensions");
  TORCH_CHECK(groups > 0, "non-positive groups is not supported");
  const size_t dims = static_cast<size_t>(w.dim()) - 2;
  const auto require_length = [&](int argument, const char* name) {
    const auto given = a[argument].toIntVector();
    TORCH_CHECK(given.size() == 1 || given.size() == dims, "expected ", name,
                " to be a single integer value or a list of ", dims,
                " values to match the convolution dimensions, but got ", name, "=",
                at::IntArrayRef(given));
  };
  require_length(3, "stride");
  require_length(4, "padding");
  require_length(5, "dilation");
  require_length(7, "output_padding");
  for (int64_t padding : a[4].toIntVector())
    TORCH_CHECK(padding >= 0, "negative padding is not supported");
  for (int64_t padding : a[7].toIntVector())
    TORCH_CHECK(padding >= 0, "negative output_padding is not supported");
  for (int64_t stride : a[3].toIntVector())
    TORCH_CHECK(stride > 0, "non-positive stride is not supported");
  for (int64_t dilation : a[5].toIntVector())
    TORCH_CHECK(dilation > 0, "dilation should be greater than zero");
  TORCH_CHECK(x.dim() == w.dim(), "Expected ", w.dim(), "-dimensional input for ", w.dim(),
              "-dimensional weight ", w.sizes(), ", but got ", x.dim(),
              "-dimensional input of size ", x.sizes(), " instead");
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
  const at::Tensor bias = optional_tensor(a[2]);
  const auto require_type = [&](const at::Tensor& t, const char* name) {
    TORCH_CHECK(x.scalar_type() == t.scalar_type(), "Input type (", x.toString(), ") and ", name,
                " type (", t.toString(), ") should be the same");
  };
  if (!bias.defined()) return require_type(w, "weight");
  TORCH_CHECK(bias.dim() == 1 && bias.size(0) == out, "Given ", transposed ? "transposed=1, " : "",
              "weight of size ", w.sizes(), ", expected bias to be 1-dimensional with ", out,
              " elements, but got bias of size ", bias.sizes(), " instead");
  require_type(w, "weight");
  require_type(bias, "bias");
}

void im2col(CheckArgs a) {
  const auto kernel = a[1].toIntVector(), dilation = a[2].toIntVector(),
             padding = a[3].toIntVector(), stride = a[4].toIntVector();
  if (kernel.size() != 2 || dilation.size() != 2 || padding.size() != 2 || stride.size() != 2)
    return;
  at::native::im2col_shape_check(a[0].toTensor(), at::Tensor(), kernel[0], kernel[1], dilation[0],
                                 dilation[1], padding[0], padding[1], stride[0], stride[1]);
}

void col2im(CheckArgs a) {
  const auto size = a[1].toIntVector(), kernel = a[2].toIntVector(), dilation = a[3].toIntVector(),
             padding = a[4].toIntVector(), stride = a[5].toIntVector();
  if (size.size() != 2 || kernel.size() != 2 || dilation.size() != 2 || padding.size() != 2 ||
      stride.size() != 2)
    return;
  at::native::col2im_shape_check(a[0].toTensor(), at::Tensor(), size[0], size[1], kernel[0],
                                 kernel[1], dilation[0], dilation[1], padding[0], padding[1],
                                 stride[0], stride[1]);
}

}  // namespace

void add_convolution_checks(CheckTable& table) {
  table.insert({
      {"aten::convolution", convolution},
      {"aten::convolution_overrideable", convolution},
      {"aten::im2col", im2col},
      {"aten::col2im", col2im},
  });
}

}  // namespace torch_tpu::aten
