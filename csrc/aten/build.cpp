// SPDX-License-Identifier: Apache-2.0
#include "aten/build.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "aten/checks.h"
#include "aten/errors.h"
#include "aten/meta.h"
#include "aten/number.h"
#include "aten/settings.h"
#include "aten/storage.h"
#include "aten/view_key.h"
#include "runtime/program.h"

namespace torch_tpu::aten {
namespace {

using hlo::DType;
using hlo::Type;
using hlo::Value;
using hlo::Values;
using lower::Arg;
using lower::Args;
using runtime::Cell;
using runtime::Device;

std::mutex g_decomposed_mutex;
std::map<std::string, int64_t> g_decomposed;
Decomposer g_decomposer;
MetaErrors g_meta_errors;

DType default_dtype() { return to_dtype(c10::typeMetaToScalarType(c10::get_default_dtype())); }

// On a miss: from the call's arguments to its program.
struct Build {
  const Recipe& recipe;
  const Call& call;
  const OpPlan& plan;
  const c10::IValue* args;

  Build(const Recipe& r, const Call& c) : recipe(r), call(c), plan(c.plan), args(c.args) {}

  // Null if an out= tensor was resized: then the call is another one.
  std::shared_ptr<const Compiled> build() {
    std::optional<MetaResult> meta;
    if (recipe.graph) {
      meta.emplace();
      meta->fresh = recipe.metas;
    } else {
      check_call(plan, args);
      if (plan.overlap == OpPlan::Overlap::refused) {  // before an out= tensor is resized
        for (int w : call.written_reads) {
          if (call.reads[w].impl) at::assert_no_internal_overlap(call.reads[w].impl);
        }
      }
      if (!has_refusing_meta()) meta = metadata();
      if (meta) require_known_dtypes(*meta);
      if (has_faulty_meta(plan.functional)) meta.reset();
      if (meta && resize_outputs(*meta)) return nullptr;
    }
    for (int w : call.written_reads) {
      if (call.reads[w].impl) at::assert_no_internal_overlap(call.reads[w].impl);
    }
    std::shared_ptr<const lower::Graph> graph = recipe.graph;
    if (!graph && !plan.entry) {
      graph = decomposition();
      if (!graph) {
        if (!settings().host_fallback) not_implemented(*plan.schema, args, plan.num_args, "");
        auto c = std::make_shared<Compiled>();
        c->host_fallback = true;
        return c;
      }
    }
    Trace t;
    t.parameters.resize(call.operands.size());
    Values results = evaluate(t, graph.get());
    if (!recipe.graph) require_in_place(results);
    TORCH_CHECK(results.size() >= call.written_reads.size(), plan.name,
                ": internal error: the lowering gave ", results.size(), " results, ",
                call.written_reads.size(), " tensors are written");
    // A functional twin of an operator that also updates its inputs gives the results first, then
    // the updated inputs; out= tensors are the last of what is written.
    if (plan.functional.ends_with("_functional") && plan.num_fresh == 0) {
      const auto outs = std::count(plan.only_written.begin(), plan.only_written.end(), true);
      std::rotate(results.begin(), results.begin() + outs, results.end());
    }
    const size_t num_fresh = results.size() - call.written_reads.size();
    if (!meta && resize_outputs(results)) return nullptr;
    auto c = std::make_shared<Compiled>();
    Values outputs;
    add_fresh(*c, results, num_fresh, meta, outputs);
    add_writes(t, *c, results, num_fresh, outputs);
    c->draws = static_cast<uint64_t>(t.draws);
    c->program = runtime::ProgramCache::global().get(plan.name, t.builder.finish(outputs));
    c->donatable.assign(call.operands.size() + 1, false);
    for (int a : c->program->aliases)
      if (a >= 0) c->donatable[static_cast<size_t>(a)] = true;
    return c;
  }

  static hlo::Target target() {
    const bool here = Device::config().platform == "cpu" && !settings().portable_programs;
    return here ? hlo::Target::cpu : hlo::Target::any;
  }

  struct Trace {
    hlo::Builder builder{target()};
    std::vector<Value> parameters;  // by operand
    size_t next_read = 0;
    std::unordered_map<Cell*, Value> current;  // base after the writes so far
    int64_t draws = 0;
    Value rng;
  };

  Value parameter(Trace& t, int operand) {
    Value& p = t.parameters[static_cast<size_t>(operand)];
    if (!p) p = t.builder.parameter(operand, call.operands[static_cast<size_t>(operand)]->type());
    return p;
  }

