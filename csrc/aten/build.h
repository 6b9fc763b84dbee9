// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aten/call.h"
#include "lower/graph.h"

namespace torch_tpu::aten {

// What a callable's programs are built from: an operator's lowering or decomposition, by its plan,
// or a graph.
struct Recipe {
  OpPlan plan;
  std::shared_ptr<const lower::Graph> graph = nullptr;
  // Meta tensors with dtype, sizes and strides of a graph's fresh results.
  std::vector<at::Tensor> metas = {};
};

// The program of this call's signature: checks, PyTorch's metadata, the lowering, the compile. Null
// if an out= tensor was resized to take its result: then the call's signature is another one.
std::shared_ptr<const Compiled> build(const Recipe& recipe, const Call& call);

// Asked for a graph of a functional operator without lowering: (operator, its arguments) -> graph,
// or null if PyTorch has no decomposition. Set by Python; called on a miss only, without the GIL
// held.
using Decomposer = std::function<std::shared_ptr<const lower::Graph>(
    const std::string& functional, const std::vector<c10::IValue>& args)>;
void set_decomposer(Decomposer d);

// What Python's side, which knows the types, tells of an exception that a Python meta function
// threw.
struct MetaErrors {
  // Whether it is a fault of the function (an attribute of None, a division by zero) and no refusal
  // of the call.
  std::function<bool(const std::exception& e)> is_fault;
  // Throws it again with sizes as the kernels print them, "[2, 3]", if it has any.
  std::function<void(const std::exception& e)> retell;
};
void set_meta_errors(MetaErrors m);

// Operators that ran through a decomposition so far.
std::vector<std::string> decomposed_operators();

}  // namespace torch_tpu::aten
