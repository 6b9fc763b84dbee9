// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

#include <string>
#include <unordered_map>

// Which check belongs to which operator, one file a family.
namespace torch_tpu::aten {

// The arguments of a call, in the order of its schema.
using CheckArgs = const c10::IValue*;
// By the functional operator's name (its in-place and out= forms are checked too), or by the name
// of the one form that it is for.
using CheckTable = std::unordered_map<std::string, void (*)(CheckArgs)>;

void add_convolution_checks(CheckTable& table);
void add_dtype_checks(CheckTable& table);
void add_factory_checks(CheckTable& table);
void add_indexing_checks(CheckTable& table);
void add_linalg_checks(CheckTable& table);
void add_norm_loss_checks(CheckTable& table);
void add_pooling_checks(CheckTable& table);
void add_random_checks(CheckTable& table);
void add_shape_checks(CheckTable& table);

// Of numbers that are run-time operands, so that a known signature says nothing about them.
void add_random_number_checks(CheckTable& table);
void add_number_checks(CheckTable& table);

// A `Tensor?` that is not given is undefined.
inline at::Tensor optional_tensor(const c10::IValue& v) {
  return v.isTensor() ? v.toTensor() : at::Tensor();
}

// What the slice of `self` that `src` replaces looks like, in the words of the CPU's composite.
inline void require_slice(const at::Tensor& slice, const at::Tensor& src) {
  TORCH_CHECK(slice.sizes() == src.sizes(),
              "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
              ", slice size = ", slice.sizes());
}

// What AT_DISPATCH_* says in the kernel that it calls `kernel`.
inline void refuse_dtype(const char* kernel, at::ScalarType t) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, '"', kernel, "\" not implemented for '", t, "'");
}

}  // namespace torch_tpu::aten
