// SPDX-License-Identifier: Apache-2.0
#include "aten/run.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/SmallVector.h>

#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "aten/checks.h"
#include "aten/errors.h"
#include "aten/generator.h"
#include "aten/meta.h"
#include "aten/number.h"
#include "aten/storage.h"
#include "runtime/program.h"
#include "view/view.h"

namespace torch_tpu::aten {
namespace {

using hlo::DType;
using hlo::Type;
using hlo::Value;
using hlo::Values;
using lower::Arg;
using lower::Args;
using runtime::Array;
using runtime::Cell;
using runtime::Device;
using runtime::DeviceArray;
using runtime::ScalarValue;

using Key = c10::SmallVector<uint64_t, 96>;

struct KeyHash {
  size_t operator()(const std::vector<uint64_t>& k) const {
    uint64_t h = 0x9e3779b97f4a7c15ull ^ k.size();
    for (uint64_t w : k) {
      h = (h ^ w) * 0xff51afd7ed558ccdull;
      h ^= h >> 32;
    }
    return h;
  }
};

DType default_dtype() { return to_dtype(c10::typeMetaToScalarType(c10::get_default_dtype())); }

// The host value of a 0-dim CPU tensor.
ScalarValue host_scalar(const c10::TensorImpl& t) {
  ScalarValue s;
  s.dtype = to_dtype(c10::typeMetaToScalarType(t.dtype()));
  std::memcpy(s.bits, t.data(), t.itemsize());
  return s;
}

view::View view_of(const c10::TensorImpl& t) {
  return {to_dtype(c10::typeMetaToScalarType(t.dtype())), t.sizes().vec(), t.strides().vec(),
          t.storage_offset()};
}

// Whether the tensor is its base as it lies: the usual case, decided without allocating.
bool is_whole(const c10::TensorImpl& t, DType dtype, const Type& base) {
  const auto sizes = t.sizes();
  return t.is_contiguous() && t.storage_offset() == 0 && dtype == base.dtype &&
         sizes.size() == base.dims.size() &&
         std::memcmp(sizes.data(), base.dims.data(), sizes.size() * sizeof(int64_t)) == 0;
}

std::mutex g_counts_mutex;
std::map<std::string, int64_t> g_fallback_counts;
std::map<std::string, int64_t> g_decomposed;
Decomposer g_decomposer;
MetaFault g_is_meta_fault;

}  // namespace

// A signature's program and how its results become tensors.
struct Compiled {
  std::shared_ptr<const runtime::Program> program;
  struct Fresh {
    int output = -1;  // result number, -1: an undefined tensor
    at::ScalarType dtype = at::kFloat;
    c10::SmallVector<int64_t, 5> sizes, strides;
    c10::IValue number;  // the result itself where it is no tensor
  };
  std::vector<Fresh> fresh;
  struct Write {
    int slot;  // which written tensor names the cell
    int output;
  };
  std::vector<Write> writes;
  c10::SmallVector<bool, 16> donatable;  // per operand: aliased to the result that replaces it
  uint64_t draws = 0;
  bool host_fallback = false;
};

Settings& settings() {
  static Settings s;
  return s;
}

void set_decomposer(Decomposer d) { g_decomposer = std::move(d); }
void set_meta_fault(MetaFault f) { g_is_meta_fault = std::move(f); }

std::vector<std::pair<std::string, int64_t>> fallback_counts() {
  std::lock_guard lock(g_counts_mutex);
  return {g_fallback_counts.begin(), g_fallback_counts.end()};
}

void reset_fallback_counts() {
  std::lock_guard lock(g_counts_mutex);
  g_fallback_counts.clear();
}

std::vector<std::string> decomposed_operators() {
  std::lock_guard lock(g_counts_mutex);
  std::vector<std::string> names;
  for (const auto& [name, count] : g_decomposed) names.push_back(name);
  return names;
}

// Programs by signature. Thread-safe.
class Signatures {
 public:
  Signatures() {
    std::lock_guard lock(all_mutex());
    static const bool once = [] {
      runtime::ProgramCache::global().on_forget(&Signatures::clear_all);
      return true;
    }();
    (void)once;
    all().insert(this);
  }
  ~Signatures() {
    std::lock_guard lock(all_mutex());
    all().erase(this);
  }
  std::shared_ptr<const Compiled> find(const Key& key) {
    std::lock_guard lock(mutex_);
    if (last_ && last_key_.size() == key.size() &&
        std::memcmp(last_key_.data(), key.data(), key.size() * sizeof(uint64_t)) == 0)
      return last_;
    auto it = map_.find(std::vector<uint64_t>(key.begin(), key.end()));
    if (it == map_.end()) return nullptr;
    last_key_ = key;
    last_ = it->second;
    return last_;
  }
  void insert(const Key& key, std::shared_ptr<const Compiled> c) {
    std::lock_guard lock(mutex_);
    map_[std::vector<uint64_t>(key.begin(), key.end())] = std::move(c);
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return map_.size();
  }
  void each(const std::function<void(const Compiled&)>& f) const {
    std::lock_guard lock(mutex_);
    for (const auto& [key, c] : map_) f(*c);
  }

