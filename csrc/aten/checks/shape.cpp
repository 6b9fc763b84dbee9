// SPDX-License-Identifier: Apache-2.0
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/WrapDimUtilsMulti.h>

#include <algorithm>

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

// The operands of an element-wise operator, from the `kFirst`-th argument on.
template <int kFirst, int kCount>
void broadcast(CheckArgs a) {
  auto sizes = a[kFirst].toTensor().sizes().vec();
  for (int i = 1; i < kCount; ++i) sizes = at::infer_size(sizes, a[kFirst + i].toTensor().sizes());
}

// PyTorch's meta function of an in-place form without one of its own only returns `self`, and out=
// may have none: what TensorIterator refuses of the tensor that receives the result.
template <int kReceiver>
void receives_binary(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &to = a[kReceiver].toTensor();
  const bool is_tensor = a[1].isTensor();
  if (kReceiver == 0 && is_tensor) {
    const auto shape = at::infer_size(x.sizes(), a[1].toTensor().sizes());
    TORCH_CHECK(x.sizes() == at::IntArrayRef(shape), "output with shape ", x.sizes(),
                " doesn't match the broadcast shape ", at::IntArrayRef(shape));
  }
  const at::ScalarType t =
      is_tensor ? at::result_type(x, a[1].toTensor()) : at::result_type(x, a[1].toScalar());
  TORCH_CHECK(c10::canCast(t, to.scalar_type()), "result type ", t,
              " can't be cast to the desired output type ", to.scalar_type());
}

void select_scatter(CheckArgs a) {
  require_slice(a[0].toTensor().select(a[2].toInt(), a[3].toInt()), a[1].toTensor());
}

void diagonal_scatter(CheckArgs a) {
  require_slice(a[0].toTensor().diagonal(a[2].toInt(), a[3].toInt(), a[4].toInt()),
                a[1].toTensor());
}

// The view is refused as a view.
void as_strided_copy(CheckArgs a) {
  a[0].toTensor().as_strided(a[1].toIntVector(), a[2].toIntVector(), a[3].toOptional<int64_t>());
}

// query [.., L, E], key [.., S, E]: as the CPU's product of matrices puts it.
void attention(CheckArgs a) {
  const at::Tensor &q = a[0].toTensor(), &k = a[1].toTensor();
  if (q.dim() < 2 || k.dim() < 2) return;
  const int64_t e = q.size(-1), batch = k.numel() / std::max<int64_t>(k.size(-1) * k.size(-2), 1);
  TORCH_CHECK(k.size(-1) == e, "Expected size for first two dimensions of batch2 tensor to be: [",
              batch, ", ", e, "] but got: [", batch, ", ", k.size(-1), "].");
}

void flip(CheckArgs a) {
  at::dim_list_to_bitset(a[1].toIntVector(), static_cast<size_t>(a[0].toTensor().dim()));
}

void stack(CheckArgs a) {
  const auto tensors = a[0].toListRef();
  for (size_t i = 1; i < tensors.size(); ++i) {
    TORCH_CHECK(tensors[i].toTensor().sizes() == tensors[0].toTensor().sizes(),
                "stack expects each tensor to be equal size, but got ",
                tensors[0].toTensor().sizes(), " at entry 0 and ", tensors[i].toTensor().sizes(),
                " at entry ", i);
  }
}

void roll(CheckArgs a) {
  const auto shifts = a[1].toIntVector(), dims = a[2].toIntVector();
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  TORCH_CHECK(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
}

void channel_shuffle(CheckArgs a) {
  const at::Tensor& x = a[0].toTensor();
  const int64_t groups = a[1].toInt();
  TORCH_CHECK(x.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ",
              x.sizes());
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive.",
              " Value of groups:", groups);
  TORCH_CHECK(x.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ",
              x.size(1), " channels and ", groups, " groups.");
}

void repeat(CheckArgs a) {
  const at::Tensor& x = a[0].toTensor();
  std::vector<int64_t> sizes = a[1].toIntVector();
  if (sizes.size() < static_cast<size_t>(x.dim())) return;
  for (int64_t d = 0; d < x.dim(); ++d)
    sizes[sizes.size() - static_cast<size_t>(x.dim()) + static_cast<size_t>(d)] *= x.size(d);
  at::detail::check_size_nonnegative(sizes);
}

// PyTorch's own composite, which says shapes here, reads past the shorter list.
void foreach_copy(CheckArgs a) {
  const size_t n = a[0].toListRef().size(), m = a[1].toListRef().size();
  TORCH_CHECK(n == m, "Tensor lists must have the same number of tensors, got ", n, " and ", m);
}

}  // namespace

void add_shape_checks(CheckTable& table) {
  table.insert({
      {"aten::select_scatter", select_scatter},
      {"aten::as_strided_copy", as_strided_copy},
      {"aten::_scaled_dot_product_fused_attention_overrideable", attention},
      {"aten::diagonal_scatter", diagonal_scatter},
      {"aten::_foreach_copy", foreach_copy},
      {"aten::where.self", broadcast<0, 3>},
      {"aten::ldexp.Tensor", broadcast<0, 2>},
      {"aten::_add_relu.Tensor", broadcast<0, 2>},
      {"aten::_add_relu.out", receives_binary<3>},
      {"aten::_add_relu_.Tensor", receives_binary<0>},
      {"aten::_add_relu_.Scalar", receives_binary<0>},
      {"aten::flip", flip},
      {"aten::stack", stack},
      {"aten::channel_shuffle", channel_shuffle},
      {"aten::roll", roll},
      {"aten::repeat", repeat},
  });
}

}  // namespace torch_tpu::aten