  view::Plan planned(const Call::Read& r) const {
    return view::plan(call.operands[static_cast<size_t>(r.operand)]->type(), view_of(*r.impl));
  }

  Values starts(Trace& t, const Call::Read& r, const view::Plan& p) {
    Values s;
    for (int64_t k = 0; k < p.num_operands(); ++k)
      s.push_back(parameter(t, r.operand + 1 + static_cast<int>(k)));
    return s;
  }

  Arg read_arg(Trace& t, const Call::Read& r) {
    switch (r.kind) {
      case Call::Read::Kind::none:
        return std::monostate{};
      case Call::Read::Kind::number:
        return lower::Wrapped{parameter(t, r.operand)};
      case Call::Read::Kind::host:
        if (r.wrapped) return lower::Wrapped{parameter(t, r.operand)};
        return parameter(t, r.operand);
      case Call::Read::Kind::tensor:
        break;
    }
    Value v = parameter(t, r.operand);
    if (!r.whole) {
      const view::Plan p = planned(r);
      v = view::read(v, view_of(*r.impl), p, starts(t, r, p));
    }
    if (r.impl->key_set().has(c10::DispatchKey::Conjugate)) v = conj(v);
    if (r.impl->key_set().has(c10::DispatchKey::Negative)) v = hlo::negate(v);
    if (r.impl->is_wrapped_number()) return lower::Wrapped{v};
    return v;
  }

  static Value conj(Value v) {
    return hlo::is_complex(v.dtype()) ? hlo::complex(hlo::real(v), hlo::negate(hlo::imag(v))) : v;
  }

  Value read_value(Trace& t, const Call::Read& r) {
    const Arg a = read_arg(t, r);
    if (std::holds_alternative<std::monostate>(a)) return {};
    return lower::as_value(a);
  }

  static lower::Number number(const c10::IValue& v) {
    if (v.isDouble()) return lower::Number::of(v.toDouble());
    if (v.isBool()) return lower::Number::of(v.toBool());
    if (v.isComplexDouble())
      return lower::Number::of(
          std::complex<double>(v.toComplexDouble().real(), v.toComplexDouble().imag()));
    return lower::Number::of(v.toInt());
  }

  // How many reads the walk made of a tensor, a list or nothing.
  size_t num_reads(const c10::IValue& v, size_t i) const {
    if (v.isList()) return v.toListRef().size();
    const bool written = std::ranges::find(plan.written, static_cast<int>(i)) != plan.written.end();
    return v.isTensor() || (v.isNone() && written);
  }

  Arg argument(Trace& t, const c10::IValue& v, size_t i) {
    if (v.isTensor()) return read_arg(t, call.reads[t.next_read++]);
    if (v.isTensorList() || v.isOptionalTensorList()) {
      Values list;
      for (size_t k = 0; k < v.toListRef().size(); ++k)
        list.push_back(read_value(t, call.reads[t.next_read++]));
      return list;
    }
    if (is_number(v)) {
      if (plan.wants_operand[i]) {
        const Call::Read& r = call.reads[t.next_read++];
        return r.operand < 0 ? lower::as_operand(t.builder, number(v)) : read_arg(t, r);
      }
      if (plan.is_dtype[i]) return to_dtype(static_cast<at::ScalarType>(v.toInt()));
      return number(v);
    }
    if (v.isIntList() && !plan.wants_operand[i]) return lower::Dims(v.toIntVector());
    if (v.isDoubleList() && !plan.wants_operand[i]) return v.toDoubleVector();
    if (v.isBoolList() && !plan.wants_operand[i]) {
      std::vector<bool> bits;
      for (bool b : v.toBoolList()) bits.push_back(b);
      return bits;
    }
    if (v.isList()) {
      if (plan.wants_operand[i]) {
        lower::WrappedList list;
        for (size_t k = 0; k < v.toListRef().size(); ++k)
          list.values.push_back(read_value(t, call.reads[t.next_read++]));
        return list;
      }
      std::vector<lower::Number> list;
      for (const c10::IValue& e : v.toListRef()) list.push_back(number(e));
      return list;
    }
    if (v.isString()) return v.toStringRef();
    t.next_read += num_reads(v, i);
    return std::monostate{};
  }