 private:
  static std::mutex& all_mutex() {
    static auto* mutex = new std::mutex();
    return *mutex;
  }
  static std::unordered_set<Signatures*>& all() {
    static auto* set = new std::unordered_set<Signatures*>();
    return *set;
  }
  // The program cache is full: without this, the programs it forgets would stay alive here.
  static void clear_all() {
    std::lock_guard lock(all_mutex());
    for (Signatures* s : all()) {
      std::lock_guard own(s->mutex_);
      s->map_.clear();
      s->last_.reset();
    }
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::vector<uint64_t>, std::shared_ptr<const Compiled>, KeyHash> map_;
  Key last_key_;
  std::shared_ptr<const Compiled> last_;
};

// One invocation: collects operands and the signature, then launches or builds.
struct Callable::Call {
  Callable& self;
  const OpPlan& plan;
  const c10::IValue* args;
  Device* device = nullptr;

  Key key;
  c10::SmallVector<DeviceArray*, 32> operands;
  c10::SmallVector<Array, 8> owned;  // keeps number operands alive until the launch

  // What was read, in traversal order: how `arguments()` finds the operands again.
  struct Read {
    enum class Kind : uint8_t { none, tensor, host, number } kind = Kind::none;
    bool whole = true;
    bool wrapped = false;
    int operand = -1;
    int view = -1;  // index into views and plans
    c10::TensorImpl* impl = nullptr;
    Cell* cell = nullptr;
  };
  c10::SmallVector<Read, 24> reads;
  std::vector<view::View> views;
  std::vector<view::Plan> plans;
  c10::SmallVector<int, 8>
      written_reads;  // the reads that are written tensors, flattened, in order

  Call(Callable& s, const c10::IValue* a) : self(s), plan(*s.plan_), args(a) {}

  // ---- pass 1: operands and key
  // ---------------------------------------------------------------------------------
  void find_device() {
    auto look = [&](const c10::IValue& v) {
      if (device || !v.isTensor()) return;
      const at::Tensor& t = v.toTensor();
      if (t.defined() && t.device().is_privateuseone()) device = &Device::at(t.device().index());
    };
    for (size_t i = 0; i < plan.num_args && !device; ++i) {
      if (args[i].isTensor())
        look(args[i]);
      else if (args[i].isTensorList() || args[i].isOptionalTensorList())
        for (const c10::IValue& e : args[i].toListRef()) look(e);
    }
    if (!device) device = &Device::at(current_device());
  }

  void collect() {
    find_device();
    const Settings& s = settings();
    key.push_back(static_cast<uint64_t>(device->index()) |
                  static_cast<uint64_t>(s.matmul_precision) << 8 |
                  static_cast<uint64_t>(s.host_fallback) << 12 |
                  static_cast<uint64_t>(s.portable_programs) << 13 |
                  static_cast<uint64_t>(c10::typeMetaToScalarType(c10::get_default_dtype())) << 16);
    size_t next_written = 0;
    for (size_t i = 0; i < plan.num_args; ++i) {
      const bool written =
          next_written < plan.written.size() && plan.written[next_written] == static_cast<int>(i);
      if (written) ++next_written;
      collect(args[i], i, written);
    }
  }

