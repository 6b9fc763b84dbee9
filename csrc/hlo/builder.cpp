// SPDX-License-Identifier: Apache-2.0
#include "hlo/builder.h"

#include <charconv>
#include <deque>
#include <map>
#include <unordered_map>

namespace torch_tpu::hlo {
namespace {

struct TypeHash {
  size_t operator()(const Type& t) const {
    uint64_t h = 0x9e3779b97f4a7c15u + static_cast<uint64_t>(t.dtype);
    for (int64_t d : t.dims) h = (h ^ static_cast<uint64_t>(d)) * 0xff51afd7ed558ccdu;
    return static_cast<size_t>(h ^ (h >> 32));
  }
};

// An operation's name without its dialect.
std::string bare(std::string_view op) { return std::string(op.substr(op.rfind('.') + 1)); }

void append_int(std::string& s, int64_t v) {
  char buffer[24];
  s.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
}

}  // namespace

struct Builder::Impl {
  Target target = Target::any;
  struct InternedType {
    Type type;
    std::string mlir;
  };
  // How a value is written: %base, %base#index, or %argbase for a parameter.
  struct Entry {
    const InternedType* type;
    int32_t base;
    int32_t index;  // result number, kSingle or kParameter
    int32_t block;  // serial number of the block that defines it
    bool is_constant = false;
    bool live = false;
  };
  static constexpr int32_t kSingle = -1, kParameter = -2;

  // One printed operation; the text lies in its block's buffer.
  struct Op {
    size_t text_begin, text_end;
    size_t operands_begin, operands_end;
    int32_t first_result, num_results;
    bool has_side_effect;
  };
  // The body of main or of a region being built.
  struct Block {
    int32_t serial;
    std::string text;
    std::vector<Op> ops;
    std::vector<int32_t>
        operands;  // of all ops, one after another; values captured by regions included
    std::vector<int32_t> captured;  // by regions made since the last op that took regions
    std::unordered_map<std::string, int32_t>
        constants;  // attributes -> value: a constant is printed once a block
  };

  std::deque<InternedType> types;
  std::unordered_map<Type, const InternedType*, TypeHash> type_index;
  std::vector<Entry> values;
  std::vector<Block> blocks;          // innermost last
  std::vector<bool> closed;           // by block serial
  std::map<int, int32_t> parameters;  // number -> value
  std::vector<std::pair<Value, std::string>> checks;
  std::map<int, int> aliases;  // output -> parameter
  bool finished = false;

  Impl() { open_block(); }

  void open_block() {
    blocks.emplace_back();
    blocks.back().serial = static_cast<int32_t>(closed.size());
    closed.push_back(false);
  }

  const InternedType* intern(const Type& type) {
    auto found = type_index.find(type);
    if (found != type_index.end()) return found->second;
    for (int64_t d : type.dims) {
      if (d < 0) throw Error("type " + type.str() + ": negative size");
    }
    const InternedType* t = &types.emplace_back(InternedType{type, type.mlir()});
    type_index.emplace(type, t);
    return t;
  }

  int32_t add_value(const InternedType* type, int32_t base, int32_t index) {
    values.push_back({type, base, index, blocks.back().serial});
    return static_cast<int32_t>(values.size()) - 1;
  }

  void append_name(std::string& s, int32_t id) const {
    const Entry& v = values[id];
    s += v.index == kParameter ? "%arg" : "%";
    append_int(s, v.base);
    if (v.index >= 0) {
      s += '#';
      append_int(s, v.index);
    }
  }

  void require_usable(std::string_view op, Value v, const Builder* self) const {
    if (!v) throw Error(bare(op) + ": an operand is null");
    if (&v.builder() != self) throw Error(bare(op) + ": an operand belongs to another builder");
    if (closed[values[v.id()].block]) {
      throw Error(bare(op) + ": an operand was made inside a region that has ended");
    }
  }

  // XLA runs the regions of while and if with the values around them in sight; those of the other
  // operations are functions of their own and may use only constants from outside.
  void require_captures_allowed(std::string_view op, const std::vector<int32_t>& captured) const {
    if (op == "stablehlo.while" || op == "stablehlo.if" || op == "stablehlo.case") return;
    for (int32_t id : captured) {
      if (!values[id].is_constant) {
        throw Error(bare(op) + ": its function uses a value " + values[id].type->type.str() +
                    " from outside that is not a constant");
      }
    }
  }

  void append_types(std::string& s, const Values& vs) const {
    for (size_t i = 0; i < vs.size(); ++i) {
      if (i) s += ", ";
      s += values[vs[i].id()].type->mlir;
    }
  }

