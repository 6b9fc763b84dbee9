// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

// The one place where exceptions of the layers below become those that PyTorch turns into Python's types:
//   pjrt::Error, resource_exhausted, std::bad_alloc   c10::OutOfMemoryError     torch.OutOfMemoryError
//   pjrt::Error, unimplemented                        c10::NotImplementedError  NotImplementedError
//   runtime::CheckFailed                              c10::IndexError           IndexError
//   std::out_of_range, other std::exception           c10::Error                RuntimeError
// c10::Error and Python's own exceptions pass unchanged.
namespace torch_tpu::aten {

// Call inside a catch block: throws the current exception, translated.
[[noreturn]] void throw_translated();

// Runs `body`; what it throws leaves translated.
template <class Body>
decltype(auto) translate_errors(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    throw_translated();
  }
}

}  // namespace torch_tpu::aten