  void collect(const c10::IValue& v, size_t i, bool written) {
    if (v.isTensor()) {
      collect_tensor(v.unsafeToTensorImpl(), written);
    } else if (v.isNone() || v.isGenerator()) {
      key.push_back(1);
    } else if (v.isTensorList() || v.isOptionalTensorList()) {
      const auto list = v.toListRef();
      key.push_back(list.size() << 8 | 2);
      for (const c10::IValue& e : list) {
        if (e.isTensor())
          collect_tensor(e.unsafeToTensorImpl(), written);
        else
          collect_none();
      }
    } else if (is_number(v)) {
      if (plan.wants_operand[i])
        collect_number(v, plan.defaults[i]);
      else
        key_number(v);
    } else if (v.isList()) {
      const auto list = v.toListRef();
      key.push_back(list.size() << 8 | 3);
      for (const c10::IValue& e : list) {
        if (is_number(e) && plan.wants_operand[i])
          collect_number(e, {});
        else if (is_number(e))
          key_number(e);
        else
          TORCH_CHECK(false, plan.name, ": argument ", i, " is a list of ", e.tagKind(),
                      ", which tpu does not take");
      }
    } else if (v.isString()) {
      const std::string& s = v.toStringRef();
      key.push_back(s.size() << 8 | 4);
      for (size_t k = 0; k < s.size(); k += 8) {
        uint64_t w = 0;
        std::memcpy(&w, s.data() + k, std::min<size_t>(8, s.size() - k));
        key.push_back(w);
      }
    } else if (v.isDevice()) {
      key.push_back(5);
    } else if (v.isSymInt()) {
      TORCH_CHECK_NOT_IMPLEMENTED(false, plan.name,
                                  ": symbolic sizes do not reach tpu's eager kernels");
    } else {
      TORCH_CHECK(false, plan.name, ": argument ", i, " is a ", v.tagKind(),
                  ", which tpu does not take");
    }
  }

  void key_number(const c10::IValue& v) {
    const ScalarValue s = number_of(v);
    uint64_t w[2];
    std::memcpy(w, s.bits, 16);
    key.push_back(static_cast<uint64_t>(s.dtype) << 8 | 6);
    key.push_back(w[0]);
    if (s.dtype == DType::c128) key.push_back(w[1]);
  }

  void collect_none() {
    key.push_back(1);
    reads.emplace_back();
  }

  int add_scalar(const ScalarValue& s) {
    owned.push_back(device->scalar(s));
    operands.push_back(owned.back().get());
    return static_cast<int>(operands.size()) - 1;
  }

  // A weight that is its default, 1, is a constant: that makes one more program at most, and nearly
  // every call takes it, with one operand less and nothing to multiply.
  void collect_number(const c10::IValue& v, const std::optional<ScalarValue>& usual) {
    const ScalarValue s = number_of(v);
    Read r;
    r.kind = Read::Kind::number;
    r.wrapped = true;
    const bool is_usual = usual && *usual == s;
    if (!is_usual) r.operand = add_scalar(s);
    reads.push_back(r);
    key.push_back(static_cast<uint64_t>(s.dtype) << 8 | (is_usual ? 11 : 7));
  }

