// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lower/bind.h"
#include "lower/promote.h"

// All lowerings by operator name. One function per operator serves eager, torch.compile and
// planning.
namespace torch_tpu::lower {

class Registry {
 public:
  // The process's registry, filled by every family's register_<family>. Immutable afterwards.
  static const Registry& global();

  // `f` takes the schema's arguments in order as plain types (see lower/bind.h), optionally
  // preceded by Context&.
  template <class F>
  void add(std::string name, F f) {
    put(bind(std::move(name), std::move(f)));
  }

  // The same for an operator that draws random numbers; `f` takes Context& and uses ctx.draw.
  template <class F>
  void add_random(std::string name, F f) {
    Entry e = bind(std::move(name), std::move(f));
    e.is_random = true;
    put(std::move(e));
  }

  // An element-wise operator. The first `operands` arguments (tensors, or numbers of `.Scalar`
  // overloads) are promoted together; every Value that `f` sees is then of the compute dtype (f32
  // for 16-bit floats), further Value parameters (alpha) too. f's result is converted to the result
  // dtype. f broadcasts by itself.
  template <class F>
  void pointwise(std::string name, Promote rule, int operands, F f) {
    put(promoting(bind(std::move(name), std::move(f)), rule, operands));
  }

  // `alias` is another name for an operator with the same arguments and results.
  void alias(std::string alias, std::string_view name);

  // Applies `name`'s lowering to each position of the tensor lists: `_foreach_add.List` from
  // `add.Tensor`. Arguments that are not lists are passed to each call.
  void foreach_(std::string list_name, std::string_view name);

  const Entry* find(std::string_view name) const;
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

 private:
  void put(Entry e);  // throws std::logic_error if the name is taken
  static Entry promoting(Entry e, Promote rule, int operands);
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace torch_tpu::lower