  // The lowering's arguments; skips what is only written.
  Args arguments(Trace& t) {
    Args out;
    size_t k = 0;
    for (size_t i = 0; i < plan.num_args; ++i) {
      if (k < plan.call_args.size() && plan.call_args[k] == static_cast<int>(i)) {
        out.push_back(argument(t, args[i], i));
        ++k;
      } else {
        t.next_read += num_reads(args[i], i);
      }
    }
    if (plan.appends_options) {
      const at::Tensor& written = args[plan.written.at(0)].toTensor();
      out.insert(out.end(), {to_dtype(written.scalar_type()), std::monostate{}, std::monostate{},
                             std::monostate{}});
    }
    return out;
  }

  Values evaluate(Trace& t, const lower::Graph* graph) {
    lower::Context ctx{t.builder, default_dtype(), settings().matmul_precision, {}};
    ctx.draw = [&](int64_t count) {
      if (!t.rng)
        t.rng = t.builder.parameter(static_cast<int>(call.operands.size()), Type{DType::u64, {2}});
      return lower::next_draw(t.rng, t.draws, count);
    };
    Args in = arguments(t);
    if (!graph) return plan.entry->call(ctx, in);
    Values inputs;  // a graph's inputs are the call's tensors, lists flattened
    for (const Arg& a : in) {
      if (auto* v = std::get_if<Value>(&a))
        inputs.push_back(*v);
      else if (auto* w = std::get_if<lower::Wrapped>(&a))
        inputs.push_back(w->value);
      else if (auto* list = std::get_if<Values>(&a)) {
        for (const Value& v : *list)
          if (v) inputs.push_back(v);
      }
    }
    return graph->evaluate(ctx, inputs);
  }

  std::shared_ptr<const lower::Graph> decomposition() {
    if (!g_decomposer || !plan.schema) return nullptr;
    std::vector<c10::IValue> in;
    for (int i : plan.call_args) in.push_back(args[i]);
    auto graph = g_decomposer(plan.functional, in);
    if (graph) {
      std::lock_guard lock(g_decomposed_mutex);
      g_decomposed[plan.functional]++;
    }
    return graph;
  }

  // True if an out= tensor had to change its size: then the signature is another one. `resize(k,
  // out)` gives written tensor number k its size if it has another, and says so.
  template <class Resize>
  bool resize_each_output(const Resize& resize) {
    bool changed = false;
    size_t k = 0;
    for (int w : plan.written) {
      const c10::IValue& v = args[w];
      const size_t n = v.isList() ? v.toListRef().size() : 1;
      for (size_t j = 0; j < n; ++j, ++k) {
        if (!plan.only_written[static_cast<size_t>(w)]) continue;
        const at::Tensor& out = v.isTensor() ? v.toTensor() : v.toListRef()[j].toTensor();
        if (out.defined() && resize(k, out)) changed = true;
      }
    }
    return changed;
  }

  bool resize_outputs(const MetaResult& meta) {
    return resize_each_output([&](size_t k, const at::Tensor& out) {
      const at::Tensor& want = meta.written.at(k);
      if (!want.defined() || out.sizes() == want.sizes()) return false;
      out.resize_(want.sizes());
      if (out.strides() != want.strides()) out.as_strided_(want.sizes(), want.strides());
      return true;
    });
  }

  // Where PyTorch has no meta function: the lowering's results, the last of which are written, say
  // the sizes.
  bool resize_outputs(const Values& results) {
    return resize_each_output([&](size_t k, const at::Tensor& out) {
      const size_t i = results.size() - call.written_reads.size() + k;
      if (i >= results.size() || !results[i]) return false;
      const hlo::Dims& want = results[i].dims();
      if (out.sizes() == at::IntArrayRef(want)) return false;
      out.resize_(want);
      return true;
    });
  }

  // Of these, PyTorch's meta function refuses what its CPU kernel takes: on the meta device only,
  // index_add and index_reduce look at row 0 of a source that an empty index leaves without rows.
  bool has_refusing_meta() const {
    return (plan.functional == "aten::index_add" || plan.functional == "aten::index_reduce") &&
           args[2].toTensor().numel() == 0;
  }

  // PyTorch's meta functions of these say another dtype or shape than its CPU kernels give
  // (huber_loss of two dtypes, multi_margin_loss of one sample, nansum over dim=[], isin of a
  // number): the lowering is right.
  static bool has_faulty_meta(const std::string& name) {
    return name == "aten::huber_loss" || name == "aten::multi_margin_loss" ||
           name == "aten::nansum" || name == "aten::isin.Scalar_Tensor";
  }

