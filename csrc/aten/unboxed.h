// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <optional>

#include "aten/run.h"

// The boxed kernel, called without the dispatcher's stack.
//
// A stack owns its tensors. Python's tensor has one owner, so that a second one makes PyTorch take
// the GIL, once to keep the Python object alive and once to let it go: two times an operand, and
// five such turns are an eighth of a small operator. Arguments that are borrowed cost nothing.
namespace torch_tpu::aten {

// A kernel's arguments; the tensors among them stay the caller's, who keeps them alive.
class Borrowed {
 public:
  template <class... A>
  explicit Borrowed(const A&... args) {
    (add(args), ...);
  }
  ~Borrowed() {
    for (c10::IValue& v : values_) {
      if (v.isTensor()) c10::MaybeOwnedTraits<c10::IValue>::destroyBorrow(v);
    }
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  void add(const at::Tensor& t) {
    values_.emplace_back(c10::MaybeOwnedTraits<at::Tensor>::createBorrow(t));
  }
  template <class T>
  void add(const T& number) {
    values_.emplace_back(number);
  }
  const c10::IValue* data() const { return values_.data(); }

 private:
  c10::SmallVector<c10::IValue, 8> values_;
};

// The kernel of `op` for the dispatcher's unboxed calls, if its signature is one of the usual ones.
std::optional<c10::KernelFunction> unboxed_kernel(const c10::OperatorHandle& op);

}  // namespace torch_tpu::aten