  // Text of the innermost block without the operations that nothing needs. Values of outer blocks
  // that it uses are appended to `captured`.
  std::string close_block(const Values& results, std::vector<int32_t>& captured) {
    Block& block = blocks.back();
    auto use = [&](int32_t id) {
      if (values[id].block == block.serial) {
        values[id].live = true;
      } else {
        captured.push_back(id);
      }
    };
    for (const Value& r : results) use(r.id());
    size_t nbytes = 0;
    std::vector<bool> keep(block.ops.size());
    for (size_t i = block.ops.size(); i-- > 0;) {
      const Op& op = block.ops[i];
      bool live = op.has_side_effect;
      for (int32_t r = 0; r < op.num_results; ++r) live |= values[op.first_result + r].live;
      if (!live) continue;
      keep[i] = true;
      nbytes += op.text_end - op.text_begin;
      for (size_t j = op.operands_begin; j < op.operands_end; ++j) use(block.operands[j]);
    }
    std::string text;
    if (nbytes == block.text.size()) {
      text = std::move(block.text);
    } else {
      text.reserve(nbytes);
      for (size_t i = 0; i < block.ops.size(); ++i) {
        if (keep[i])
          text.append(block.text, block.ops[i].text_begin,
                      block.ops[i].text_end - block.ops[i].text_begin);
      }
    }
    closed[block.serial] = true;
    blocks.pop_back();
    return text;
  }
};

Builder::Builder(Target target) : impl_(new Impl) { impl_->target = target; }
Builder::~Builder() { delete impl_; }

Target Builder::target() const { return impl_->target; }

const Type& Builder::type(int32_t id) const { return impl_->values[id].type->type; }

Builder& Value::builder() const {
  if (!builder_) throw Error("None was used as a tensor");
  return *builder_;
}

const Type& Value::type() const { return builder().type(id_); }

int64_t Value::dim(int64_t i) const {
  const Type& t = type();
  if (i < -t.rank() || i >= t.rank()) {
    throw Error("dimension " + std::to_string(i) + " is out of range for " + t.str());
  }
  return t.dims[i < 0 ? i + t.rank() : i];
}

Value Builder::parameter(int index, const Type& type) {
  const std::string what = "parameter " + std::to_string(index);
  if (impl_->blocks.size() != 1) throw Error(what + " was declared inside a region");
  const auto [place, is_new] =
      impl_->parameters.emplace(index, static_cast<int32_t>(impl_->values.size()));
  if (!is_new) throw Error(what + " was declared twice");
  return Value(this, impl_->add_value(impl_->intern(type), index, Impl::kParameter));
}

void Builder::check(Value violated, std::string message) {
  impl_->require_usable("check", violated, this);
  const Type& t = violated.type();
  const bool number = t.dtype == DType::s64 && (t.rank() == 0 || (t.rank() == 1 && t.dims[0] > 0));
  if (t != Type{DType::pred, {}} && !number)
    throw Error("check of " + t.str() + ": a rank-0 pred is needed, or s64 of rank 0 or 1");
  if (impl_->values[violated.id()].block != 0)
    throw Error("check: its flag was made inside a region");
  impl_->checks.emplace_back(violated, std::move(message));
}

void Builder::alias(int output, int parameter) { impl_->aliases[output] = parameter; }

Values Builder::emit(std::string_view name, const Values& operands, std::string_view attributes,
                     const std::vector<Type>& results, const std::vector<std::string>& regions) {
  Impl& impl = *impl_;
  if (impl.finished) throw Error(bare(name) + ": the program is finished");
  for (const Value& v : operands) impl.require_usable(name, v, this);

  Impl::Block& block = impl.blocks.back();
  const bool is_constant = name == "stablehlo.constant";
  if (is_constant) {
    auto [found, inserted] = block.constants.try_emplace(std::string(attributes),
                                                         static_cast<int32_t>(impl.values.size()));
    if (!inserted) return {Value(this, found->second)};
  }

  Impl::Op op;
  op.first_result = static_cast<int32_t>(impl.values.size());
  op.num_results = static_cast<int32_t>(results.size());
  op.has_side_effect =
      results.empty() || attributes.find("has_side_effect = true") != std::string_view::npos;
  op.operands_begin = block.operands.size();
  for (const Value& v : operands) block.operands.push_back(v.id());
  if (!regions.empty()) {
    impl.require_captures_allowed(name, block.captured);
    block.operands.insert(block.operands.end(), block.captured.begin(), block.captured.end());
    block.captured.clear();
  }
  op.operands_end = block.operands.size();

  std::string& s = block.text;
  op.text_begin = s.size();
  const size_t indent = 2 * impl.blocks.size() + 2;
  s.append(indent, ' ');
  if (!results.empty()) {
    s += '%';
    append_int(s, op.first_result);
    if (results.size() > 1) {
      s += ':';
      append_int(s, static_cast<int64_t>(results.size()));
    }
    s += " = ";
  }
  s += '"';
  s += name;
  s += "\"(";
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i) s += ", ";
    impl.append_name(s, operands[i].id());
  }
  s += ')';
  if (!attributes.empty()) {
    s += " <{";
    s += attributes;
    s += "}>";
  }
  if (!regions.empty()) {
    s += " (";
    for (size_t i = 0; i < regions.size(); ++i) {
      if (i) s += ", ";
      s += "{\n";
      s += regions[i];
      s.append(indent, ' ');
      s += '}';
    }
    s += ')';
  }
  s += " : (";
  impl.append_types(s, operands);
  s += ") -> ";
  Values out;
  out.reserve(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    int32_t index = results.size() > 1 ? static_cast<int32_t>(i) : Impl::kSingle;
    out.emplace_back(this, impl.add_value(impl.intern(results[i]), op.first_result, index));
    impl.values.back().is_constant = is_constant;
  }
  if (results.size() != 1) s += '(';
  impl.append_types(s, out);
  if (results.size() != 1) s += ')';
  s += '\n';
  op.text_end = s.size();
  block.ops.push_back(op);
  return out;
}