  void collect_tensor(c10::TensorImpl* impl, bool written) {
    if (impl == c10::UndefinedTensorImpl::singleton()) {
      if (written) written_reads.push_back(static_cast<int>(reads.size()));
      collect_none();
      return;
    }
    Read r;
    r.impl = impl;
    if (!impl->device().is_privateuseone()) {
      TORCH_CHECK(
          impl->device().is_cpu() && impl->dim() == 0 && !written,
          "Expected all tensors to be on the same device, but found at least two devices, tpu:",
          device->index(), " and ", impl->device(), "!");
      const ScalarValue s = host_scalar(*impl);
      r.kind = Read::Kind::host;
      r.wrapped = impl->is_wrapped_number();
      r.operand = add_scalar(s);
      reads.push_back(r);
      key.push_back(static_cast<uint64_t>(s.dtype) << 16 | static_cast<uint64_t>(r.wrapped) << 8 |
                    8);
      return;
    }
    TORCH_CHECK(
        impl->device().index() == device->index(),
        "Expected all tensors to be on the same device, but found at least two devices, tpu:",
        device->index(), " and ", impl->device(), "!");
    r.kind = Read::Kind::tensor;
    r.cell = cell_of(impl->unsafe_storage());
    const DType dtype = to_dtype(c10::typeMetaToScalarType(impl->dtype()));
    if (!r.cell->value) fill_unwritten(*impl, r.cell);
    DeviceArray* array = r.cell->value.get();
    r.whole = is_whole(*impl, dtype, array->type());
    r.operand = static_cast<int>(operands.size());
    operands.push_back(array);
    const uint64_t bits = (impl->key_set().has(c10::DispatchKey::Conjugate) ? 1u : 0u) |
                          (impl->key_set().has(c10::DispatchKey::Negative) ? 2u : 0u) |
                          (r.whole ? 4u : 0u) | (impl->is_wrapped_number() ? 8u : 0u);
    key.push_back(static_cast<uint64_t>(dtype) << 16 | bits << 8 | 9);
    key.push_back(reinterpret_cast<uint64_t>(array->type_id()));
    if (!r.whole) collect_view(r, *impl, *array);
    if (written) {
      // Two written tensors of one storage are written one after the other: which share is part of
      // the program.
      uint64_t first = reads.size();
      for (size_t k = 0; k < reads.size(); ++k) {
        if (reads[k].cell == r.cell) {
          first = k;
          break;
        }
      }
      key.push_back(first << 8 | 10);
      written_reads.push_back(static_cast<int>(reads.size()));
    }
    if (plan.overlap != OpPlan::Overlap::allowed) refuse_overlap(r, written);
    reads.push_back(r);
  }

  static at::Tensor tensor(const Read& r) {
    return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::unsafe_reclaim_from_nonowning(r.impl));
  }

  // As TensorIterator: an element-wise write may not read, shifted, what it overwrites; the likes
  // of gather may not read it at all. Our values would be well defined, but programs must mean the
  // same on every device.
  void refuse_overlap(const Read& r, bool written) const {
    const auto refuse = [&](const Read& out, const Read& in) {
      if (plan.overlap == OpPlan::Overlap::same_only)
        at::assert_no_partial_overlap(tensor(out), tensor(in));
      else
        at::assert_no_overlap(tensor(out), tensor(in));
    };
    for (size_t k = 0; k < reads.size(); ++k) {
      if (reads[k].cell != r.cell) continue;
      if (reads[k].impl == r.impl && plan.overlap == OpPlan::Overlap::same_only) continue;
      for (int w : written_reads) {
        if (w == static_cast<int>(k))
          refuse(reads[k], r);
        else if (written && w == static_cast<int>(reads.size()))
          refuse(r, reads[k]);
      }
    }
  }

  void collect_view(Read& r, const c10::TensorImpl& impl, const DeviceArray& array) {
    r.view = static_cast<int>(views.size());
    views.push_back(view_of(impl));
    const view::View& v = views.back();
    plans.push_back(view::plan(array.type(), v));
    key.push_back(v.sizes.size());
    for (int64_t d : v.sizes) key.push_back(static_cast<uint64_t>(d));
    for (int64_t d : v.strides) key.push_back(static_cast<uint64_t>(d));
    key.push_back(static_cast<uint64_t>(r.cell->nbytes));
    plans.back().append_key(key_words_);
    key.append(key_words_.begin(), key_words_.end());
    key_words_.clear();
    for (int64_t start : plans.back().operands()) add_scalar(ScalarValue::of(start));
  }
  std::vector<uint64_t> key_words_;

  // Memory that was asked for and never written: zeros, in the shape it is first looked at.
  void fill_unwritten(const c10::TensorImpl& impl, Cell* cell) {
    const view::View v = view_of(impl);
    Type type = view::natural_base(v);
    if (type.nbytes() != cell->nbytes)
      type = Type{v.dtype, {cell->nbytes / hlo::itemsize(v.dtype)}};
    if (type.nbytes() != cell->nbytes) type = Type{DType::u8, {cell->nbytes}};
    cell->value =
        Array(new DeviceArray(*device, runtime::intern(type), ScalarValue::zero(type.dtype)));
  }

