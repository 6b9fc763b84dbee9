// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aten/op_plan.h"
#include "lower/graph.h"
#include "runtime/program.h"

// From a dispatcher's stack to a launched program: the boxed kernel of every operator.
namespace torch_tpu::aten {

class Signatures;
struct Compiled;

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
  ~Callable();
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;

  // Fresh results, in the schema's order; what is written is an argument.
  using Results = c10::SmallVector<c10::IValue, 2>;
  // Runs on the arguments of the schema. Does not take references to them.
  Results run(const c10::IValue* args);
  // Pops the arguments, pushes the results.
  void operator()(torch::jit::Stack* stack);
  const OpPlan& plan() const { return *plan_; }
  size_t num_programs() const;
  // Bytes of inputs that the programs write in place, by the plugin's account.
  int64_t alias_bytes() const;

 private:
  struct Call;
  Results results_of(Call& call, const Compiled& c, runtime::Array* arrays) const;
  Results run_on_host(const c10::IValue* args) const;
  std::unique_ptr<OpPlan> plan_;
  std::shared_ptr<const lower::Graph> graph_;
  std::vector<at::Tensor> metas_;
  std::unique_ptr<Signatures> signatures_;
};

// The callable of an operator; made on first use, kept forever.
Callable& callable_of(const c10::OperatorHandle& op);

// Runs the registry's lowering `name` ("tpu::...") on these arguments; results are fresh, with
// contiguous strides.
std::vector<at::Tensor> run_lowering(const std::string& name, std::vector<c10::IValue> args);

// The array's bytes as a flat array of another size: cut, or filled up with zeros.
runtime::Array resized(const runtime::Array& value, int64_t nbytes);

// Asked for a graph of a functional operator without lowering: (operator, its arguments) -> graph,
// or null if PyTorch has no decomposition. Set by Python; called on a miss only, without the GIL
// held.
using Decomposer = std::function<std::shared_ptr<const lower::Graph>(
    const std::string& functional, const std::vector<c10::IValue>& args)>;
void set_decomposer(Decomposer d);

// Whether what a Python meta function threw is a fault of the function (an attribute of None, a
// division by zero) and no refusal of the call. Set by Python's side, which knows the types.
using MetaFault = std::function<bool(const std::exception& e)>;
void set_meta_fault(MetaFault f);

// Process-wide settings that enter every program's key.
struct Settings {
  hlo::Precision matmul_precision = hlo::Precision::highest;
  bool host_fallback = false;
  // Programs in the form for every compiler, also where the device is XLA:CPU: to compile for TPUs.
  bool portable_programs = false;
};
Settings& settings();
// How often each operator ran on the host because the fallback is on.
std::vector<std::pair<std::string, int64_t>> fallback_counts();
void reset_fallback_counts();
// Operators that ran through a decomposition so far.
std::vector<std::string> decomposed_operators();

}  // namespace torch_tpu::aten
