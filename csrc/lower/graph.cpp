// SPDX-License-Identifier: Apache-2.0
#include "lower/graph.h"

namespace torch_tpu::lower {

int Graph::call(std::string_view name, std::vector<Argument> arguments, Item random_state) {
  const Entry* entry = Registry::global().find(name);
  if (!entry)
    throw UserError(std::string(name) + " has no lowering for tpu",
                    UserError::Kind::not_implemented);
  nodes_.push_back({entry, std::move(arguments), random_state});
  return static_cast<int>(nodes_.size()) - 1;
}

bool Graph::is_random() const {
  for (const Node& n : nodes_) {
    if (n.entry->is_random) return true;
  }
  return false;
}

Arg as_operand(hlo::Builder& b, const Arg& a) {
  if (auto* n = std::get_if<Number>(&a)) {
    switch (n->kind) {
      case Number::Kind::boolean:
        return Wrapped{hlo::constant(b, DType::pred, n->i != 0)};
      case Number::Kind::integer:
        return Wrapped{hlo::constant(b, DType::s64, n->i)};
      case Number::Kind::floating:
        return Wrapped{hlo::constant(b, DType::f64, n->d)};
      case Number::Kind::complex:
        return Wrapped{hlo::constant(b, DType::c128, std::complex<double>(n->d, n->im))};
    }
  }
  if (auto* d = std::get_if<Dims>(&a); d && !d->empty()) {  // Scalar[] of integers
    Values vs;
    for (int64_t i : *d) vs.push_back(hlo::constant(b, DType::s64, i));
    return WrappedList{vs};
  }
  if (auto* d = std::get_if<std::vector<double>>(&a)) {
    Values vs;
    for (double x : *d) vs.push_back(hlo::constant(b, DType::f64, x));
    return WrappedList{vs};
  }
  if (auto* d = std::get_if<std::vector<Number>>(&a)) {
    Values vs;
    for (const Number& n : *d) vs.push_back(std::get<Wrapped>(as_operand(b, n)).value);
    return WrappedList{vs};
  }
  return a;
}

namespace {

// The context of a node that draws again what was drawn from `state`.
Context drawing_from(const Context& ctx, Value state) {
  Context out = ctx;
  out.draw = [state, drawn = int64_t{0}](int64_t count) mutable {
    return next_draw(state, drawn, count);
  };
  return out;
}

}  // namespace

Values Graph::evaluate(Context& ctx, const Values& inputs) const {
  std::vector<Values> results(nodes_.size());
  auto resolve = [&](const Item& item) -> Value {
    const Ref* r = std::get_if<Ref>(&item);
    if (!r) return {};
    return r->node < 0
               ? inputs.at(static_cast<size_t>(r->output))
               : results.at(static_cast<size_t>(r->node)).at(static_cast<size_t>(r->output));
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    Args args;
    args.reserve(node.arguments.size());
    for (size_t k = 0; k < node.arguments.size(); ++k) {
      const Argument& a = node.arguments[k];
      if (auto* constant = std::get_if<Arg>(&a.value)) {
        const bool operand =
            k < node.entry->params.size() && node.entry->params[k] == ParamKind::operand;
        args.push_back(operand ? as_operand(ctx.builder, *constant) : *constant);
      } else if (auto* ref = std::get_if<Ref>(&a.value)) {
        args.push_back(resolve(*ref));
      } else {
        Values list;
        for (const Item& item : std::get<std::vector<Item>>(a.value)) list.push_back(resolve(item));
        args.push_back(std::move(list));
      }
    }
    try {
      if (Value state = resolve(node.random_state)) {
        Context again = drawing_from(ctx, state);
        results[i] = node.entry->call(again, args);
      } else {
        results[i] = node.entry->call(ctx, args);
      }
    } catch (const hlo::Error& e) {
      throw hlo::Error(node.entry->name + ": " + e.what());
    }
  }
  Values out;
  for (const Item& item : outputs_) out.push_back(resolve(item));
  return out;
}

}  // namespace torch_tpu::lower
