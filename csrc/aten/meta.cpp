// SPDX-License-Identifier: Apache-2.0
#include "aten/meta.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <unordered_map>

#include "aten/structured_meta.h"

namespace torch_tpu::aten {
namespace {

// Meta twins of a call's tensors. One tensor given twice has one twin, so that `out is self` stays
// true.
class Twins {
 public:
  c10::IValue of(const c10::IValue& v) {
    if (v.isTensor()) return of(v.toTensor());
    if (v.isTensorList()) {
      c10::List<at::Tensor> out;
      for (const c10::IValue& e : v.toListRef()) out.push_back(of(e.toTensor()));
      return out;
    }
    if (v.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> out;
      for (const c10::IValue& e : v.toListRef())
        out.push_back(e.isNone() ? std::optional<at::Tensor>()
                                 : std::optional<at::Tensor>(of(e.toTensor())));
      return out;
    }
    if (v.isGenerator()) return c10::IValue();  // its device would be refused
    if (v.isDevice()) return c10::Device(c10::DeviceType::Meta);
    return v;
  }

  at::Tensor of(const at::Tensor& t) {
    if (!t.defined() || !t.device().is_privateuseone()) return t;  // CPU scalars stay what they are
    auto& twin = twins_[t.unsafeGetTensorImpl()];
    if (!twin.defined()) {
      twin = at::Tensor(at::detail::empty_strided_meta(t.sizes(), t.strides(), t.scalar_type()));
      if (t.is_conj()) twin._set_conj(true);
      if (t.is_neg()) twin._set_neg(true);
    }
    return twin;
  }

 private:
  std::unordered_map<c10::TensorImpl*, at::Tensor> twins_;
};

void flatten(const c10::IValue& v, std::vector<at::Tensor>& out) {
  if (v.isTensor()) {
    out.push_back(v.toTensor());
  } else if (v.isList()) {
    for (const c10::IValue& e : v.toListRef())
      out.push_back(e.isTensor() ? e.toTensor() : at::Tensor());
  } else {
    out.emplace_back();
  }
}

bool has_meta(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::Meta) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

}  // namespace

std::optional<MetaResult> call_meta(const OpPlan& plan, const c10::IValue* args) {
  if (!plan.op || !has_meta(*plan.op)) return std::nullopt;
  // Below autograd and autocast: the Meta kernels of composite functions call further operators.
  at::AutoDispatchBelowADInplaceOrView below;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  Twins twins;
  torch::jit::Stack stack;
  for (size_t i = 0; i < plan.num_args; ++i) stack.push_back(twins.of(args[i]));
  const torch::jit::Stack twins_of_args = stack;
  try {
    if (const c10::KernelFunction* f = StructuredMeta::global().find(plan.name)) {
      f->callBoxed(*plan.op, c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
    } else {
      plan.op->callBoxed(stack);
    }
  } catch (const c10::NotImplementedError&) {
    return std::nullopt;
  }
  MetaResult result;
  for (size_t i = 0; i < plan.returns.size() && i < stack.size(); ++i) {
    if (plan.returns[i] >= 0) continue;
    flatten(stack[i], result.fresh);
    const bool tensors = stack[i].isTensor() || stack[i].isList();
    result.numbers.resize(result.fresh.size());
    if (!tensors) result.numbers.back() = stack[i];
  }
  for (int w : plan.written) flatten(twins_of_args[static_cast<size_t>(w)], result.written);
  return result;
}

}  // namespace torch_tpu::aten
