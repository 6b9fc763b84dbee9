// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aten/build.h"
#include "aten/call.h"
#include "aten/op_plan.h"
#include "aten/signatures.h"
#include "lower/graph.h"

// From arguments to a launched program: the kernel of every operator.
namespace torch_tpu::aten {

// A callable with its compiled programs by signature: an operator of the dispatcher, or a graph.
class Callable {
 public:
  explicit Callable(c10::OperatorHandle op);
  // A graph over tensors (torch.compile): arguments are its inputs. Inputs listed in `written` get
  // new contents from the last results. `metas` are meta tensors with the other results' dtype,
  // sizes and strides.
  Callable(std::string name, std::shared_ptr<const lower::Graph> graph, std::vector<int> written,
           std::vector<at::Tensor> metas);
  explicit Callable(const lower::Entry& entry);  // a lowering called by name
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;

  // Fresh results, in the schema's order; what is written is an argument.
  using Results = c10::SmallVector<c10::IValue, 2>;
  // Runs on the arguments of the schema. Does not take references to them.
  Results run(const c10::IValue* args);
  // Pops the arguments, pushes the results.
  void operator()(torch::jit::Stack* stack);
  const OpPlan& plan() const { return recipe_.plan; }
  size_t num_programs() const;
  // Bytes of inputs that the programs write in place, by the plugin's account.
  int64_t alias_bytes() const;

 private:
  std::shared_ptr<const Compiled> compiled(const Call& call);
  Results results_of(const Call& call, const Compiled& c, runtime::Array* arrays) const;
  Results run_on_host(const c10::IValue* args) const;
  Recipe recipe_;
  Signatures signatures_;
};

// The callable of an operator; made on first use, kept forever.
Callable& callable_of(const c10::OperatorHandle& op);

// Runs the registry's lowering `name` ("tpu::...") on these arguments; results are fresh, with
// contiguous strides.
std::vector<at::Tensor> run_lowering(const std::string& name, std::vector<c10::IValue> args);

// The array's bytes as a flat array of another size: cut, or filled up with zeros.
runtime::Array resized(const runtime::Array& value, int64_t nbytes);

// How often each operator ran on the host because the fallback is on.
std::vector<std::pair<std::string, int64_t>> fallback_counts();
void reset_fallback_counts();

}  // namespace torch_tpu::aten
