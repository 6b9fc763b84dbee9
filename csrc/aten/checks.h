// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/stack.h>

#include <string>

#include "aten/op_plan.h"

namespace torch_tpu::aten {

// What CPU's kernels refuse, in their words, and PyTorch's meta functions let through or word
// otherwise. Called on a miss, before the meta function.
void check_call(const OpPlan& plan, const c10::IValue* args);

// The same for the numbers of a call that are not in its signature: called each time. Null where
// the operator has none.
void (*number_check(const std::string& functional))(const c10::IValue* args);

}  // namespace torch_tpu::aten
