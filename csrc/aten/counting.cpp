// SPDX-License-Identifier: Apache-2.0
// unique, bincount and repeat_interleave: the registry's "tpu::" programs give results of the
// largest size and how many entries count; the host reads that number and cuts. One wait each.
#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <torch/library.h>

#include "aten/checks/table.h"
#include "aten/run.h"

namespace torch_tpu::aten {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// The first n along `dim`, in storage of its own.
at::Tensor cut(const at::Tensor& x, int64_t dim, int64_t n) {
  return x.size(dim) == n ? x : x.narrow(dim, 0, n).clone();
}

Three cut_groups(const std::vector<at::Tensor>& r, int64_t dim, at::IntArrayRef inverse_sizes,
                 bool inverse, bool counts) {
  const int64_t n = r[3].item<int64_t>();
  const at::Tensor none = at::empty({0}, r[1].options());
  return {cut(r[0], dim, n), inverse ? r[1].view(inverse_sizes) : none,
          counts ? cut(r[2], 0, n) : none};
}

Three unique2(const at::Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
  (void)sorted;
  return cut_groups(run_lowering("tpu::unique", {self}), 0, self.sizes(), return_inverse,
                    return_counts);
}

std::tuple<at::Tensor, at::Tensor> unique(const at::Tensor& self, bool sorted,
                                          bool return_inverse) {
  auto [values, inverse, counts] = unique2(self, sorted, return_inverse, false);
  return {values, inverse};
}

void expect_no_other_zero(const at::Tensor& self, int64_t dim) {
  for (int64_t d = 0; d < self.dim(); ++d) {
    TORCH_CHECK(
        d == dim || self.size(d) > 0 || self.size(dim) == 0,
        "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  }
}

Three unique_dim(const at::Tensor& self, int64_t dim, bool sorted, bool return_inverse,
                 bool return_counts) {
  (void)sorted;
  dim = at::maybe_wrap_dim(dim, self.dim());
  expect_no_other_zero(self, dim);
  return cut_groups(run_lowering("tpu::unique_dim", {self, dim}), dim, {self.size(dim)},
                    return_inverse, return_counts);
}

Three unique_consecutive(const at::Tensor& self, bool return_inverse, bool return_counts,
                         std::optional<int64_t> dim) {
  if (!dim) {
    return cut_groups(run_lowering("tpu::unique_consecutive", {self, c10::IValue()}), 0,
                      self.sizes(), return_inverse, return_counts);
  }
  const int64_t d = at::maybe_wrap_dim(*dim, self.dim());
  expect_no_other_zero(self, d);
  return cut_groups(run_lowering("tpu::unique_consecutive", {self, d}), d, {self.size(d)},
                    return_inverse, return_counts);
}

at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights,
                    int64_t minlength) {
  if (!at::isIntegralType(self.scalar_type(), false))
    refuse_dtype("bincount_cpu", self.scalar_type());
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  TORCH_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  const bool weighted = weights && weights->defined();
  TORCH_CHECK(!weighted || (weights->dim() == 1 && weights->size(0) == self.size(0)),
              "weights should be 1-d and have the same length as input");
  if (self.numel() == 0) return at::zeros({minlength}, self.options().dtype(at::kLong));
  TORCH_CHECK(self.min().item<int64_t>() >= 0,
              "bincount only supports 1-d non-negative integral inputs.");
  const int64_t size = std::max(self.max().item<int64_t>() + 1, minlength);
  return run_lowering("tpu::bincount",
                      {self, weighted ? c10::IValue(*weights) : c10::IValue(), size})
      .at(0);
}

at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  if (repeats.scalar_type() != at::kLong && repeats.scalar_type() != at::kInt)
    refuse_dtype("repeat_interleave_cpu", repeats.scalar_type());
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  if (repeats.numel() == 0) return at::empty_like(repeats);
  TORCH_CHECK(output_size || repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
  const int64_t size = output_size ? *output_size : repeats.sum().item<int64_t>();
  return run_lowering("aten::repeat_interleave.Tensor", {repeats, size})
      .at(0)
      .to(repeats.scalar_type());
}

// PyTorch's composite leaves the range to the scatter of each device, in other words than CPU's.
at::Tensor one_hot(const at::Tensor& self, int64_t num_classes) {
  TORCH_CHECK(self.scalar_type() == at::kLong,
              "one_hot is only applicable to index tensor of type LongTensor.");
  if (self.numel() == 0) {
    TORCH_CHECK(num_classes > 0, "Can not infer total number of classes from empty tensor.");
    auto sizes = self.sizes().vec();
    sizes.push_back(num_classes);
    return at::empty(sizes, self.options());
  }
  if (num_classes <= 0) {
    TORCH_CHECK(self.min().item<int64_t>() >= 0, "Class values must be non-negative.");
    TORCH_CHECK(num_classes == -1, "Class values must be smaller than num_classes.");
    num_classes = self.max().item<int64_t>() + 1;
  }
  return run_lowering("aten::one_hot", {self, num_classes}).at(0);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_unique", &unique);
  m.impl("_unique2", &unique2);
  m.impl("unique_dim", &unique_dim);
  m.impl("unique_consecutive", &unique_consecutive);
  m.impl("bincount", &bincount);
  m.impl("one_hot", &one_hot);
  m.impl("repeat_interleave.Tensor", &repeat_interleave);
}

}  // namespace torch_tpu::aten
