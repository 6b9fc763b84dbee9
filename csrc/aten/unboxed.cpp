// SPDX-License-Identifier: Apache-2.0
#include "aten/unboxed.h"

#include <ATen/core/jit_type.h>

#include <type_traits>
#include <utility>

namespace torch_tpu::aten {
namespace {

using at::Scalar;
using at::Tensor;

template <class T>
struct Kind;
template <>
struct Kind<const Tensor&> {
  static constexpr c10::TypeKind value = c10::TypeKind::TensorType;
};
template <>
struct Kind<Tensor&> : Kind<const Tensor&> {};
template <>
struct Kind<Tensor> : Kind<const Tensor&> {};
template <>
struct Kind<const Scalar&> {
  static constexpr c10::TypeKind value = c10::TypeKind::NumberType;
};
template <>
struct Kind<int64_t> {
  static constexpr c10::TypeKind value = c10::TypeKind::IntType;
};
template <>
struct Kind<bool> {
  static constexpr c10::TypeKind value = c10::TypeKind::BoolType;
};

// Whether C++ passes the argument or result as a T. The type is the declared one: `real_type` tells
// a number from a SymInt and from a ScalarType.
template <class T>
bool is(const c10::Argument& a) {
  if (a.real_type()->kind() != Kind<T>::value) return false;
  if constexpr (std::is_same_v<T, Tensor&>)
    return a.alias_info() && a.alias_info()->isWrite();
  else
    return !a.alias_info();
}

template <class Signature>
class Kernel;

template <class R, class... A>
class Kernel<R(A...)> final : public c10::OperatorKernel {
 public:
  explicit Kernel(Callable& callable) : callable_(callable) {}

  R operator()(A... args) {
    const Borrowed borrowed(args...);
    Callable::Results results = callable_.run(borrowed.data());
    if constexpr (std::is_same_v<R, Tensor>) {
      return std::move(results[0]).toTensor();
    } else {
      Tensor* result = nullptr;
      (note_written(result, args), ...);
      return *result;
    }
  }

  static bool fits(const c10::FunctionSchema& schema) {
    const auto& args = schema.arguments();
    const auto& returns = schema.returns();
    return args.size() == sizeof...(A) && returns.size() == 1 && is<R>(returns[0]) &&
           fits(args, std::index_sequence_for<A...>());
  }

 private:
  template <size_t... I>
  static bool fits(const std::vector<c10::Argument>& args, std::index_sequence<I...>) {
    return (is<A>(args[I]) && ...);
  }

  static void note_written(Tensor*& result, Tensor& arg) { result = &arg; }
  template <class T>
  static void note_written(Tensor*&, const T&) {}

  Callable& callable_;
};

template <class... Signatures>
std::optional<c10::KernelFunction> first_that_fits(const c10::OperatorHandle& op) {
  std::optional<c10::KernelFunction> kernel;
  const auto look = [&]<class Signature>(std::type_identity<Signature>) {
    if (!Kernel<Signature>::fits(op.schema())) return false;
    kernel = c10::KernelFunction::makeFromUnboxedFunctor<false, Kernel<Signature>>(
        std::make_unique<Kernel<Signature>>(callable_of(op)));
    return true;
  };
  (look(std::type_identity<Signatures>()) || ...);
  return kernel;
}

}  // namespace

// Element-wise, products and softmax. The others' stack costs less than a tenth of what they do.
std::optional<c10::KernelFunction> unboxed_kernel(const c10::OperatorHandle& op) {
  return first_that_fits<
      Tensor(const Tensor&), Tensor(const Tensor&, const Tensor&),
      Tensor(const Tensor&, const Tensor&, const Tensor&), Tensor(const Tensor&, const Scalar&),
      Tensor(const Tensor&, const Scalar&, const Scalar&),
      Tensor(const Tensor&, const Tensor&, const Scalar&),
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&),
      Tensor(const Tensor&, int64_t, bool), Tensor&(Tensor&), Tensor&(Tensor&, const Tensor&),
      Tensor&(Tensor&, const Scalar&), Tensor&(Tensor&, const Tensor&, const Scalar&)>(op);
}

}  // namespace torch_tpu::aten
