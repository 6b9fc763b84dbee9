// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include "hlo/type.h"

// The one place where exceptions of the layers below become PyTorch's, and so Python's.
namespace torch_tpu::aten {

// Call inside a catch block: pjrt out of memory -> torch.OutOfMemoryError, a failed check -> its
// type, UserError -> its kind, anything else RuntimeError naming `what`. c10 errors pass unchanged.
[[noreturn]] void rethrow(const std::string& what);

// Runs f and translates what it throws.
template <class F>
decltype(auto) translated(const char* what, F&& f) {
  try {
    return f();
  } catch (...) {
    rethrow(what);
  }
}

// The same where no operator is at work.
template <class F>
decltype(auto) translate_errors(F&& f) {
  return translated("tpu", std::forward<F>(f));
}

// NotImplementedError for an operator with neither lowering nor decomposition: operator, dtypes,
// shapes, what to do.
[[noreturn]] void not_implemented(const c10::FunctionSchema& schema, const c10::IValue* args,
                                  size_t num_args, const std::string& why);

// What PyTorch's kernels say of a call whose dtypes they do not take and its meta function does:
// "expected scalar type Float but found Double", "\"cross\" not implemented for 'Bool'". For a call
// whose lowering met `e`; returns if the call's own tensors do not show why.
void refuse_dtypes(const hlo::DTypeError& e, const c10::FunctionSchema& schema,
                   const c10::IValue* args, size_t num_args);

// "float32[3, 4], float64[5], p=2.5": a call's arguments for messages.
std::string describe_arguments(const c10::FunctionSchema& schema, const c10::IValue* args,
                               size_t num_args);

}  // namespace torch_tpu::aten
