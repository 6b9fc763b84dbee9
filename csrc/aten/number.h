// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>

#include "runtime/array.h"

// Python numbers among an operator's arguments.
namespace torch_tpu::aten {

inline bool is_number(const c10::IValue& v) {
  return v.isDouble() || v.isInt() || v.isBool() || v.isComplexDouble();
}

// `v` as a rank-0 value of pred, s64, f64 or c128. `v` is a number.
inline runtime::ScalarValue number_of(const c10::IValue& v) {
  using runtime::ScalarValue;
  if (v.isDouble()) return ScalarValue::of(v.toDouble());
  if (v.isBool()) return ScalarValue::of(v.toBool());
  if (v.isComplexDouble())
    return ScalarValue::of(v.toComplexDouble().real(), v.toComplexDouble().imag());
  return ScalarValue::of(v.toInt());
}

}  // namespace torch_tpu::aten
