// SPDX-License-Identifier: Apache-2.0
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>

#include <cmath>

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

// The value as an element: "value cannot be converted to type int64_t without overflow".
void masked_fill(CheckArgs a) {
  const at::ScalarType t = a[0].toTensor().scalar_type();
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(at::kBool, at::kHalf, at::kBFloat16, t, "masked_fill",
                                         [&] { (void)a[2].toScalar().to<scalar_t>(); });
}

void histc(CheckArgs a) {
  const double min = a[2].toScalar().toDouble(), max = a[3].toScalar().toDouble();
  if (min == max) return;  // the data's own range
  TORCH_CHECK(std::isfinite(min) && std::isfinite(max), "torch.histc: range of [", min, ", ", max,
              "] is not finite");
  TORCH_CHECK(min < max, "torch.histc: max must be larger than min");
}

void hardtanh(CheckArgs a) {
  const bool negative = a[1].toScalar().toDouble() < 0 || a[2].toScalar().toDouble() < 0;
  TORCH_CHECK(a[0].toTensor().scalar_type() != at::kByte || !negative,
              "cannot do hardtanh on an unsigned type with negative limits");
}

// The index is an operand: a program clamps it.
void select_scatter(CheckArgs a) { a[0].toTensor().select(a[2].toInt(), a[3].toInt()); }

// The bounds are operands too, and the program takes the slice's size from the source.
void slice_scatter(CheckArgs a) {
  require_slice(a[0].toTensor().slice(a[2].toInt(), a[3].toOptional<int64_t>(),
                                      a[4].toOptional<int64_t>(), a[5].toInt()),
                a[1].toTensor());
}

}  // namespace

void add_number_checks(CheckTable& table) {
  table.insert({
      {"aten::select_scatter", select_scatter},
      {"aten::slice_scatter", slice_scatter},
      {"aten::masked_fill.Scalar", masked_fill},
      {"aten::histc", histc},
      {"aten::hardtanh", hardtanh},
  });
}

}  // namespace torch_tpu::aten