  // Not a TypeError, which Python's operators (x + y) would turn into "unsupported operand
  // type(s)".
  void require_known_dtypes(const MetaResult& meta) const {
    for (const at::Tensor& t : meta.fresh) {
      TORCH_CHECK_NOT_IMPLEMENTED(!t.defined() || t.scalar_type() != at::kComplexHalf, plan.name,
                                  " is not implemented for tpu with a result of dtype complex32: "
                                  "XLA has no such element type"
                                  ". Convert the operands to complex64 first.");
    }
  }

  // What a functional operator computes must fit the tensor that its in-place form writes. Only the
  // meta functions of structured operators see to that, in CPU's words.
  void require_in_place(const Values& results) const {
    if (!plan.op || plan.functional == plan.name || plan.schema->name().back() != '_' ||
        results.size() < call.written_reads.size())
      return;
    for (size_t k = 0; k < call.written_reads.size(); ++k) {
      const c10::TensorImpl* to = call.reads[call.written_reads[k]].impl;
      const Value& v = results[results.size() - call.written_reads.size() + k];
      if (!to || !v) continue;
      TORCH_CHECK(at::is_expandable_to(v.dims(), to->sizes()), "output with shape ", to->sizes(),
                  " doesn't match the broadcast shape ", at::IntArrayRef(v.dims()));
      require_castable(to_scalar_type(v.dtype()), c10::typeMetaToScalarType(to->dtype()));
    }
  }

  static void require_castable(at::ScalarType type, at::ScalarType out) {
    TORCH_CHECK(at::canCast(type, out), "result type ", type,
                " can't be cast to the desired output type ", out);
  }

  // PyTorch's promotion of all tensors and numbers of the call.
  at::ScalarType promoted_type() const {
    at::native::ResultTypeState state;
    for (int i : plan.call_args) {
      const c10::IValue& v = args[i];
      if (v.isTensor() && v.toTensor().defined())
        state = at::native::update_result_type_state(v.toTensor(), state);
      else if (v.isScalar())
        state = at::native::update_result_type_state(v.toScalar(), state);
    }
    return at::native::result_type(state);
  }

  // Sizes that do not broadcast, in the words of PyTorch's kernels: its Python references have
  // their own. The kernels of masked operators expand the mask first.
  void require_broadcast(const std::exception& from_python) {
    if (std::string_view(from_python.what()).find("Attempting to broadcast a dimension") ==
        std::string_view::npos)
      return;
    std::vector<at::IntArrayRef> sizes;
    for (size_t i = 0; i < plan.num_args; ++i)
      if (args[i].isTensor() && args[i].toTensor().defined())
        sizes.push_back(args[i].toTensor().sizes());
    if (sizes.size() > 1 && plan.name.starts_with("aten::masked_")) std::swap(sizes[0], sizes[1]);
    at::DimVector common;
    for (const at::IntArrayRef s : sizes) common = at::infer_size_dimvector(common, s);
  }

  // PyTorch's metadata or refusal. Its Python meta functions refuse in words of their own ("got
  // torch.int64"), where the CPU's kernels have others: then a lowering that refuses the call too,
  // in the kernel's words, is believed.
  std::optional<MetaResult> metadata() {
    try {
      return call_meta(plan, args);
    } catch (const c10::Error&) {
      throw;
    } catch (const std::exception& e) {  // from Python
      require_broadcast(e);
      if (!plan.entry) throw;
      // Some failures are faults of a meta function itself (an LSTM cell without bias, a mean of
      // nothing): the lowering, if it takes the call, says shapes and dtypes too.
      const bool fault = g_meta_errors.is_fault && g_meta_errors.is_fault(e);
      bool taken = false;
      try {
        Trace t;
        t.parameters.resize(call.operands.size());
        require_in_place(evaluate(t, nullptr));
        taken = true;
      } catch (const lower::UserError&) {
        // CPU looks at the result's type before a kernel refuses its own.
        if (std::string_view(e.what()).find("can't be cast because it is not safe") !=
            std::string_view::npos)
          require_castable(promoted_type(), args[plan.written.at(0)].toTensor().scalar_type());
        throw;
      } catch (const c10::Error&) {
        throw;
      } catch (...) {
      }
      if (fault && taken) return std::nullopt;
      if (g_meta_errors.retell) g_meta_errors.retell(e);
      throw;
    }
  }

