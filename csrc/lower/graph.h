// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lower/registry.h"

namespace torch_tpu::lower {

// A functional program over the registry's operators: what torch.compile's FX graph or a traced
// decomposition becomes. Evaluated by calling each node's lowering: one program, no second lowering
// for graphs.
class Graph {
 public:
  // A node's argument: a constant Arg, the result `output` of an earlier node, a graph input, or a
  // list of such.
  struct Ref {
    int node = -1;
    int output = 0;
  };  // node < 0: graph input number `output`
  struct None {};
  using Item = std::variant<None, Ref>;
  struct Argument {
    std::variant<Arg, Ref, std::vector<Item>> value;
  };
  struct Node {
    const Entry* entry = nullptr;
    std::vector<Argument> arguments;  // in schema order, defaults filled in
    Item random_state;  // a value u64[2] from which the node draws; None: the call's generator
  };

  // Adds a call; returns its node number. Throws UserError(not_implemented) if no lowering has this
  // name.
  int call(std::string_view name, std::vector<Argument> arguments, Item random_state = None{});
  void output(Item item) { outputs_.push_back(item); }
  void set_num_inputs(int n) { num_inputs_ = n; }

  int num_inputs() const { return num_inputs_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Item>& outputs() const { return outputs_; }
  bool is_random() const;

  // Null Values for outputs that are None.
  Values evaluate(Context& ctx, const Values& inputs) const;

 private:
  int num_inputs_ = 0;
  std::vector<Node> nodes_;
  std::vector<Item> outputs_;
};

}  // namespace torch_tpu::lower
