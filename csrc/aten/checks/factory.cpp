// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>

#include <string>

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

// linspace and logspace of tensors: rank 0 each.
template <const char* kName, bool kStart, bool kEnd>
void spaced(CheckArgs a) {
  const int64_t start = kStart ? a[0].toTensor().dim() : 0, end = kEnd ? a[1].toTensor().dim() : 0;
  if constexpr (kStart && kEnd) {
    TORCH_CHECK(start == 0 && end == 0, kName,
                " only supports 0-dimensional start and end tensors, but got start with ", start,
                " dimension(s) and end with ", end, " dimension(s).");
  } else {
    TORCH_CHECK(start == 0 && end == 0, kName, " only supports 0-dimensional start and end ",
                "tensors, but got ", kStart ? "start" : "end", " with ", start + end,
                " dimension(s).");
  }
}
constexpr char kLinspace[] = "linspace", kLogspace[] = "logspace";

template <const char* kName>
void add_spaced(CheckTable& table, const std::string& name) {
  table.insert({
      {name + ".Tensor_Tensor", spaced<kName, true, true>},
      {name + ".Tensor_Scalar", spaced<kName, true, false>},
      {name + ".Scalar_Tensor", spaced<kName, false, true>},
  });
}

// complex.out and polar.out
void complex_out(CheckArgs a) {
  const at::ScalarType have = a[2].toTensor().scalar_type(),
                       want = at::toComplexType(a[0].toTensor().scalar_type());
  TORCH_CHECK(have == want, "Expected object of scalar type ", want, " but got scalar type ", have,
              " for argument 'out'");
}

}  // namespace

void add_factory_checks(CheckTable& table) {
  add_spaced<kLinspace>(table, "aten::linspace");
  add_spaced<kLogspace>(table, "aten::logspace");
  table.insert({
      {"aten::complex.out", complex_out},
      {"aten::polar.out", complex_out},
  });
}

}  // namespace torch_tpu::aten
