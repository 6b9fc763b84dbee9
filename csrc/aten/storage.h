// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include "runtime/device.h"

// Stock StorageImpl whose DataPtr context is a runtime::Cell. The address is unique and non-null,
// taken from a reserved PROT_NONE range: pointer arithmetic and identity work, a dereference faults
// instead of reading rubbish.
namespace torch_tpu::aten {

using runtime::Array;
using runtime::Cell;
using runtime::Device;

// A DataPtr that owns a new Cell of `nbytes` on `device` holding `value` (null: never written,
// reads as zeros).
c10::DataPtr make_data_ptr(Device& device, int64_t nbytes, Array value = {});

// The cell behind a tpu tensor or storage. Throws c10::Error for a tensor without one.
Cell* cell_of(const at::TensorBase& t);
Cell* cell_of(const c10::Storage& s);

// Gives the storage a new size, keeping the bytes that fit (new ones are zero).
void resize_storage(const c10::Storage& s, size_t nbytes);

// The device index of an address handed out by make_data_ptr, or -1.
c10::DeviceIndex device_of_address(const void* address);

// A new tensor of this metadata whose storage holds `value` (of the view's natural base type).
at::Tensor make_tensor(Device& device, at::ScalarType dtype, at::IntArrayRef sizes,
                       at::IntArrayRef strides, Array value);

// hlo::DType <-> at::ScalarType; TypeError naming the dtype where XLA has none (quantized, bits).
hlo::DType to_dtype(at::ScalarType t);
at::ScalarType to_scalar_type(hlo::DType t);

// The device index "tpu" means now (set_device, device context managers); thread-local.
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);  // checks that it exists

}  // namespace torch_tpu::aten
