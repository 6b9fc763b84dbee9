// SPDX-License-Identifier: Apache-2.0
// Operators whose result's size depends on data: a first program finds the size, the host reads it
// (the one wait), a second one makes the result. And advanced indexing, whose boolean masks become
// such index lists.
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "aten/errors.h"
#include "aten/run.h"
#include "aten/storage.h"

namespace torch_tpu::aten {
namespace {

using OptionalTensors = c10::List<std::optional<at::Tensor>>;

Callable& callable(const char* name, const char* overload) {
  return callable_of(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
}

// Rows of coordinates, in row-major order of the elements: [count, dim].
at::Tensor select_nonzero(const at::Tensor& self) {
  const int64_t count = self.numel() == 0 ? 0 : at::ne(self, 0).sum().item<int64_t>();
  // CPU's result has the coordinates of one dimension together in memory.
  at::Tensor columns = at::empty({self.dim(), count}, self.options().dtype(at::kLong)).t();
  if (columns.numel() > 0) columns.copy_(at::nonzero_static(self, count));
  return columns;
}

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type",
              out.scalar_type());
  TORCH_CHECK(self.device() == out.device(),
              "expected self and out to be on the same device, but got out on ", out.device(),
              " and self on ", self.device());
  const at::Tensor result = select_nonzero(self);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

at::Tensor select_masked(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  const auto expanded = at::broadcast_tensors({mask, self});
  return expanded[1].reshape({-1}).index_select(
      0, select_nonzero(expanded[0].reshape({-1})).reshape({-1}));
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  const at::Tensor result = select_masked(self, mask);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

bool is_mask(const at::Tensor& t) {
  return t.scalar_type() == at::kBool || t.scalar_type() == at::kByte;
}

// Integer index lists on self's device: masks become their coordinates, CPU index tensors move.
OptionalTensors plain_indices(const at::Tensor& self, const OptionalTensors& indices) {
  TORCH_CHECK_INDEX(
      indices.size() <= static_cast<size_t>(self.dim()) ||
          std::any_of(
              indices.begin(), indices.end(),
              [](const std::optional<at::Tensor>& t) { return t && t->defined() && is_mask(*t); }),
      "too many indices for tensor of dimension ", self.dim(), " (got ", indices.size(), ")");
  OptionalTensors out;
  int64_t dim = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::optional<at::Tensor> entry = indices.get(i);
    if (!entry || !entry->defined()) {
      out.push_back(std::nullopt);
      ++dim;
      continue;
    }
    const at::Tensor& index = *entry;
    TORCH_CHECK_INDEX(
        index.scalar_type() == at::kLong || index.scalar_type() == at::kInt || is_mask(index),
        "tensors used as indices must be long, int, byte or bool tensors");
    if (!is_mask(index)) {
      out.push_back(index.device() == self.device() ? index : index.to(self.device()));
      ++dim;
      continue;
    }
    for (int64_t k = 0; k < index.dim(); ++k) {
      TORCH_CHECK_INDEX(dim + k < self.dim() && index.size(k) == self.size(dim + k),
                        "The shape of the mask ", index.sizes(), " at index ", k,
                        " does not match the shape of the indexed tensor ", self.sizes(),
                        " at index ", dim + k);
    }
    const at::Tensor rows =
        select_nonzero(index.device() == self.device() ? index : index.to(self.device()));
    if (index.dim() == 0) {  // x[True]: a new dimension of size 1 or 0
      TORCH_CHECK_NOT_IMPLEMENTED(false,
                                  "tpu: indexing with a 0-dim mask inside a list of indices");
    }
    for (int64_t k = 0; k < index.dim(); ++k) out.push_back(rows.select(1, k));
    dim += index.dim();
  }
  return out;
}

bool needs_plain(const at::Tensor& self, const OptionalTensors& indices) {
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::optional<at::Tensor> t = indices.get(i);
    if (t && t->defined() && (is_mask(*t) || t->device() != self.device())) return true;
  }
  return false;
}

at::Tensor index_tensor(const at::Tensor& self, const OptionalTensors& indices) {
  torch::jit::Stack stack{self,
                          needs_plain(self, indices) ? plain_indices(self, indices) : indices};
  callable("aten::index", "Tensor")(&stack);
  return stack.at(0).toTensor();
}

at::Tensor& index_out(const at::Tensor& self, const OptionalTensors& indices, at::Tensor& out) {
  const at::Tensor result = index_tensor(self, indices);
  TORCH_CHECK(out.scalar_type() == result.scalar_type(), "index_out: self (", self.scalar_type(),
              ") and result (", out.scalar_type(), ") must have the same scalar type");
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// x[mask] = number needs no index list: it is a select on the device.
bool is_masked_fill(const at::Tensor& self, const OptionalTensors& indices,
                    const at::Tensor& values, bool accumulate) {
  if (accumulate || indices.size() != 1 || values.numel() != 1) return false;
  const std::optional<at::Tensor> mask = indices.get(0);
  if (!mask || !mask->defined() || !is_mask(*mask) || mask->dim() == 0 || mask->dim() > self.dim())
    return false;
  return mask->sizes() == self.sizes().slice(0, static_cast<size_t>(mask->dim()));
}

at::Tensor& index_put_impl(at::Tensor& self, const OptionalTensors& indices,
                           const at::Tensor& values, bool accumulate, bool unsafe) {
  TORCH_CHECK_INDEX(self.scalar_type() == values.scalar_type(),
                    "Index put requires the source and destination dtypes match, got ",
                    self.scalar_type(), " for the destination and ", values.scalar_type(),
                    " for the source.");
  if (is_masked_fill(self, indices, values, accumulate)) {
    at::Tensor mask = indices.get(0)->to(self.device(), at::kBool);
    std::vector<int64_t> sizes = mask.sizes().vec();
    sizes.resize(static_cast<size_t>(self.dim()), 1);
    return self.masked_fill_(mask.view(sizes), values.dim() == 0 ? values : values.reshape({}));
  }
  torch::jit::Stack stack{self, needs_plain(self, indices) ? plain_indices(self, indices) : indices,
                          values.device() == self.device() || values.dim() == 0 ? values : values,
                          accumulate, unsafe};
  callable("aten::_index_put_impl_", "")(&stack);
  return self;
}

at::Tensor& index_put_(at::Tensor& self, const OptionalTensors& indices, const at::Tensor& values,
                       bool accumulate) {
  return index_put_impl(self, indices, values, accumulate, false);
}

at::Tensor index_put_copy(const at::Tensor& self, const OptionalTensors& indices,
                          const at::Tensor& values, bool accumulate) {
  at::Tensor out = self.clone();
  return index_put_impl(out, indices, values, accumulate, false);
}

at::Tensor unsafe_index(const at::Tensor& self, const OptionalTensors& indices) {
  return index_tensor(self, indices);
}
at::Tensor unsafe_index_put(const at::Tensor& self, const OptionalTensors& indices,
                            const at::Tensor& values, bool accumulate) {
  return index_put_copy(self, indices, values, accumulate);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nonzero", &select_nonzero);
  m.impl("nonzero.out", &nonzero_out);
  m.impl("masked_select", &select_masked);
  m.impl("masked_select.out", &masked_select_out);
  m.impl("index.Tensor", &index_tensor);
  m.impl("index.Tensor_out", &index_out);
  m.impl("_index_put_impl_", &index_put_impl);
  m.impl("index_put_", &index_put_);
  m.impl("index_put", &index_put_copy);
  m.impl("_unsafe_index.Tensor", &unsafe_index);
  m.impl("_unsafe_index_put", &unsafe_index_put);
}

}  // namespace torch_tpu::aten
