// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/context.h"

// PyTorch's type promotion (torch.result_type): tensors with dimensions outrank 0-dim tensors,
// which outrank Python numbers; a lower rank changes the result only by a higher kind (bool < int <
// float < complex).
namespace torch_tpu::lower {

DType promote_types(DType a, DType b);  // torch.promote_types
DType result_type(const Args& operands,
                  DType default_dtype);  // over Value and Wrapped entries; others are skipped
DType to_floating(DType t, DType default_dtype);  // integers and bool -> default dtype
Value as_value(const Arg& a);                     // Value or Wrapped's value
// Both to their promoted dtype, tensors both (no weak operand): for lowerings outside `pointwise`.
std::pair<Value, Value> promoted(Value a, Value b);

// How a pointwise operator chooses the dtype it computes in and the one it returns.
enum class Promote {
  arithmetic,   // result_type, bool stays bool: add, mul, maximum
  to_floating,  // result_type with integers made floating: div, sin, atan2
  compare,      // computed in result_type, returned as pred: eq, lt
  logical,      // each operand made pred; result pred: logical_and
  predicate,    // computed in the operand's dtype, returned as pred: isnan, signbit
  to_real,      // like arithmetic; a complex operand gives its real type: abs
};

}  // namespace torch_tpu::lower