std::string Builder::region(const std::vector<Type>& arguments, const Body& body, Values* results) {
  Impl& impl = *impl_;
  const size_t depth = impl.blocks.size();
  const std::string indent(2 * depth + 2, ' ');
  impl.open_block();
  // Whatever the body throws, the builder is back at its own block.
  struct Restore {
    Impl& impl;
    size_t depth;
    ~Restore() {
      while (impl.blocks.size() > depth) {
        impl.closed[impl.blocks.back().serial] = true;
        impl.blocks.pop_back();
      }
    }
  } restore{impl, depth};

  Values args;
  for (const Type& t : arguments) {
    int32_t id = static_cast<int32_t>(impl.values.size());
    args.emplace_back(this, impl.add_value(impl.intern(t), id, Impl::kSingle));
  }
  const Values returned = body(args);
  for (const Value& v : returned) impl.require_usable("region", v, this);

  std::string text;
  if (!args.empty()) {
    text = indent + "^bb0(";
    for (size_t i = 0; i < args.size(); ++i) {
      if (i) text += ", ";
      impl.append_name(text, args[i].id());
      text += ": ";
      text += impl.values[args[i].id()].type->mlir;
    }
    text += "):\n";
  }
  std::vector<int32_t> captured;
  text += impl.close_block(returned, captured);
  text += indent + "  \"stablehlo.return\"(";
  for (size_t i = 0; i < returned.size(); ++i) {
    if (i) text += ", ";
    impl.append_name(text, returned[i].id());
  }
  text += ") : (";
  impl.append_types(text, returned);
  text += ") -> ()\n";
  std::vector<int32_t>& outer = impl.blocks.back().captured;
  outer.insert(outer.end(), captured.begin(), captured.end());
  if (results) *results = returned;
  return text;
}

Module Builder::finish(const Values& results) {
  Impl& impl = *impl_;
  if (impl.finished) throw Error("finish: the program is finished already");
  if (impl.blocks.size() != 1) throw Error("finish: called inside a region");

  Module module;
  Values outputs = results;
  for (const auto& [flag, message] : impl.checks) {
    outputs.push_back(flag);
    module.checks.push_back(message);
  }
  for (const Value& v : outputs) {
    impl.require_usable("finish", v, this);
    module.outputs.push_back(v.type());
  }
  impl.finished = true;
  std::vector<int32_t> captured;
  const std::string body = impl.close_block(outputs, captured);

  module.aliases.assign(outputs.size(), -1);
  std::map<int, int> aliased_output;  // parameter -> output
  for (const auto& [output, parameter] : impl.aliases) {
    const auto p = impl.parameters.find(parameter);
    const std::string what =
        "alias of output " + std::to_string(output) + " and parameter " + std::to_string(parameter);
    if (output < 0 || output >= static_cast<int>(results.size()))
      throw Error(what + ": no such output");
    if (p == impl.parameters.end()) throw Error(what + ": no such parameter");
    if (type(p->second) != outputs[output].type()) {
      throw Error(what + ": " + outputs[output].type().str() + " and " + type(p->second).str() +
                  " differ");
    }
    if (!impl.values[p->second].live) continue;  // the program does not take it
    if (!aliased_output.emplace(parameter, output).second)
      throw Error(what + ": the parameter is given to two outputs");
    module.aliases[output] = parameter;
  }

  std::string& s = module.text;
  s.reserve(body.size() + 256 + 64 * impl.parameters.size() + 64 * outputs.size());
  s += "module {\n  func.func public @main(";
  for (const auto& [index, id] : impl.parameters) {
    if (!impl.values[id].live) continue;
    if (!module.inputs.empty()) s += ", ";
    module.inputs.push_back(index);
    impl.append_name(s, id);
    s += ": ";
    s += impl.values[id].type->mlir;
    const auto alias = aliased_output.find(index);
    if (alias != aliased_output.end())
      s += " {tf.aliasing_output = " + std::to_string(alias->second) + " : i32}";
  }
  s += ") -> (";
  impl.append_types(s, outputs);
  s += ") {\n";
  s += body;
  s += "    return";
  for (size_t i = 0; i < outputs.size(); ++i) {
    s += i ? ", " : " ";
    impl.append_name(s, outputs[i].id());
  }
  if (!outputs.empty()) s += " : ";
  impl.append_types(s, outputs);
  s += "\n  }\n}\n";
  return module;
}

}  // namespace torch_tpu::hlo
