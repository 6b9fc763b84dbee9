// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

#include "lower/registry.h"
#include "runtime/array.h"

// What an operator's schema says about how its lowering serves it. In-place and out= forms are
// derived here, never written.
namespace torch_tpu::aten {

// One dispatched overload: the functional operator whose lowering (or decomposition) computes it,
// which of its arguments that takes, and where each result goes.
struct OpPlan {
  explicit OpPlan(const c10::OperatorHandle& op);
  explicit OpPlan(const lower::Entry& entry);  // called by name, not through the dispatcher
  OpPlan(std::string name, size_t num_tensors, std::vector<int> written);  // a graph over tensors

  std::optional<c10::OperatorHandle> op;
  const c10::FunctionSchema* schema = nullptr;
  std::string name;                     // "aten::add_.Tensor"
  std::string functional;               // "aten::add.Tensor"; equals name for functional operators
  const lower::Entry* entry = nullptr;  // null: decomposed, if at all
  size_t num_args = 0;
  std::vector<int> call_args;       // schema positions that the lowering takes, in its order
  std::vector<bool> wants_operand;  // per schema argument: a number is a run-time operand
  // Per schema argument: the default of a weight (alpha=1), which is an operand otherwise.
  std::vector<std::optional<runtime::ScalarValue>> defaults;
  std::vector<bool> is_dtype;  // per schema argument: ScalarType
  std::vector<int>
      written;  // schema positions of mutated tensors (or lists), in the order of the last results
  std::vector<bool> only_written;  // per schema argument: an out= tensor, never read
  // Per schema return: the argument it aliases, or -1 for a fresh result.
  std::vector<int> returns;
  std::vector<bool> returns_list;
  int num_fresh = 0;  // schema returns that are fresh
  // Whether what is written may also be read, through the same or another view.
  enum class Overlap : uint8_t { allowed, same_only, refused } overlap = Overlap::allowed;
  void (*number_check)(const c10::IValue* args) = nullptr;  // checks.h
  int generator_arg = -1;
  // The functional operator is a factory whose further arguments are dtype, layout, device,
  // pin_memory (linspace.out -> linspace): the lowering gets the out= tensor's dtype.
  bool appends_options = false;
};

// The functional overload that computes what `schema` does, among the operator's siblings; nullopt
// if there is none.
struct Functional {
  c10::OperatorName name;
  bool appends_options;
};
std::optional<Functional> functional_of(const c10::FunctionSchema& schema);

std::string full_name(const c10::OperatorName& n);  // "aten::add.Tensor"
// All overloads of a base name ("aten::add"), as the dispatcher knew them at the first call.
const std::vector<c10::OperatorName>& overloads(const std::string& base);

}  // namespace torch_tpu::aten
