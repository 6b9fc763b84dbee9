// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <optional>

#include "aten/op_plan.h"
#include "aten/signatures.h"
#include "runtime/array.h"
#include "runtime/device.h"

namespace torch_tpu::aten {

// One invocation: its operands and its signature, which a walk over the arguments collects.
// Borrows the arguments.
struct Call {
  const OpPlan& plan;
  const c10::IValue* args;
  runtime::Device* device = nullptr;

  Key key;
  c10::SmallVector<runtime::DeviceArray*, 32> operands;
  c10::SmallVector<runtime::Array, 8> owned;  // keeps number operands alive until the launch

  // What was read, in traversal order: how building the program finds the operands again.
  struct Read {
    enum class Kind : uint8_t { none, tensor, host, number } kind = Kind::none;
    bool whole = true;
    bool wrapped = false;
    int operand = -1;
    c10::TensorImpl* impl = nullptr;
    runtime::Cell* cell = nullptr;
  };
  c10::SmallVector<Read, 24> reads;
  c10::SmallVector<int, 8>
      written_reads;  // the reads that are written tensors, flattened, in order

  Call(const OpPlan& p, const c10::IValue* a) : plan(p), args(a) {}
  void collect();

 private:
  void find_device();
  void collect(const c10::IValue& v, size_t i, bool written);
  void key_number(const c10::IValue& v);
  void collect_none();
  int add_scalar(const runtime::ScalarValue& s);
  void collect_number(const c10::IValue& v, const std::optional<runtime::ScalarValue>& usual);
  void collect_tensor(c10::TensorImpl* impl, bool written);
  static at::Tensor tensor(const Read& r);
  void refuse_overlap(const Read& r, bool written) const;
  void collect_view(const Read& r, const c10::TensorImpl& impl, const runtime::DeviceArray& array);
  void fill_unwritten(const c10::TensorImpl& impl, runtime::Cell* cell);
};

}  // namespace torch_tpu::aten
