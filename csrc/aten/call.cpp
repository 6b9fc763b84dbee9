// SPDX-License-Identifier: Apache-2.0
#include "aten/call.h"

#include <ATen/MemoryOverlap.h>
#include <c10/core/DefaultDtype.h>

#include <cstring>

#include "aten/number.h"
#include "aten/settings.h"
#include "aten/storage.h"
#include "aten/view_key.h"

namespace torch_tpu::aten {

using hlo::DType;
using hlo::Type;
using runtime::Cell;
using runtime::Device;
using runtime::DeviceArray;
using runtime::ScalarValue;

namespace {

// The host value of a 0-dim CPU tensor.
ScalarValue host_scalar(const c10::TensorImpl& t) {
  ScalarValue s;
  s.dtype = to_dtype(c10::typeMetaToScalarType(t.dtype()));
  std::memcpy(s.bits, t.data(), t.itemsize());
  return s;
}

// Whether the tensor is its base as it lies: the usual case, decided without allocating.
bool is_whole(const c10::TensorImpl& t, DType dtype, const Type& base) {
  const auto sizes = t.sizes();
  return t.is_contiguous() && t.storage_offset() == 0 && dtype == base.dtype &&
         sizes.size() == base.dims.size() &&
         std::memcmp(sizes.data(), base.dims.data(), sizes.size() * sizeof(int64_t)) == 0;
}

}  // namespace

void Call::find_device() {
  auto look = [&](const c10::IValue& v) {
    if (device || !v.isTensor()) return;
    const at::Tensor& t = v.toTensor();
    if (t.defined() && t.device().is_privateuseone()) device = &Device::at(t.device().index());
  };
  for (size_t i = 0; i < plan.num_args && !device; ++i) {
    if (args[i].isTensor())
      look(args[i]);
    else if (args[i].isTensorList() || args[i].isOptionalTensorList())
      for (const c10::IValue& e : args[i].toListRef()) look(e);
  }
  if (!device) device = &Device::at(current_device());
}

void Call::collect() {
  find_device();
  const Settings& s = settings();
  key.push_back(static_cast<uint64_t>(device->index()) |
                static_cast<uint64_t>(s.matmul_precision) << 8 |
                static_cast<uint64_t>(s.host_fallback) << 12 |
                static_cast<uint64_t>(s.portable_programs) << 13 |
                static_cast<uint64_t>(c10::typeMetaToScalarType(c10::get_default_dtype())) << 16);
  size_t next_written = 0;
  for (size_t i = 0; i < plan.num_args; ++i) {
    const bool written =
        next_written < plan.written.size() && plan.written[next_written] == static_cast<int>(i);
    if (written) ++next_written;
    collect(args[i], i, written);
  }
}

void Call::collect(const c10::IValue& v, size_t i, bool written) {
  if (v.isTensor()) {
    collect_tensor(v.unsafeToTensorImpl(), written);
  } else if (v.isNone() && written) {  // as the undefined tensor that C++ passes
    written_reads.push_back(static_cast<int>(reads.size()));
    collect_none();
  } else if (v.isNone() || v.isGenerator()) {
    key.push_back(1);
  } else if (v.isTensorList() || v.isOptionalTensorList()) {
    const auto list = v.toListRef();
    key.push_back(list.size() << 8 | 2);
    for (const c10::IValue& e : list) {
      if (e.isTensor())
        collect_tensor(e.unsafeToTensorImpl(), written);
      else
        collect_none();
    }
  } else if (is_number(v)) {
    if (plan.wants_operand[i])
      collect_number(v, plan.defaults[i]);
    else
      key_number(v);
  } else if (v.isList()) {
    const auto list = v.toListRef();
    key.push_back(list.size() << 8 | 3);
    for (const c10::IValue& e : list) {
      if (is_number(e) && plan.wants_operand[i])
        collect_number(e, {});
      else if (is_number(e))
        key_number(e);
      else
        TORCH_CHECK(false, plan.name, ": argument ", i, " is a list of ", e.tagKind(),
                    ", which tpu does not take");
    }
  } else if (v.isString()) {
    const std::string& s = v.toStringRef();
    key.push_back(s.size() << 8 | 4);
    for (size_t k = 0; k < s.size(); k += 8) {
      uint64_t w = 0;
      std::memcpy(&w, s.data() + k, std::min<size_t>(8, s.size() - k));
      key.push_back(w);
    }
  } else if (v.isDevice()) {
    key.push_back(5);
  } else if (v.isSymInt()) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, plan.name,
                                ": symbolic sizes do not reach tpu's eager kernels");
  } else {
    TORCH_CHECK(false, plan.name, ": argument ", i, " is a ", v.tagKind(),
                ", which tpu does not take");
  }
}

void Call::key_number(const c10::IValue& v) {
  const ScalarValue s = number_of(v);
  uint64_t w[2];
  std::memcpy(w, s.bits, 16);
  key.push_back(static_cast<uint64_t>(s.dtype) << 8 | 6);
  key.push_back(w[0]);
  if (s.dtype == DType::c128) key.push_back(w[1]);
}

void Call::collect_none() {
  key.push_back(1);
  reads.emplace_back();
}

int Call::add_scalar(const ScalarValue& s) {
  owned.push_back(device->scalar(s));
  operands.push_back(owned.back().get());
  return static_cast<int>(operands.size()) - 1;
}

