// SPDX-License-Identifier: Apache-2.0
// Operators that only change metadata, and the storage operators resize_ and set_. All other views
// are PyTorch's composites over as_strided and view.
#include <ATen/InferSize.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <torch/library.h>

#include <algorithm>

#include "aten/errors.h"
#include "aten/storage.h"

namespace torch_tpu::aten {
namespace {

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

// Grows the storage if the tensor needs more; never shrinks it, as on CPU.
const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size,
                          std::optional<at::MemoryFormat> format) {
  return translated("aten::resize_", [&]() -> const at::Tensor& {
    c10::TensorImpl* impl = self.unsafeGetTensorImpl();
    if (self.sizes() != size) {
      at::detail::check_size_nonnegative(size);
      impl->set_sizes_contiguous(size);
      const auto need = static_cast<size_t>(at::detail::computeStorageNbytesContiguous(
          size, self.element_size(), static_cast<size_t>(self.storage_offset())));
      if (impl->numel() > 0 && self.storage().nbytes() < need) {
        TORCH_CHECK(self.storage().unsafeGetStorageImpl()->resizable(),
                    "Trying to resize storage that is not resizable");
        resize_storage(self.storage(), need);
      }
    }
    if (format) {
      TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
      impl->empty_tensor_restride(*format);
    }
    return self;
  });
}

at::Tensor& set_storage_offset(at::Tensor& self, c10::Storage source, int64_t offset,
                               at::IntArrayRef size, at::IntArrayRef stride) {
  // at::cpu::set_ checks as core does, but grows a storage as host memory.
  const bool sound = offset >= 0 &&
                     std::all_of(size.begin(), size.end(), [](int64_t n) { return n >= 0; }) &&
                     (stride.empty() || stride.size() == size.size());
  const bool resizes = self.sizes() != size || (!stride.empty() && self.strides() != stride);
  if (sound && resizes && source.device() == self.device()) {
    const auto at = static_cast<size_t>(offset);
    const size_t need = stride.empty()
                            ? at::detail::computeStorageNbytesContiguous(size, self.itemsize(), at)
                            : at::detail::computeStorageNbytes(size, stride, self.itemsize(), at);
    if (c10::multiply_integers(size) > 0 && source.nbytes() < need) {
      TORCH_CHECK(source.resizable(), "Trying to resize storage that is not resizable");
      resize_storage(source, need);
    }
  }
  return at::cpu::set_(self, std::move(source), offset, size, stride);
}

at::Tensor& set_storage(at::Tensor& self, c10::Storage source) {
  const auto size = static_cast<int64_t>(source.nbytes() / self.element_size());
  return at::cpu::set_(self, std::move(source), 0, {size}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return at::native::set_tensor_(self, source);
}

at::Tensor& set_empty(at::Tensor& self) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0,
                       make_data_ptr(Device::at(self.device().index()), 0),
                       c10::GetAllocator(c10::DeviceType::PrivateUse1), true);
  return at::cpu::set_(self, std::move(storage), 0, {0}, {});
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("as_strided", &as_strided);
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("resize_", &resize_);
  m.impl("set_.source_Storage", &set_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage_offset);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("set_", &set_empty);
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
}

}  // namespace torch_tpu::aten
