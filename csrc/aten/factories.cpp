// SPDX-License-Identifier: Apache-2.0
// Allocation and fills. A fill of a whole storage launches nothing: the cell holds a splat until
// somebody reads it.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/RangeUtils.h>
#include <torch/library.h>

#include <cstring>

#include "aten/checks/table.h"
#include "aten/errors.h"
#include "aten/run.h"
#include "aten/storage.h"
#include "view/view.h"

namespace torch_tpu::aten {
namespace {

Device& device_or_current(std::optional<at::Device> device) {
  const c10::DeviceIndex index = device && device->has_index() ? device->index() : current_device();
  return translated("torch.empty", [&]() -> Device& { return Device::at(index); });
}

void check_options(std::optional<at::Layout> layout, std::optional<bool> pin_memory,
                   at::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::layout_or_default(layout) == at::kStrided,
                              "tpu: only strided tensors, not ", *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
  to_dtype(dtype);  // refuses what XLA has no type for
}

bool fills_whole(const at::Tensor& t) {
  return view::covers(
             static_cast<int64_t>(t.storage().nbytes()),
             {to_dtype(t.scalar_type()), t.sizes().vec(), t.strides().vec(), t.storage_offset()}) &&
         !t.is_conj() && !t.is_neg();
}

// The tensor's storage becomes a splat of `value`, rounded and checked as CPU does.
void set_splat(const at::Tensor& t, const at::Scalar& value) {
  const at::Tensor host =
      at::scalar_tensor(value, at::TensorOptions().dtype(t.scalar_type()).device(at::kCPU));
  runtime::ScalarValue s;
  s.dtype = to_dtype(t.scalar_type());
  std::memcpy(s.bits, host.const_data_ptr(), host.element_size());
  const hlo::Type type = view::natural_base({s.dtype, t.sizes().vec(), t.strides().vec(), 0});
  Cell* cell = cell_of(t);
  cell->value = Array(new runtime::DeviceArray(*cell->device, runtime::intern(type), s));
}

// torch.use_deterministic_algorithms: memory that nobody wrote reads as NaN, or the largest
// integer.
at::Tensor deterministic(at::Tensor t) {
  if (at::globalContext().deterministicAlgorithms() &&
      at::globalContext().deterministicFillUninitializedMemory() && t.numel() > 0) {
    if (t.is_floating_point() || t.is_complex())
      t.fill_(std::numeric_limits<double>::quiet_NaN());
    else if (t.scalar_type() == at::kBool)
      t.fill_(true);
    else
      t.fill_(c10::isIntegralType(t.scalar_type(), false)
                  ? static_cast<int64_t>(
                        (uint64_t{1}
                         << (8 * t.element_size() - (c10::isSignedType(t.scalar_type()) ? 1 : 0) -
                             (t.element_size() == 8 && !c10::isSignedType(t.scalar_type()) ? 1
                                                                                           : 0))) -
                        1)
                  : 0);
  }
  return t;
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype_opt,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  const at::ScalarType dtype = c10::dtype_or_default(dtype_opt);
  check_options(layout, pin_memory, dtype);
  at::detail::check_size_nonnegative(size);
  at::Tensor t = make_tensor(device_or_current(device), dtype, size, {}, {});
  if (format && *format != at::MemoryFormat::Contiguous && *format != at::MemoryFormat::Preserve)
    t.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return deterministic(std::move(t));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype_opt, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const at::ScalarType dtype = c10::dtype_or_default(dtype_opt);
  check_options(layout, pin_memory, dtype);
  TORCH_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  at::detail::check_size_nonnegative(size);
  for (int64_t s : stride)
    TORCH_CHECK(
        s >= 0,
        "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
  return deterministic(make_tensor(device_or_current(device), dtype, size, stride, {}));
}

at::Tensor& run_in_place(const char* name, const char* overload, at::Tensor& self,
                         c10::IValue value, bool has_value) {
  torch::jit::Stack stack{self};
  if (has_value) stack.push_back(std::move(value));
  callable_of(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload))(&stack);
  return self;
}

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  if (self.numel() == 0) return self;
  if (fills_whole(self)) {
    set_splat(self, value);
    return self;
  }
  return run_in_place("aten::fill_", "Scalar", self, value, true);
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
              value.dim(), " dimensions.");
  if (value.device().is_cpu()) return fill_scalar(self, value.item());
  if (self.numel() == 0) return self;
  return run_in_place("aten::fill_", "Tensor", self, value, true);
}