  // ---- pass 2, on a miss: the program
  // -----------------------------------------------------------------------------
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
    if (!p) p = t.builder.parameter(operand, operands[static_cast<size_t>(operand)]->type());
    return p;
  }

  Values starts(Trace& t, const Read& r) {
    Values s;
    for (int64_t k = 0; k < plans[static_cast<size_t>(r.view)].num_operands(); ++k)
      s.push_back(parameter(t, r.operand + 1 + static_cast<int>(k)));
    return s;
  }

  Arg read_arg(Trace& t, const Read& r) {
    switch (r.kind) {
      case Read::Kind::none:
        return std::monostate{};
      case Read::Kind::number:
        return lower::Wrapped{parameter(t, r.operand)};
      case Read::Kind::host:
        if (r.wrapped) return lower::Wrapped{parameter(t, r.operand)};
        return parameter(t, r.operand);
      case Read::Kind::tensor:
        break;
    }
    Value v = parameter(t, r.operand);
    if (!r.whole)
      v = view::read(v, views[static_cast<size_t>(r.view)], plans[static_cast<size_t>(r.view)],
                     starts(t, r));
    if (r.impl->key_set().has(c10::DispatchKey::Conjugate)) v = conj(v);
    if (r.impl->key_set().has(c10::DispatchKey::Negative)) v = hlo::negate(v);
    if (r.impl->is_wrapped_number()) return lower::Wrapped{v};
    return v;
  }

  static Value conj(Value v) {
    return hlo::is_complex(v.dtype()) ? hlo::complex(hlo::real(v), hlo::negate(hlo::imag(v))) : v;
  }

