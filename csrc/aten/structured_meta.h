// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>

#include <string>
#include <unordered_map>

namespace torch_tpu::aten {

// PyTorch's C++ meta functions of structured operators by overload name, functional, in-place and
// out= forms. The rows are generated at build time by cmake/structured_meta.py.
class StructuredMeta {
 public:
  static const StructuredMeta& global();
  // Null if the operator is not structured.
  const c10::KernelFunction* find(const std::string& name) const {
    auto it = table_.find(name);
    return it == table_.end() ? nullptr : &it->second;
  }

  template <class F>
  void add(const char* name, F* function) {
    table_.emplace(name, c10::KernelFunction::makeFromUnboxedRuntimeFunction(function));
  }

 private:
  std::unordered_map<std::string, c10::KernelFunction> table_;
};

}  // namespace torch_tpu::aten
