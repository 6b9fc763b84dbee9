// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lower/context.h"

namespace torch_tpu::lower {

// How the layer above must prepare one argument.
enum class ParamKind : uint8_t {
  operand,  // Value parameter: a tensor, or a Python number as run-time operand (Wrapped)
  number,   // static value: part of the program and of its key
};

struct Entry {
  std::string name;               // "aten::add.Tensor": the functional overload
  std::vector<ParamKind> params;  // in schema order
  std::function<Values(Context&, const Args&)> call;
  bool is_random = false;  // set by `add_random`: draws from a generator
};

}  // namespace torch_tpu::lower