  Value read_value(Trace& t, const Read& r) {
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

  Arg argument(Trace& t, const c10::IValue& v, size_t i) {
    if (v.isTensor()) return read_arg(t, reads[t.next_read++]);
    if (v.isTensorList() || v.isOptionalTensorList()) {
      Values list;
      for (size_t k = 0; k < v.toListRef().size(); ++k)
        list.push_back(read_value(t, reads[t.next_read++]));
      return list;
    }
    if (is_number(v)) {
      if (plan.wants_operand[i]) {
        const Read& r = reads[t.next_read++];
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
          list.values.push_back(read_value(t, reads[t.next_read++]));
        return list;
      }
      std::vector<lower::Number> list;
      for (const c10::IValue& e : v.toListRef()) list.push_back(number(e));
      return list;
    }
    if (v.isString()) return v.toStringRef();
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
        t.next_read += args[i].isTensor() ? 1 : args[i].isList() ? args[i].toListRef().size() : 0;
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
        t.rng = t.builder.parameter(static_cast<int>(operands.size()), Type{DType::u64, {2}});
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
      std::lock_guard lock(g_counts_mutex);
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
      const size_t i = results.size() - written_reads.size() + k;
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
  // (huber_loss of two dtypes, multi_margin_loss of one sample, nansum over dim=[]): the lowering
  // is right.
  static bool has_faulty_meta(const std::string& name) {
    return name == "aten::huber_loss" || name == "aten::multi_margin_loss" ||
           name == "aten::nansum";
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
        results.size() < written_reads.size())
      return;
    for (size_t k = 0; k < written_reads.size(); ++k) {
      const c10::TensorImpl* to = reads[written_reads[k]].impl;
      const Value& v = results[results.size() - written_reads.size() + k];
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

  // PyTorch's metadata or refusal. Its Python meta functions refuse in words of their own ("got
  // torch.int64"), where the CPU's kernels have others: then a lowering that refuses the call too,
  // in the kernel's words, is believed.
  std::optional<MetaResult> metadata() {
    try {
      return call_meta(plan, args);
    } catch (const c10::Error&) {
      throw;
    } catch (const std::exception& e) {  // from Python
      if (!plan.entry) throw;
      // Some failures are faults of a meta function itself (an LSTM cell without bias, a mean of
      // nothing): the lowering, if it takes the call, says shapes and dtypes too.
      const bool fault = g_is_meta_fault && g_is_meta_fault(e);
      bool taken = false;
      try {
        Trace t;
        t.parameters.resize(operands.size());
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
      throw;
    }
  }

  std::shared_ptr<const Compiled> build(bool* retry) {
    std::optional<MetaResult> meta;
    if (self.graph_) {
      meta.emplace();
      meta->fresh = self.metas_;
    } else {
      check_call(plan, args);
      if (plan.overlap == OpPlan::Overlap::refused) {  // before an out= tensor is resized
        for (int w : written_reads) {
          if (reads[w].impl) at::assert_no_internal_overlap(reads[w].impl);
        }
      }
      if (!has_refusing_meta()) meta = metadata();
      if (meta) require_known_dtypes(*meta);
      if (has_faulty_meta(plan.functional)) meta.reset();
      if (meta && resize_outputs(*meta)) {
        *retry = true;
        return nullptr;
      }
    }
    for (int w : written_reads) {
      if (reads[w].impl) at::assert_no_internal_overlap(reads[w].impl);
    }
    std::shared_ptr<const lower::Graph> graph = self.graph_;
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
    t.parameters.resize(operands.size());
    Values results = evaluate(t, graph.get());
    if (!self.graph_) require_in_place(results);
    TORCH_CHECK(results.size() >= written_reads.size(), plan.name,
                ": internal error: the lowering gave ", results.size(), " results, ",
                written_reads.size(), " tensors are written");
    // A functional twin of an operator that also updates its inputs gives the results first, then
    // the updated inputs; out= tensors are the last of what is written.
    if (plan.functional.ends_with("_functional") && plan.num_fresh == 0) {
      const auto outs = std::count(plan.only_written.begin(), plan.only_written.end(), true);
      std::rotate(results.begin(), results.begin() + outs, results.end());
    }
    const size_t num_fresh = results.size() - written_reads.size();
    if (!meta && resize_outputs(results)) {
      *retry = true;
      return nullptr;
    }
    auto c = std::make_shared<Compiled>();
    Values outputs;
    add_fresh(*c, results, num_fresh, meta, outputs);
    add_writes(t, *c, results, num_fresh, outputs);
    c->draws = static_cast<uint64_t>(t.draws);
    c->program = runtime::ProgramCache::global().get(plan.name, t.builder.finish(outputs));
    c->donatable.assign(operands.size() + 1, false);
    for (int a : c->program->aliases)
      if (a >= 0) c->donatable[static_cast<size_t>(a)] = true;
    return c;
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
    for (size_t k = 0; k < written_reads.size(); ++k) {
      const Read& r = reads[written_reads[k]];
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
        const Value base = first ? parameter(t, r.operand) : it->second;
        if (first || base.type() == operands[static_cast<size_t>(r.operand)]->type()) {
          view::Plan p =
              r.view >= 0 ? plans[static_cast<size_t>(r.view)] : view::plan(base.type(), v);
          it->second = view::write(base, v, p, r.view >= 0 ? starts(t, r) : Values{}, data);
        } else {
          // An earlier write replaced the base by one of another shape: this view's offsets become
          // constants of the program. They are not in the key, so bring the base back to the shape
          // that the key knows.
          Value back = hlo::reshape(base, operands[static_cast<size_t>(r.operand)]->type().dims);
          it->second = view::write(back, v, plans[static_cast<size_t>(r.view)], starts(t, r), data);
        }
      }
    }
    for (auto& [cell, slot] : order) {
      const Read& r = reads[written_reads[slot]];
      const Value base = t.current[cell];
      const int output = static_cast<int>(outputs.size());
      outputs.push_back(base);
      c.writes.push_back({slot, output});
      if (t.parameters[static_cast<size_t>(r.operand)] &&
          base.type() == operands[static_cast<size_t>(r.operand)]->type())
        t.builder.alias(output, r.operand);
    }
  }

  // ---- pass 3: launch
  // ---------------------------------------------------------------------------------------------
  std::shared_ptr<const Compiled> compiled() {
    auto c = self.signatures_->find(key);
    if (c) {
      runtime::ProgramCache::global().count_hit();
      return c;
    }
    bool retry = false;
    c = build(&retry);
    if (retry) return nullptr;
    self.signatures_->insert(key, c);
    return c;
  }

  void launch(const Compiled& c, Array* results) {
    Array rng;
    if (c.draws > 0) {
      std::optional<at::Generator> g;
      if (plan.generator_arg >= 0 && !args[plan.generator_arg].isNone())
        g = args[plan.generator_arg].toGenerator();
      TpuGenerator* generator =
          generator_or_default(g, static_cast<c10::DeviceIndex>(device->index()));
      uint64_t state[2];
      {
        std::lock_guard lock(generator->mutex_);
        std::tie(state[0], state[1]) = generator->reserve(c.draws);
      }
      rng = device->from_host(state, Type{DType::u64, {2}});
      operands.push_back(rng.get());
    }
    c10::SmallVector<bool, 32> donate(operands.size(), false);
    for (const Compiled::Write& w : c.writes) {
      const Read& r = reads[written_reads[w.slot]];
      const auto o = static_cast<size_t>(r.operand);
      if (!c.donatable[o] || operands[o]->references() != 1) continue;
      size_t uses = 0;  // one array given as two operands cannot be consumed
      for (DeviceArray* a : operands) uses += a == operands[o];
      donate[o] = uses == 1;
    }
    runtime::launch(*c.program, *device, operands.data(), donate.data(), results);
    for (const Compiled::Write& w : c.writes) {
      reads[written_reads[w.slot]].cell->value = results[static_cast<size_t>(w.output)];
    }
  }

  at::Tensor fresh_tensor(const Compiled::Fresh& f, Array* results) {
    if (f.output < 0) return {};
    return make_tensor(*device, f.dtype, f.sizes, f.strides,
                       std::move(results[static_cast<size_t>(f.output)]));
  }
};

Callable::Callable(c10::OperatorHandle op)
    : plan_(std::make_unique<OpPlan>(op)), signatures_(std::make_unique<Signatures>()) {}
Callable::Callable(std::string name, std::shared_ptr<const lower::Graph> graph,
                   std::vector<int> written, std::vector<at::Tensor> metas)
    : plan_(std::make_unique<OpPlan>(std::move(name), static_cast<size_t>(graph->num_inputs()),
                                     std::move(written))),
      graph_(std::move(graph)),
      metas_(std::move(metas)),
      signatures_(std::make_unique<Signatures>()) {}
Callable::Callable(const lower::Entry& entry)
    : plan_(std::make_unique<OpPlan>(entry)), signatures_(std::make_unique<Signatures>()) {}
Callable::~Callable() = default;

size_t Callable::num_programs() const { return signatures_->size(); }

int64_t Callable::alias_bytes() const {
  int64_t bytes = 0;
  signatures_->each([&](const Compiled& c) {
    if (c.program) bytes += c.program->memory().alias_bytes;
  });
  return bytes;
}

void Callable::operator()(torch::jit::Stack* stack) {
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(plan_->num_args);
  Results fresh = run(&*first);
  if (plan_->schema) {
    Results all;
    auto next = fresh.begin();
    for (const int argument : plan_->returns)
      all.push_back(argument >= 0 ? first[argument] : std::move(*next++));
    fresh = std::move(all);
  }
  stack->erase(first, stack->end());
  for (c10::IValue& v : fresh) stack->push_back(std::move(v));
}

Callable::Results Callable::run(const c10::IValue* args) {
  if (plan_->number_check) plan_->number_check(args);
  for (int attempt = 0; attempt < 3; ++attempt) {
    Call call(*this, args);
    try {
      call.collect();
      std::shared_ptr<const Compiled> c = call.compiled();
      if (!c) continue;  // an out= tensor was resized
      if (c->host_fallback) return run_on_host(args);
      c10::SmallVector<Array, 4> arrays(c->program->outputs.size());
      call.launch(*c, arrays.data());
      return results_of(call, *c, arrays.data());
    } catch (const hlo::Error&) {
      if (!plan_->op) rethrow(plan_->name);  // a graph
      rethrow(plan_->name + " of " +
              describe_arguments(plan_->op->schema(), args, plan_->num_args));
    } catch (...) {
      rethrow(plan_->name);
    }
  }
  TORCH_CHECK(false, plan_->name, ": internal error: the out= tensors did not settle");
}

Callable::Results Callable::run_on_host(const c10::IValue* args) const {
  {
    std::lock_guard lock(g_counts_mutex);
    g_fallback_counts[plan_->name]++;
  }
  torch::jit::Stack stack(args, args + plan_->num_args);
  at::native::cpu_fallback(*plan_->op, &stack);
  Results fresh;
  for (size_t i = 0; i < plan_->returns.size(); ++i)
    if (plan_->returns[i] < 0) fresh.push_back(std::move(stack.at(i)));
  return fresh;
}

Callable::Results Callable::results_of(Call& call, const Compiled& c, Array* arrays) const {
  Results out;
  if (!plan_->schema) {
    for (const Compiled::Fresh& f : c.fresh) out.emplace_back(call.fresh_tensor(f, arrays));
    return out;
  }
  size_t num_lists = 0;
  for (size_t i = 0; i < plan_->returns.size(); ++i)
    num_lists += plan_->returns[i] < 0 && plan_->returns_list[i];
  const size_t num_single = static_cast<size_t>(plan_->num_fresh) - num_lists;
  const size_t list_length = num_lists ? (c.fresh.size() - num_single) / num_lists : 0;
  size_t next = 0;
  for (size_t i = 0; i < plan_->returns.size(); ++i) {
    if (plan_->returns[i] >= 0) continue;
    if (plan_->returns_list[i]) {
      c10::List<at::Tensor> list;
      for (size_t k = 0; k < list_length; ++k)
        list.push_back(call.fresh_tensor(c.fresh[next++], arrays));
      out.emplace_back(std::move(list));
    } else {
      const Compiled::Fresh& f = c.fresh.at(next++);
      out.push_back(f.number.isNone() ? c10::IValue(call.fresh_tensor(f, arrays)) : f.number);
    }
  }
  return out;
}

Callable& callable_of(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static auto* table = new std::unordered_map<c10::OperatorName, std::unique_ptr<Callable>>();
  std::lock_guard lock(mutex);
  auto& slot = (*table)[op.operator_name()];
  if (!slot) slot = std::make_unique<Callable>(op);
  return *slot;
}

std::vector<at::Tensor> run_lowering(const std::string& name, std::vector<c10::IValue> args) {
  static std::mutex mutex;
  static auto* table = new std::map<std::string, std::unique_ptr<Callable>>();
  Callable* callable;
  {
    std::lock_guard lock(mutex);
    auto& slot = (*table)[name];
    if (!slot) {
      const lower::Entry* entry = lower::Registry::global().find(name);
      TORCH_CHECK_NOT_IMPLEMENTED(entry, name, " has no lowering for tpu");
      slot = std::make_unique<Callable>(*entry);
    }
    callable = slot.get();
  }
  (*callable)(&args);
  std::vector<at::Tensor> out;
  for (c10::IValue& v : args) out.push_back(std::move(v).toTensor());
  return out;
}

Array resized(const Array& value, int64_t nbytes) {
  hlo::Builder b;
  Value v = b.parameter(0, value->type());
  const int64_t size = hlo::itemsize(v.dtype());
  if (nbytes % size != 0) {  // cannot stay in this dtype
    const view::View bytes{DType::u8, {value->nbytes()}, {1}, 0};
    v = view::read(v, bytes, view::plan(value->type(), bytes), {});
  } else {
    v = hlo::flatten(v);
  }
  const int64_t want = nbytes / hlo::itemsize(v.dtype());
  const int64_t have = v.numel();
  v = want <= have ? hlo::slice_in_dim(v, 0, 0, want)
                   : hlo::pad(v, hlo::constant(b, v.dtype(), 0), {0}, {want - have}, {0});
  auto program = runtime::ProgramCache::global().get("resize_", b.finish({v}));
  Array result;
  DeviceArray* operand = value.get();
  const bool donate = false;
  runtime::launch(*program, value->device(), &operand, &donate, &result);
  return result;
}

}  // namespace torch_tpu::aten
