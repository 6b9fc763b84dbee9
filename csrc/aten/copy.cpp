// SPDX-License-Identifier: Apache-2.0
// Copies between host and device and on the device: where copy_, to, cpu, clone and item end.
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstring>

#include "aten/errors.h"
#include "aten/run.h"
#include "aten/storage.h"
#include "aten/unboxed.h"
#include "view/view.h"

namespace torch_tpu::aten {
namespace {

using hlo::Type;

bool has_lazy_bits(const at::Tensor& t) { return t.is_conj() || t.is_neg(); }

Callable& copy_callable() {
  static Callable& c =
      callable_of(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));
  return c;
}

// dst's contents become src's, converted and broadcast, by a program on the device.
void copy_on_device(const at::Tensor& src, const at::Tensor& dst) {
  copy_callable().run(Borrowed(dst, src, false).data());
}

// Whether an array in src's own dense shape is, as it lies, what dst's storage should hold.
bool takes_whole(const at::Tensor& dst, at::ScalarType dtype, at::IntArrayRef sizes) {
  return dst.scalar_type() == dtype && dst.sizes() == sizes && dst.is_contiguous() &&
         dst.storage_offset() == 0 && !has_lazy_bits(dst) &&
         static_cast<int64_t>(dst.storage().nbytes()) ==
             dst.numel() * static_cast<int64_t>(dst.element_size());
}

Array upload(const at::Tensor& host, Device& device) {
  const Type type{to_dtype(host.scalar_type()), host.sizes().vec()};
  return device.from_host(host.const_data_ptr(), type);
}

void host_to_device(const at::Tensor& src, const at::Tensor& dst) {
  // from_host has copied when it returns, so `src` may change or go at once, pinned or not,
  // non_blocking or not.
  const at::Tensor host = src.resolve_conj().resolve_neg().contiguous();
  Cell* cell = cell_of(dst);
  Array array = upload(host, *cell->device);
  if (takes_whole(dst, host.scalar_type(), host.sizes())) {
    cell->value = std::move(array);
    return;
  }
  copy_on_device(make_tensor(*cell->device, host.scalar_type(), host.sizes(), {}, std::move(array)),
                 dst);
}

// The array that holds exactly src's elements in row-major order.
Array dense_array(const at::Tensor& src) {
  Cell* cell = cell_of(src);
  if (cell->value && !has_lazy_bits(src) && src.is_contiguous() && src.storage_offset() == 0 &&
      cell->value->type().dtype == to_dtype(src.scalar_type()) &&
      cell->value->nbytes() == src.numel() * static_cast<int64_t>(src.element_size())) {
    return cell->value;
  }
  at::Tensor dense =
      at::empty(src.sizes(), src.options().memory_format(at::MemoryFormat::Contiguous));
  copy_on_device(src, dense);
  return cell_of(dense)->value;
}

void device_to_host(const at::Tensor& src, const at::Tensor& dst) {
  Device::client();  // throws after a fork, where waiting for the array could take for ever
  Array array = dense_array(src);
  const bool direct = dst.is_contiguous() && dst.scalar_type() == src.scalar_type() &&
                      dst.sizes() == src.sizes() && !has_lazy_bits(dst);
  const at::Tensor host =
      direct ? dst
             : at::empty(src.sizes(), dst.options()
                                          .dtype(src.scalar_type())
                                          .memory_format(at::MemoryFormat::Contiguous)
                                          .pinned_memory(false));
  char* bytes = static_cast<char*>(host.mutable_data_ptr());
  if (const runtime::ScalarValue* s = array->splat()) {
    const size_t size = host.element_size();
    for (int64_t i = 0; i < host.numel(); ++i)
      std::memcpy(bytes + static_cast<size_t>(i) * size, s->bits, size);
  } else {
    array->pjrt_buffer().to_host(bytes, array->nbytes()).wait();
  }
  array->device().raise_failed_checks();
  if (!direct) dst.copy_(host);
}

void between_devices(const at::Tensor& src, const at::Tensor& dst) {
  Array array = dense_array(src);
  Device& target = *cell_of(dst)->device;
  Array moved(new runtime::DeviceArray(target, array->type_id(),
                                       array->pjrt_buffer().copy_to_device(target.pjrt_device())));
  const at::Tensor there = make_tensor(target, src.scalar_type(), src.sizes(), {}, moved);
  if (takes_whole(dst, src.scalar_type(), src.sizes()) && moved->type().dims == src.sizes().vec()) {
    cell_of(dst)->value = std::move(moved);
  } else {
    copy_on_device(there, dst);
  }
}

void on_device(const at::Tensor& src, const at::Tensor& dst) {
  Cell* from = cell_of(src);
  // Arrays are immutable, so a whole copy shares one.
  if (from->value && takes_whole(dst, src.scalar_type(), src.sizes()) && !has_lazy_bits(src) &&
      src.is_contiguous() && src.storage_offset() == 0 &&
      from->value->type().dtype == to_dtype(src.scalar_type()) &&
      from->value->nbytes() == static_cast<int64_t>(dst.storage().nbytes()) &&
      cell_of(dst) != from) {
    cell_of(dst)->value = from->value;
    return;
  }
  copy_on_device(src, dst);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool /*non_blocking*/) {
  TORCH_CHECK(self.defined() && dst.defined(), "copy_: an undefined tensor");
  if (dst.numel() == 0) {
    TORCH_CHECK(self.numel() <= 1, "The size of tensor a (", dst.sizes(),
                ") must match the size of tensor b (", self.sizes(), ")");
    return dst;
  }
  translated("aten::copy_", [&] {
    const bool from_tpu = self.device().is_privateuseone(),
               to_tpu = dst.device().is_privateuseone();
    if (!from_tpu && !self.device().is_cpu())
      TORCH_CHECK_NOT_IMPLEMENTED(false, "copies from ", self.device(),
                                  " to tpu go through the CPU: call .cpu() first");
    if (!from_tpu)
      host_to_device(self, dst);
    else if (!to_tpu) {
      TORCH_CHECK_NOT_IMPLEMENTED(dst.device().is_cpu(), "copies from tpu to ", dst.device(),
                                  " go through the CPU: call .cpu() first");
      device_to_host(self.sizes() == dst.sizes() ? self : self.expand_as(dst), dst);
    } else if (self.device() != dst.device())
      between_devices(self, dst);
    else
      on_device(self, dst);
  });
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (dst.sizes() != self.sizes()) dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  at::Tensor host = at::empty({}, self.options().device(at::kCPU));
  translated("aten::_local_scalar_dense",
             [&] { device_to_host(self.dim() == 0 ? self : self.reshape({}), host); });
  return host.item();
}

bool equal(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.device() == b.device(),
              "Cannot compare two tensors on different devices. Got: ", a.device(), " and ",
              b.device());
  if (a.sizes() != b.sizes()) return false;
  if (a.numel() == 0) return true;
  return at::eq(a, b).all().item<bool>();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("equal", &equal);
}

// The kernels above resolve lazy conjugation and negation themselves; core's fallback would call
// them again without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace torch_tpu::aten
