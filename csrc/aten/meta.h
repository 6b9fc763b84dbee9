// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>
#include <vector>

#include "aten/op_plan.h"

namespace torch_tpu::aten {

// What PyTorch says of a call: metadata of its results and the sizes that its written arguments
// must have.
struct MetaResult {
  std::vector<at::Tensor>
      fresh;  // fresh results flattened (lists too), on meta; undefined ones kept
  std::vector<c10::IValue>
      numbers;  // as long as `fresh`: the value where a result is no tensor (SDPA's lengths)
  std::vector<at::Tensor>
      written;  // the plan's written arguments flattened, on meta, as the operator left them
};

// Calls the operator's Meta kernel on meta tensors of the arguments' metadata: raises PyTorch's own
// errors. nullopt if PyTorch has no meta function: then the lowering's own inference stands.
std::optional<MetaResult> call_meta(const OpPlan& plan, const c10::IValue* args);

}  // namespace torch_tpu::aten
