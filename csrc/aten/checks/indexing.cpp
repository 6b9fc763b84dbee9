// SPDX-License-Identifier: Apache-2.0
#include <ATen/WrapDimUtils.h>

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

void index_select(CheckArgs a) {
  const at::Tensor &self = a[0].toTensor(), &index = a[2].toTensor();
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(self.dim() > 0 || index.numel() == 1,
              "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
              " value(s)");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
}

// An empty index: here the meta function asks for row 0 of the source, which is not there, so it is
// not called (build.cpp) and what it says before that is said here. self, dim, index, source.
template <const char* kName>
void index_rows(CheckArgs a) {
  const at::Tensor &self = a[0].toTensor(), &index = a[2].toTensor(), &source = a[3].toTensor();
  if (index.numel() != 0) return;
  const int64_t dim = at::maybe_wrap_dim(a[1].toInt(), self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, kName,
                    "_(): Index is supposed to be a vector, but got dim: ", index.dim(),
                    " with type: ", index.scalar_type(), " and size: ", index.sizes());
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, kName,
              "_(): Expected dtype int32/int64 for index but got: ", index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), kName, "_(): self (", self.scalar_type(),
              ") and source (", source.scalar_type(), ") must have the same scalar type");
  TORCH_CHECK(dim == 0 || dim < source.dim(), kName, "_(): Indexing dim ", dim,
              " is out of bounds of the source tensor with dim ", source.dim());
  TORCH_CHECK(source.dim() > 0 && source.size(dim) == 0, kName,
              "_(): Number of indices (0) should be equal to source.size(dim): (",
              source.dim() == 0 ? 1 : source.size(dim), "), for dim: ", dim);
  if (self.dim() == 0) return;
  std::vector<int64_t> kept = self.sizes().vec(), given = source.sizes().vec();
  kept.erase(kept.begin() + dim);
  given.erase(given.begin() + dim);
  TORCH_CHECK(kept == given,
              "source tensor shape must match self tensor shape, excluding the specified "
              "dimension. Got self.shape = ",
              self.sizes(), " source.shape = ", source.sizes());
}
constexpr char kIndexAdd[] = "index_add", kIndexReduce[] = "index_reduce";

void masked_fill(CheckArgs a) {
  TORCH_CHECK(a[2].toTensor().dim() == 0,
              "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              a[2].toTensor().dim(), " dimension(s).");
}

void masked_scatter(CheckArgs a) {
  const at::Tensor &self = a[0].toTensor(), &mask = a[1].toTensor(), &source = a[2].toTensor();
  // "gotFloat" is CPU's.
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter: expected self and source to have same dtypes but got",
              self.scalar_type(), " and ", source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == at::kBool,
              "masked_scatter_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
}

void put(CheckArgs a) {
  const at::Tensor &self = a[0].toTensor(), &index = a[1].toTensor(), &source = a[2].toTensor();
  TORCH_CHECK(index.scalar_type() == at::kLong,
              "put_(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ",
              self.scalar_type(), " and source.dtype = ", source.scalar_type());
  TORCH_CHECK_INDEX(
      source.numel() == index.numel(),
      "put_(): Expected source and index to have the same number of elements, but got "
      "source.numel() = ",
      source.numel(), ", index.numel() = ", index.numel());
}

// self, indices (of which some are None).
void index_put(CheckArgs a) {
  for (const c10::IValue& v : a[1].toListRef()) {
    const at::Tensor index = optional_tensor(v);
    TORCH_CHECK_INDEX(!index.defined() || at::isIntegralType(index.scalar_type(), true),
                      "tensors used as indices must be long, int, byte or bool tensors");
  }
}

void bucketize(CheckArgs a) {
  TORCH_CHECK(a[1].toTensor().dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
              a[1].toTensor().dim(), ")");
  const at::ScalarType t = a[0].toTensor().scalar_type();
  if (at::isComplexType(t)) refuse_dtype("searchsorted_out_cpu", t);
}

}  // namespace

void add_indexing_checks(CheckTable& table) {
  table.insert({
      {"aten::index_select", index_select},
      {"aten::index_add", index_rows<kIndexAdd>},
      {"aten::index_reduce", index_rows<kIndexReduce>},
      {"aten::masked_fill.Tensor", masked_fill},
      {"aten::masked_scatter", masked_scatter},
      {"aten::put", put},
      {"aten::index_put", index_put},
      {"aten::_index_put_impl", index_put},
      {"aten::bucketize.Tensor", bucketize},
  });
}

}  // namespace torch_tpu::aten
