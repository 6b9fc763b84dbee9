// SPDX-License-Identifier: Apache-2.0
#include "lower/registry.h"

#include <stdexcept>

#include "lower/families.h"

namespace torch_tpu::lower {
namespace {

// Converts an operand to the compute dtype; a list element-wise; anything else is left.
Arg converted(const Arg& a, DType t) {
  if (auto* v = std::get_if<Value>(&a)) return *v ? hlo::convert(*v, t) : *v;
  if (auto* w = std::get_if<Wrapped>(&a)) return hlo::convert(w->value, t);
  if (auto* vs = std::get_if<Values>(&a)) {
    Values out;
    for (const Value& v : *vs) out.push_back(v ? hlo::convert(v, t) : v);
    return out;
  }
  return a;
}

Arg each_operand(const Arg& a, const std::function<Value(Value)>& f) {
  if (auto* v = std::get_if<Value>(&a)) return *v ? f(*v) : *v;
  if (auto* w = std::get_if<Wrapped>(&a)) return f(w->value);
  return a;
}

const char* kind_name(const Arg& a) {
  constexpr const char* names[] = {"None",
                                   "tensor",
                                   "number operand",
                                   "list of tensors",
                                   "number",
                                   "list of integers",
                                   "list of floats",
                                   "list of bools",
                                   "string",
                                   "dtype",
                                   "list of numbers",
                                   "list of number operands"};
  return names[a.index()];
}

}  // namespace

void bad_argument(size_t position, const char* wanted, const Arg& got) {
  throw std::logic_error("argument " + std::to_string(position) + " must be a " + wanted +
                         ", got a " + kind_name(got));
}

void expect_count(size_t wanted, size_t got) {
  if (wanted != got) {
    throw std::logic_error("the lowering takes " + std::to_string(wanted) +
                           " arguments, its schema " + std::to_string(got));
  }
}

Entry make_entry(std::string name, std::vector<bool> is_operand,
                 std::function<Values(Context&, const Args&)> call) {
  Entry e;
  e.name = std::move(name);
  for (bool b : is_operand) e.params.push_back(b ? ParamKind::operand : ParamKind::number);
  e.call = std::move(call);
  return e;
}

const Registry& Registry::global() {
  static const Registry* registry = [] {
    auto* r = new Registry();
    register_families(*r);
    return r;
  }();
  return *registry;
}

void Registry::put(Entry e) {
  std::string name = e.name;
  if (!entries_.emplace(name, std::move(e)).second)
    throw std::logic_error("two lowerings for " + name);
}

void Registry::alias(std::string alias, std::string_view name) {
  const Entry* e = find(name);
  if (!e) throw std::logic_error("no lowering " + std::string(name) + " for the alias " + alias);
  Entry copy = *e;
  copy.name = std::move(alias);
  put(std::move(copy));
}

const Entry* Registry::find(std::string_view name) const {
  auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

Entry Registry::promoting(Entry e, Promote rule, int operands) {
  auto inner = std::move(e.call);
  e.call = [inner, rule, operands](Context& ctx, const Args& args) -> Values {
    const Args promoted(args.begin(), args.begin() + operands);
    Args converted_args = args;
    if (rule == Promote::logical) {
      for (int i = 0; i < operands; ++i) converted_args[i] = converted(args[i], DType::pred);
      return inner(ctx, converted_args);
    }
    DType result = result_type(promoted, ctx.default_dtype);
    if (rule == Promote::to_floating) result = to_floating(result, ctx.default_dtype);
    // Comparisons and predicates look at the values as they are; arithmetic on 16-bit floats is
    // done in f32 and rounded once. A tensor operand is first rounded to the result dtype, as
    // PyTorch casts it; a number is not.
    const bool exact = rule == Promote::compare || rule == Promote::predicate;
    const DType compute = exact ? result : hlo::accumulate_type(result);
    for (size_t i = 0; i < args.size(); ++i) {
      if (static_cast<int>(i) < operands && std::holds_alternative<Value>(args[i])) {
        converted_args[i] = each_operand(
            args[i], [&](Value v) { return hlo::convert(hlo::convert(v, result), compute); });
      } else {
        converted_args[i] = converted(args[i], compute);
      }
    }
    Values out = inner(ctx, converted_args);
    for (Value& v : out) {
      if (exact) continue;  // f returns pred
      v = hlo::convert(v, rule == Promote::to_real ? hlo::real_type(result) : result);
    }
    return out;
  };
  return e;
}

void Registry::foreach_(std::string list_name, std::string_view name) {
  const Entry* one = find(name);
  if (!one) throw std::logic_error("no lowering " + std::string(name) + " for " + list_name);
  Entry e;
  e.name = std::move(list_name);
  e.params = one->params;
  e.is_random = one->is_random;
  e.call = [call = one->call, num_params = one->params.size()](Context& ctx,
                                                               const Args& args) -> Values {
    size_t n = 0;
    for (const Arg& a : args) {
      if (auto* v = std::get_if<Values>(&a)) n = std::max(n, v->size());
    }
    Values out;
    for (size_t i = 0; i < n; ++i) {
      Args each;
      for (size_t k = 0; k < args.size() && k < num_params; ++k) {
        const Arg& a = args[k];
        if (auto* v = std::get_if<Values>(&a))
          each.push_back(v->at(i));
        else if (auto* weak = std::get_if<WrappedList>(&a))
          each.push_back(Wrapped{weak->values.at(i)});
        else if (auto* numbers = std::get_if<std::vector<Number>>(&a))
          each.push_back(numbers->at(i));
        else
          each.push_back(a);
      }
      Values r = call(ctx, each);
      out.insert(out.end(), r.begin(), r.end());
    }
    return out;
  };
  put(std::move(e));
}

}  // namespace torch_tpu::lower
