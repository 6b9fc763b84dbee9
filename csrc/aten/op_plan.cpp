// SPDX-License-Identifier: Apache-2.0
#include "aten/op_plan.h"

#include <ATen/core/enum_tag.h>

#include <unordered_map>
#include <unordered_set>

#include "aten/checks.h"
#include "aten/number.h"

namespace torch_tpu::aten {
namespace {

bool is_written(const c10::Argument& a) { return a.alias_info() && a.alias_info()->isWrite(); }

// native_batch_norm updates its running statistics without saying so in its schema.
bool writes_undeclared(const std::string& name, const std::string& argument) {
  return name == "aten::native_batch_norm" &&
         (argument == "running_mean" || argument == "running_var");
}

// alpha or beta of a sum of tensors: nearly always 1, and then there is nothing to multiply.
bool is_weight(const c10::FunctionSchema& schema, const c10::Argument& a) {
  const auto& arguments = schema.arguments();
  const bool sum = arguments.size() > 1 && arguments[1].type()->kind() == c10::TypeKind::TensorType;
  return sum && (a.name() == "alpha" || a.name() == "beta") && a.default_value() &&
         is_number(*a.default_value());
}

// Same arguments in the same order, by type and name, leaving out the tensors that `schema` only
// writes.
bool takes_same_arguments(const c10::FunctionSchema& schema, const c10::FunctionSchema& candidate,
                          bool* appends_options) {
  size_t k = 0;
  const auto& theirs = candidate.arguments();
  for (const c10::Argument& a : schema.arguments()) {
    if (a.is_out()) continue;
    if (k >= theirs.size() || *theirs[k].type() != *a.type() || theirs[k].name() != a.name())
      return false;
    ++k;
  }
  *appends_options =
      k + 4 == theirs.size() && theirs[k].name() == "dtype" && theirs[k + 1].name() == "layout";
  return *appends_options || k == theirs.size();
}

// What is written may not be read: the kernels that gather into an out= tensor refuse it.
bool refuses_overlap(const c10::FunctionSchema& schema, const std::string& functional) {
  static const std::unordered_set<std::string> names{
      "aten::cat",      "aten::gather",        "aten::index_select",
      "aten::kthvalue", "aten::masked_select", "aten::take",
  };
  return schema.is_mutable() && names.count(functional) > 0;
}

}  // namespace

std::string full_name(const c10::OperatorName& n) {
  return n.overload_name.empty() ? n.name : n.name + "." + n.overload_name;
}

// Read from the dispatcher once. Operators registered later are looked up by their own name.
const std::vector<c10::OperatorName>& overloads(const std::string& base) {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string, std::vector<c10::OperatorName>>();
    for (const c10::OperatorName& n : c10::Dispatcher::singleton().getAllOpNames())
      (*t)[n.name].push_back(n);
    return t;
  }();
  static const std::vector<c10::OperatorName> none;
  auto it = table->find(base);
  return it == table->end() ? none : it->second;
}

std::optional<Functional> functional_of(const c10::FunctionSchema& schema) {
  std::string base = schema.name();
  std::vector<std::string> bases{base, base + "_functional"};
  if (base.back() == '_') {
    base.pop_back();
    bases = {base, base + "_functional"};
  }
  for (const std::string& b : bases) {
    for (const c10::OperatorName& n : overloads(b)) {
      auto op = c10::Dispatcher::singleton().findSchema(n);
      bool appends_options = false;
      if (!op || op->schema().is_mutable() ||
          !takes_same_arguments(schema, op->schema(), &appends_options))
        continue;
      return Functional{n, appends_options};
    }
  }
  return std::nullopt;
}

OpPlan::OpPlan(const lower::Entry& e)
    : name(e.name), functional(e.name), entry(&e), num_args(e.params.size()) {
  only_written.assign(num_args, false);
  defaults.resize(num_args);
  is_dtype.assign(num_args, false);
  for (size_t i = 0; i < num_args; ++i) {
    call_args.push_back(static_cast<int>(i));
    wants_operand.push_back(e.params[i] == lower::ParamKind::operand);
  }
}

OpPlan::OpPlan(std::string graph_name, size_t num_tensors, std::vector<int> written_args)
    : name(std::move(graph_name)),
      functional(name),
      num_args(num_tensors),
      written(std::move(written_args)) {
  wants_operand.assign(num_args, false);
  only_written.assign(num_args, false);
  defaults.resize(num_args);
  is_dtype.assign(num_args, false);
  for (size_t i = 0; i < num_args; ++i) call_args.push_back(static_cast<int>(i));
}

OpPlan::OpPlan(const c10::OperatorHandle& handle)
    : op(handle),
      schema(&handle.schema()),
      name(full_name(handle.operator_name())),
      functional(name) {
  const c10::FunctionSchema& schema = handle.schema();
  const lower::Registry& registry = lower::Registry::global();
  num_args = schema.arguments().size();
  if (name == "aten::copy_" || (schema.is_mutable() && handle.hasTag(at::Tag::pointwise)))
    overlap = Overlap::same_only;
  entry = registry.find(name);
  const bool own_lowering = entry != nullptr;
  if (!own_lowering && schema.is_mutable()) {
    if (auto n = functional_of(schema)) {
      functional = full_name(n->name);
      appends_options = n->appends_options;
      entry = registry.find(functional);
    }
  }
  number_check = aten::number_check(functional);
  if (refuses_overlap(schema, functional)) overlap = Overlap::refused;
  for (size_t i = 0; i < num_args; ++i) {
    const c10::Argument& a = schema.arguments()[i];
    const bool out = a.is_out() && !own_lowering;
    only_written.push_back(out);
    if (is_written(a) || writes_undeclared(name, a.name())) written.push_back(static_cast<int>(i));
    is_dtype.push_back(a.real_type()->kind() == c10::TypeKind::ScalarTypeType ||
                       (a.real_type()->kind() == c10::TypeKind::OptionalType &&
                        a.real_type()->castRaw<c10::OptionalType>()->getElementType()->kind() ==
                            c10::TypeKind::ScalarTypeType));
    const bool generator = a.type()->str().find("Generator") != std::string::npos;
    if (generator) generator_arg = static_cast<int>(i);
    const size_t position = call_args.size();
    wants_operand.push_back(!out && entry && position < entry->params.size() &&
                            entry->params[position] == lower::ParamKind::operand);
    defaults.emplace_back();
    if (wants_operand.back() && is_weight(schema, a))
      defaults.back() = number_of(*a.default_value());
    if (!out) call_args.push_back(static_cast<int>(i));
  }
  for (const c10::Argument& r : schema.returns()) {
    int alias = -1;
    if (r.alias_info()) {
      for (size_t i = 0; i < num_args; ++i) {
        const c10::Argument& a = schema.arguments()[i];
        if (a.alias_info() && a.alias_info()->beforeSets() == r.alias_info()->beforeSets())
          alias = static_cast<int>(i);
      }
    }
    returns.push_back(alias);
    returns_list.push_back(r.type()->kind() == c10::TypeKind::ListType);
    if (alias < 0) ++num_fresh;
  }
}

}  // namespace torch_tpu::aten
