// SPDX-License-Identifier: Apache-2.0
// Puts the kernel in place for every operator that has a lowering, and for all others as
// PrivateUse1's boxed fallback (decomposition, host fallback or a clear error).
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <set>

#include "aten/op_plan.h"
#include "aten/registration.h"
#include "aten/run.h"
#include "aten/unboxed.h"

namespace torch_tpu::aten {
namespace {

class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(const c10::OperatorHandle& op) : callable_(callable_of(op)) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    callable_(stack);
  }

 private:
  Callable& callable_;
};

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) { callable_of(op)(stack); }

// PyTorch keeps tensors of other layouts under keys of their own, where nothing of tpu is found.
template <const char* kWhat, const char* kInstead>
void no_layout(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(), ": ", kWhat,
                              " tensors are not implemented for tpu. ", kInstead);
}
constexpr char kSparse[] = "sparse", kQuantized[] = "quantized", kNested[] = "strided nested",
               kDense[] = "Use dense ones (`to_dense()`), or keep them on the CPU.",
               kPlain[] = "Use `dequantize()` first, or keep them on the CPU.",
               kJagged[] = "Make them with `layout=torch.jagged`, or keep them on the CPU.";

bool is_view(const c10::FunctionSchema& schema) {
  for (const c10::Argument& a : schema.arguments()) {
    if (a.alias_info() && !a.alias_info()->isWrite()) return true;
  }
  return false;
}

bool takes_tensor(const c10::FunctionSchema& schema) {
  for (const c10::Argument& a : schema.arguments()) {
    if (a.type()->str().find("Tensor") != std::string::npos) return true;
  }
  return false;
}

// Operators whose composite in PyTorch is already right on stock tensors and cheaper than a launch
// (copies that share an array, factories that become splats), or that have kernels of their own
// (copy.cpp, factories.cpp, dynamic.cpp).
const std::set<std::string>& left_alone() {
  static const std::set<std::string> names{
      "aten::clone",
      "aten::_to_copy",
      "aten::copy",
      "aten::copy_",
      "aten::lift",
      "aten::lift_fresh",
      "aten::lift_fresh_copy",
      "aten::empty_like",
      "aten::zeros_like",
      "aten::ones_like",
      "aten::full_like",
      "aten::new_empty",
      "aten::new_zeros",
      "aten::new_ones",
      "aten::new_full",
      "aten::new_empty_strided",
      "aten::fill_",
      "aten::zero_",
      "aten::zero",
      "aten::fill",
      "aten::_efficientzerotensor",
      "aten::as_strided_scatter",  // counts in a storage, which the lowering takes x for
      "aten::nonzero",
      "aten::masked_select",
      "aten::index",
      "aten::index_put",
      "aten::index_put_",
      "aten::_index_put_impl_",
      "aten::_unsafe_view",
      "aten::equal",
      "aten::item",
      "aten::_local_scalar_dense",
      "aten::rand_like",
      "aten::randn_like",
      "aten::randint_like",
      "aten::resize_",
      "aten::set_",
      "aten::detach_",
      "aten::_unsafe_index",
      "aten::_unsafe_index_put",
      "aten::resolve_conj",
      "aten::resolve_neg",
      "aten::arange",
      "aten::mv",
      "aten::_grouped_mm",
  };
  return names;
}

bool wants_kernel(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  if (left_alone().count(schema.name()) || is_view(schema)) return false;
  if (schema.is_mutable()) {  // squeeze_ and the like change metadata only
    const auto functional = functional_of(schema);
    if (functional && is_view(c10::Dispatcher::singleton().findSchema(functional->name)->schema()))
      return false;
  }
  // A kernel takes a composite function's place in autograd too: right only where PyTorch has a
  // derivative formula for it (linear, _fused_rms_norm).
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::Autograd))
    return false;
  if (op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) return false;
  if (!takes_tensor(schema) &&
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd))
    return false;
  return true;
}

}  // namespace

void register_kernels() {
  static auto* libraries = new std::vector<torch::Library>();
  static auto* handles = new std::vector<c10::RegistrationHandleRAII>();
  const lower::Registry& registry = lower::Registry::global();
  std::set<std::string> bases;
  for (const auto& [name, entry] : registry.entries()) {
    if (name.rfind("aten::", 0) == 0) bases.insert(name.substr(0, name.find('.')));
  }
  libraries->emplace_back(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                          __LINE__);
  torch::Library& aten = libraries->back();
  std::set<std::string> with_in_place = bases;
  for (const std::string& b : bases) {
    with_in_place.insert(b + "_");
    const size_t functional = b.rfind("_functional");  // normal_functional serves normal_
    if (functional != std::string::npos && functional + 11 == b.size()) {
      with_in_place.insert(b.substr(0, functional));
      with_in_place.insert(b.substr(0, functional) + "_");
    }
  }
  for (const std::string& base : with_in_place) {
    for (const c10::OperatorName& n : overloads(base)) {
      auto op = c10::Dispatcher::singleton().findSchema(n);
      if (!op || !wants_kernel(*op)) continue;
      const OpPlan plan(*op);
      if (!plan.entry) continue;
      if (auto unboxed = unboxed_kernel(*op)) {
        handles->push_back(c10::Dispatcher::singleton().registerImpl(
            n, c10::DispatchKey::PrivateUse1, std::move(*unboxed), std::nullopt, nullptr,
            "torch_tpu's unboxed kernel"));
      } else {
        aten.impl(full_name(n).c_str() + 6,
                  torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(*op)));
      }
    }
  }
  libraries->emplace_back(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__,
                          __LINE__);
  libraries->back().fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
  const auto refuse = [](c10::DispatchKey key, torch::CppFunction f) {
    libraries->emplace_back(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
    libraries->back().fallback(std::move(f));
  };
  using torch::CppFunction;
  refuse(c10::DispatchKey::SparsePrivateUse1,
         CppFunction::makeFromBoxedFunction<&no_layout<kSparse, kDense>>());
  refuse(c10::DispatchKey::SparseCsrPrivateUse1,
         CppFunction::makeFromBoxedFunction<&no_layout<kSparse, kDense>>());
  refuse(c10::DispatchKey::QuantizedPrivateUse1,
         CppFunction::makeFromBoxedFunction<&no_layout<kQuantized, kPlain>>());
  refuse(c10::DispatchKey::NestedTensorPrivateUse1,
         CppFunction::makeFromBoxedFunction<&no_layout<kNested, kJagged>>());
}

}  // namespace torch_tpu::aten
