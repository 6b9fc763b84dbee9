// SPDX-License-Identifier: Apache-2.0
#include "aten/run.h"

#include <ATen/native/CPUFallback.h>

#include <map>
#include <mutex>
#include <unordered_map>

#include "aten/errors.h"
#include "aten/generator.h"
#include "aten/storage.h"
#include "runtime/program.h"
#include "view/view.h"

namespace torch_tpu::aten {
namespace {

using hlo::DType;
using hlo::Type;
using hlo::Value;
using hlo::Values;
using runtime::Array;
using runtime::Device;
using runtime::DeviceArray;

std::mutex g_counts_mutex;
std::map<std::string, int64_t> g_fallback_counts;

// Launches the program and gives the written storages their new contents.
void launch(Call& call, const Compiled& c, Array* results) {
  auto& operands = call.operands;
  Array rng;
  if (c.draws > 0) {
    std::optional<at::Generator> g;
    if (call.plan.generator_arg >= 0 && !call.args[call.plan.generator_arg].isNone())
      g = call.args[call.plan.generator_arg].toGenerator();
    TpuGenerator* generator =
        generator_or_default(g, static_cast<c10::DeviceIndex>(call.device->index()));
    uint64_t state[2];
    {
      std::lock_guard lock(generator->mutex_);
      std::tie(state[0], state[1]) = generator->reserve(c.draws);
    }
    rng = call.device->from_host(state, Type{DType::u64, {2}});
    operands.push_back(rng.get());
  }
  c10::SmallVector<bool, 32> donate(operands.size(), false);
  for (const Compiled::Write& w : c.writes) {
    const Call::Read& r = call.reads[call.written_reads[w.slot]];
    const auto o = static_cast<size_t>(r.operand);
    if (!c.donatable[o] || operands[o]->references() != 1) continue;
    size_t uses = 0;  // one array given as two operands cannot be consumed
    for (DeviceArray* a : operands) uses += a == operands[o];
    donate[o] = uses == 1;
  }
  runtime::launch(*c.program, *call.device, operands.data(), donate.data(), results);
  for (const Compiled::Write& w : c.writes) {
    call.reads[call.written_reads[w.slot]].cell->value = results[static_cast<size_t>(w.output)];
  }
}

at::Tensor fresh_tensor(Device& device, const Compiled::Fresh& f, Array* results) {
  if (f.output < 0) return {};
  return make_tensor(device, f.dtype, f.sizes, f.strides,
                     std::move(results[static_cast<size_t>(f.output)]));
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> fallback_counts() {
  std::lock_guard lock(g_counts_mutex);
  return {g_fallback_counts.begin(), g_fallback_counts.end()};
}

void reset_fallback_counts() {
  std::lock_guard lock(g_counts_mutex);
  g_fallback_counts.clear();
}

Callable::Callable(c10::OperatorHandle op) : recipe_{OpPlan(op)} {}
Callable::Callable(std::string name, std::shared_ptr<const lower::Graph> graph,
                   std::vector<int> written, std::vector<at::Tensor> metas)
    : recipe_{OpPlan(std::move(name), static_cast<size_t>(graph->num_inputs()), std::move(written)),
              graph, std::move(metas)} {}
Callable::Callable(const lower::Entry& entry) : recipe_{OpPlan(entry)} {}

size_t Callable::num_programs() const { return signatures_.size(); }

int64_t Callable::alias_bytes() const {
  int64_t bytes = 0;
  signatures_.each([&](const Compiled& c) {
    if (c.program) bytes += c.program->memory().alias_bytes;
  });
  return bytes;
}

std::shared_ptr<const Compiled> Callable::compiled(const Call& call) {
  auto c = signatures_.find(call.key);
  if (c) {
    runtime::ProgramCache::global().count_hit();
    return c;
  }
  c = build(recipe_, call);
  if (c) signatures_.insert(call.key, c);
  return c;
}

void Callable::operator()(torch::jit::Stack* stack) {
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(plan().num_args);
  Results fresh = run(&*first);
  if (plan().schema) {
    Results all;
    auto next = fresh.begin();
    for (const int argument : plan().returns)
      all.push_back(argument >= 0 ? first[argument] : std::move(*next++));
    fresh = std::move(all);
  }
  stack->erase(first, stack->end());
  for (c10::IValue& v : fresh) stack->push_back(std::move(v));
}

Callable::Results Callable::run(const c10::IValue* args) {
  if (plan().number_check) plan().number_check(args);
  for (int attempt = 0; attempt < 3; ++attempt) {
    Call call(plan(), args);
    try {
      call.collect();
      std::shared_ptr<const Compiled> c = compiled(call);
      if (!c) continue;  // an out= tensor was resized
      if (c->host_fallback) return run_on_host(args);
      c10::SmallVector<Array, 4> arrays(c->program->outputs.size());
      launch(call, *c, arrays.data());
      return results_of(call, *c, arrays.data());
    } catch (const hlo::Error& e) {
      if (!plan().op) rethrow(plan().name);  // a graph
      if (const auto* dtypes = dynamic_cast<const hlo::DTypeError*>(&e))
        refuse_dtypes(*dtypes, plan().op->schema(), args, plan().num_args);
      rethrow(plan().name + " of " +
              describe_arguments(plan().op->schema(), args, plan().num_args));
    } catch (...) {
      rethrow(plan().name);
    }
  }
  TORCH_CHECK(false, plan().name, ": internal error: the out= tensors did not settle");
}

Callable::Results Callable::run_on_host(const c10::IValue* args) const {
  {
    std::lock_guard lock(g_counts_mutex);
    g_fallback_counts[plan().name]++;
  }
  torch::jit::Stack stack(args, args + plan().num_args);
  at::native::cpu_fallback(*plan().op, &stack);
  Results fresh;
  for (size_t i = 0; i < plan().returns.size(); ++i)
    if (plan().returns[i] < 0) fresh.push_back(std::move(stack.at(i)));
  return fresh;
}

Callable::Results Callable::results_of(const Call& call, const Compiled& c, Array* arrays) const {
  Results out;
  if (!plan().schema) {
    for (const Compiled::Fresh& f : c.fresh)
      out.emplace_back(fresh_tensor(*call.device, f, arrays));
    return out;
  }
  size_t num_lists = 0;
  for (size_t i = 0; i < plan().returns.size(); ++i)
    num_lists += plan().returns[i] < 0 && plan().returns_list[i];
  const size_t num_single = static_cast<size_t>(plan().num_fresh) - num_lists;
  const size_t list_length = num_lists ? (c.fresh.size() - num_single) / num_lists : 0;
  size_t next = 0;
  for (size_t i = 0; i < plan().returns.size(); ++i) {
    if (plan().returns[i] >= 0) continue;
    if (plan().returns_list[i]) {
      c10::List<at::Tensor> list;
      for (size_t k = 0; k < list_length; ++k)
        list.push_back(fresh_tensor(*call.device, c.fresh[next++], arrays));
      out.emplace_back(std::move(list));
    } else {
      const Compiled::Fresh& f = c.fresh.at(next++);
      out.push_back(f.number.isNone() ? c10::IValue(fresh_tensor(*call.device, f, arrays))
                                      : f.number);
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