// A weight that is its default, 1, is a constant: that makes one more program at most, and nearly
// every call takes it, with one operand less and nothing to multiply.
void Call::collect_number(const c10::IValue& v, const std::optional<ScalarValue>& usual) {
  const ScalarValue s = number_of(v);
  Read r;
  r.kind = Read::Kind::number;
  r.wrapped = true;
  const bool is_usual = usual && *usual == s;
  if (!is_usual) r.operand = add_scalar(s);
  reads.push_back(r);
  key.push_back(static_cast<uint64_t>(s.dtype) << 8 | (is_usual ? 11 : 7));
}

void Call::collect_tensor(c10::TensorImpl* impl, bool written) {
  if (impl == c10::UndefinedTensorImpl::singleton()) {
    if (written) written_reads.push_back(static_cast<int>(reads.size()));
    collect_none();
    return;
  }
  Read r;
  r.impl = impl;
  if (!impl->device().is_privateuseone()) {
    TORCH_CHECK(
        impl->device().is_cpu() && impl->dim() == 0 && !written,
        "Expected all tensors to be on the same device, but found at least two devices, tpu:",
        device->index(), " and ", impl->device(), "!");
    const ScalarValue s = host_scalar(*impl);
    r.kind = Read::Kind::host;
    r.wrapped = impl->is_wrapped_number();
    r.operand = add_scalar(s);
    reads.push_back(r);
    key.push_back(static_cast<uint64_t>(s.dtype) << 16 | static_cast<uint64_t>(r.wrapped) << 8 | 8);
    return;
  }
  TORCH_CHECK(impl->device().index() == device->index(),
              "Expected all tensors to be on the same device, but found at least two devices, tpu:",
              device->index(), " and ", impl->device(), "!");
  r.kind = Read::Kind::tensor;
  r.cell = cell_of(impl->unsafe_storage());
  const DType dtype = to_dtype(c10::typeMetaToScalarType(impl->dtype()));
  if (!r.cell->value) fill_unwritten(*impl, r.cell);
  DeviceArray* array = r.cell->value.get();
  r.whole = is_whole(*impl, dtype, array->type());
  r.operand = static_cast<int>(operands.size());
  operands.push_back(array);
  const uint64_t bits = (impl->key_set().has(c10::DispatchKey::Conjugate) ? 1u : 0u) |
                        (impl->key_set().has(c10::DispatchKey::Negative) ? 2u : 0u) |
                        (r.whole ? 4u : 0u) | (impl->is_wrapped_number() ? 8u : 0u);
  key.push_back(static_cast<uint64_t>(dtype) << 16 | bits << 8 | 9);
  key.push_back(reinterpret_cast<uint64_t>(array->type_id()));
  if (!r.whole) collect_view(r, *impl, *array);
  if (written) {
    // Two written tensors of one storage are written one after the other: which share is part of
    // the program.
    uint64_t first = reads.size();
    for (size_t k = 0; k < reads.size(); ++k) {
      if (reads[k].cell == r.cell) {
        first = k;
        break;
      }
    }
    key.push_back(first << 8 | 10);
    written_reads.push_back(static_cast<int>(reads.size()));
  }
  if (plan.overlap != OpPlan::Overlap::allowed) refuse_overlap(r, written);
  reads.push_back(r);
}

at::Tensor Call::tensor(const Read& r) {
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::unsafe_reclaim_from_nonowning(r.impl));
}

// As TensorIterator: an element-wise write may not read, shifted, what it overwrites; the likes
// of gather may not read it at all. Our values would be well defined, but programs must mean the
// same on every device.
void Call::refuse_overlap(const Read& r, bool written) const {
  const auto refuse = [&](const Read& out, const Read& in) {
    if (plan.overlap == OpPlan::Overlap::same_only)
      at::assert_no_partial_overlap(tensor(out), tensor(in));
    else
      at::assert_no_overlap(tensor(out), tensor(in));
  };
  for (size_t k = 0; k < reads.size(); ++k) {
    if (reads[k].cell != r.cell) continue;
    if (reads[k].impl == r.impl && plan.overlap == OpPlan::Overlap::same_only) continue;
    for (int w : written_reads) {
      if (w == static_cast<int>(k))
        refuse(reads[k], r);
      else if (written && w == static_cast<int>(reads.size()))
        refuse(r, reads[k]);
    }
  }
}

void Call::collect_view(const Read& r, const c10::TensorImpl& impl, const DeviceArray& array) {
  const auto sizes = impl.sizes(), strides = impl.strides();
  key.push_back(sizes.size());
  for (int64_t d : sizes) key.push_back(static_cast<uint64_t>(d));
  for (int64_t d : strides) key.push_back(static_cast<uint64_t>(d));
  key.push_back(static_cast<uint64_t>(r.cell->nbytes));
  const ViewKey& view = view_key(impl, array.type_id());
  key.push_back(view.plan);
  for (int64_t start : view.starts) add_scalar(ScalarValue::of(start));
}

// Memory that was asked for and never written: zeros, in the shape it is first looked at.
void Call::fill_unwritten(const c10::TensorImpl& impl, Cell* cell) {
  const view::View v = view_of(impl);
  Type type = view::natural_base(v);
  if (type.nbytes() != cell->nbytes) type = Type{v.dtype, {cell->nbytes / hlo::itemsize(v.dtype)}};
  if (type.nbytes() != cell->nbytes) type = Type{DType::u8, {cell->nbytes}};
  cell->value = runtime::Array(
      new DeviceArray(*device, runtime::intern(type), ScalarValue::zero(type.dtype)));
}

}  // namespace torch_tpu::aten