at::Tensor& zero_(at::Tensor& self) { return fill_scalar(self, 0); }

// start and step are operands: torch.arange(n, n + 1) in a decoding loop is one program.
at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                       at::Tensor& out) {
  const at::ScalarType dtype = out.scalar_type();
  if (dtype == at::kBool || at::isComplexType(dtype)) refuse_dtype("arange_cpu", dtype);
  const int64_t n = dtype == at::kLong ? at::native::compute_arange_size<int64_t>(start, end, step)
                                       : at::native::compute_arange_size<double>(start, end, step);
  if (out.numel() != n) out.resize_({n});
  if (out.numel() == 0) return out;
  at::Tensor values =
      run_lowering("tpu::arange", {start, step, out.numel(), static_cast<int64_t>(to_dtype(dtype))})
          .at(0);
  return out.copy_(values);
}

// PyTorch's composition ends in a kernel of the device. Its checks come first, for they print the
// options.
at::Tensor kaiser_window_beta(int64_t length, bool periodic, double beta,
                              std::optional<at::ScalarType> dtype_opt,
                              std::optional<at::Layout> layout, std::optional<at::Device> device,
                              std::optional<bool> pin_memory) {
  const at::ScalarType dtype = c10::dtype_or_default(dtype_opt);
  const at::TensorOptions options =
      at::TensorOptions().dtype(dtype_opt).layout(layout).device(device).pinned_memory(pin_memory);
  TORCH_CHECK(layout != at::kSparse,
              "kaiser_window is not implemented for sparse types, got: ", options);
  TORCH_CHECK(at::isFloatingType(dtype) || at::isComplexType(dtype),
              "kaiser_window expects floating point dtypes, got: ", options);
  TORCH_CHECK(length >= 0,
              "kaiser_window requires non-negative window_length, got window_length=", length);
  check_options(layout, pin_memory, dtype);
  const c10::OptionalDeviceGuard guard(device);
  static Callable& kernel =
      callable_of(c10::Dispatcher::singleton().findSchemaOrThrow("aten::kaiser_window", "beta"));
  torch::jit::Stack stack{length,       periodic,      beta,
                          dtype_opt,    c10::IValue(), device.value_or(at::kPrivateUse1),
                          c10::IValue()};
  kernel(&stack);
  return stack.at(0).toTensor();
}
at::Tensor kaiser_window_periodic(int64_t length, bool periodic,
                                  std::optional<at::ScalarType> dtype,
                                  std::optional<at::Layout> layout,
                                  std::optional<at::Device> device,
                                  std::optional<bool> pin_memory) {
  return kaiser_window_beta(length, periodic, 12.0, dtype, layout, device, pin_memory);
}
at::Tensor kaiser_window(int64_t length, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  return kaiser_window_beta(length, true, 12.0, dtype, layout, device, pin_memory);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("fill_.Scalar", &fill_scalar);
  m.impl("fill_.Tensor", &fill_tensor);
  m.impl("zero_", &zero_);
  m.impl("arange.start_out", &arange_out);
  m.impl("kaiser_window", &kaiser_window);
  m.impl("kaiser_window.periodic", &kaiser_window_periodic);
  m.impl("kaiser_window.beta", &kaiser_window_beta);
}

}  // namespace torch_tpu::aten
