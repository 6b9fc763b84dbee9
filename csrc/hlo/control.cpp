// SPDX-License-Identifier: Apache-2.0
#include "hlo/attribute.h"
#include "hlo/ops.h"

namespace torch_tpu::hlo {
namespace {

std::vector<Type> types_of(const Values& xs) {
  std::vector<Type> types;
  for (const Value& x : xs) types.push_back(x.type());
  return types;
}

void require_types(std::string_view op, const Values& xs, const std::vector<Type>& types) {
  if (types_of(xs) == types) return;
  std::string want;
  for (const Type& t : types) want += (want.empty() ? "" : ", ") + t.str();
  fail(op, xs, "the results should be " + want);
}

}  // namespace

std::string combine_region(std::string_view op, Builder& b, const std::vector<Type>& scalars,
                           const Combine& combine) {
  std::vector<Type> arguments = scalars;
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  return b.region(arguments, [&](const Values& args) {
    const auto middle = args.begin() + static_cast<int64_t>(scalars.size());
    Values out = combine(Values(args.begin(), middle), Values(middle, args.end()));
    require_types(op, out, scalars);
    return out;
  });
}

Values while_(const Values& inits, const std::function<Value(const Values&)>& condition,
              const Builder::Body& body) {
  if (inits.empty()) throw Error("while: no values to carry");
  Builder& b = inits[0].builder();
  const std::vector<Type> types = types_of(inits);
  const std::string test = b.region(types, [&](const Values& args) {
    const Values p = {condition(args)};
    require_types("while condition", p, {{DType::pred, {}}});
    return p;
  });
  const std::string step = b.region(types, [&](const Values& args) {
    const Values out = body(args);
    require_types("while body", out, types);
    return out;
  });
  return b.emit("stablehlo.while", inits, "", types, {test, step});
}

Values if_(Value p, const std::function<Values()>& then_, const std::function<Values()>& else_) {
  if (p.type() != Type{DType::pred, {}}) fail("if", {p}, "a rank-0 pred is needed");
  Builder& b = p.builder();
  Values results;
  const std::string yes = b.region({}, [&](const Values&) { return then_(); }, &results);
  const std::vector<Type> types = types_of(results);
  const std::string no = b.region({}, [&](const Values&) {
    const Values out = else_();
    require_types("if", out, types);
    return out;
  });
  return b.emit("stablehlo.if", {p}, "", types, {yes, no});
}

Values custom_call(Builder& b, std::string_view target, const Values& operands,
                   const std::vector<Type>& results, std::string_view backend_config,
                   int api_version, bool has_side_effect) {
  // Version 4's configuration is a dictionary, {name = value, ..}; that of the others is a string.
  const std::string config = api_version != 4         ? quoted(backend_config)
                             : backend_config.empty() ? "{}"
                                                      : std::string(backend_config);
  return b.emit("stablehlo.custom_call", operands,
                "api_version = " + std::to_string(api_version) + " : i32, backend_config = " +
                    config + ", call_target_name = " + quoted(target) +
                    ", has_side_effect = " + (has_side_effect ? "true" : "false"),
                results);
}

Values optimization_barrier(const Values& xs) {
  if (xs.empty()) return xs;
  return xs[0].builder().emit("stablehlo.optimization_barrier", xs, "", types_of(xs));
}

}  // namespace torch_tpu::hlo