  void add_fresh(Compiled& c, const Values& results, size_t num_fresh,
                 const std::optional<MetaResult>& meta, Values& outputs) {
    const bool has_meta = meta && meta->fresh.size() == num_fresh;
    TORCH_CHECK(!meta || has_meta || meta->fresh.empty() || plan.num_fresh == 0, plan.name,
                ": internal error: the lowering gave ", num_fresh, " results, PyTorch says ",
                meta ? meta->fresh.size() : 0);
    for (size_t i = 0; i < num_fresh; ++i) {
      Compiled::Fresh f;
      const Value& v = results[i];
      if (has_meta && i < meta->numbers.size()) f.number = meta->numbers[i];
      if (v && !(has_meta && !meta->fresh[i].defined())) {
        f.dtype = has_meta ? meta->fresh[i].scalar_type() : to_scalar_type(v.dtype());
        if (has_meta) {
          const at::Tensor& m = meta->fresh[i];
          TORCH_CHECK(to_dtype(f.dtype) == v.dtype() && m.sizes() == at::IntArrayRef(v.dims()),
                      plan.name, ": internal error: result ", i, " of the lowering is ",
                      v.type().str(), ", PyTorch says ", m.scalar_type(), m.sizes(),
                      ". Please report this.");
          f.sizes.assign(m.sizes().begin(), m.sizes().end());
          f.strides.assign(m.strides().begin(), m.strides().end());
        } else {
          const view::Dims strides = view::contiguous_strides(v.dims());
          f.sizes.assign(v.dims().begin(), v.dims().end());
          f.strides.assign(strides.begin(), strides.end());
        }
        const view::View as{v.dtype(), v.dims(), {f.strides.begin(), f.strides.end()}, 0};
        f.output = static_cast<int>(outputs.size());
        outputs.push_back(view::to_base(v, as));
      }
      c.fresh.push_back(std::move(f));
    }
  }

  void add_writes(Trace& t, Compiled& c, const Values& results, size_t num_fresh, Values& outputs) {
    std::vector<std::pair<Cell*, int>> order;  // distinct cells and the first slot that names each
    for (size_t k = 0; k < call.written_reads.size(); ++k) {
      const Call::Read& r = call.reads[call.written_reads[k]];
      if (!r.cell) continue;
      Value data = results[num_fresh + k];
      if (!data) continue;  // left as it is (running statistics outside training)
      const DType dtype = to_dtype(c10::typeMetaToScalarType(r.impl->dtype()));
      data = hlo::broadcast_to(hlo::convert(data, dtype), r.impl->sizes().vec());
      if (r.impl->key_set().has(c10::DispatchKey::Negative)) data = hlo::negate(data);
      if (r.impl->key_set().has(c10::DispatchKey::Conjugate)) data = conj(data);
      auto [it, first] = t.current.try_emplace(r.cell);
      if (first) order.emplace_back(r.cell, static_cast<int>(k));
      const view::View v = view_of(*r.impl);
      if (view::covers(r.cell->nbytes, v)) {
        it->second = view::to_base(data, v);
      } else {
        Value base = first ? parameter(t, r.operand) : it->second;
        // An earlier write may have replaced the base by one of another shape: bring it back to the
        // one that the plan in the key is for.
        base = hlo::reshape(base, call.operands[static_cast<size_t>(r.operand)]->type().dims);
        const view::Plan p = planned(r);
        it->second = view::write(base, v, p, starts(t, r, p), data);
      }
    }
    for (auto& [cell, slot] : order) {
      const Call::Read& r = call.reads[call.written_reads[slot]];
      const Value base = t.current[cell];
      const int output = static_cast<int>(outputs.size());
      outputs.push_back(base);
      c.writes.push_back({slot, output});
      if (t.parameters[static_cast<size_t>(r.operand)] &&
          base.type() == call.operands[static_cast<size_t>(r.operand)]->type())
        t.builder.alias(output, r.operand);
    }
  }
};

}  // namespace

std::shared_ptr<const Compiled> build(const Recipe& recipe, const Call& call) {
  return Build(recipe, call).build();
}

void set_decomposer(Decomposer d) { g_decomposer = std::move(d); }
void set_meta_errors(MetaErrors m) { g_meta_errors = std::move(m); }

std::vector<std::string> decomposed_operators() {
  std::lock_guard lock(g_decomposed_mutex);
  std::vector<std::string> names;
  for (const auto& [name, count] : g_decomposed) names.push_back(name);
  return names;
}

}  // namespace torch_tpu::aten
