// SPDX-License-Identifier: Apache-2.0
#include "view/chain.h"
#include "view/reinterpret.h"
#include "view/view.h"

namespace torch_tpu::view {
namespace {

// The slices [start : start + span : step] of every factor.
Value sliced(Value x, const Plan& p, const hlo::Values& operands) {
  if (p.window == 0 && is_partial(p))
    x = dynamic_slice(x, factor_starts(x.builder(), p, operands), spans(p));
  if (p.window == 0 && !has_steps(p)) return x;
  return slice(x, Dims(p.factors.size(), 0), spans(p), each(p, &Factor::step));
}

Value read_chain(Value x, const View& v, const Plan& p, const hlo::Values& operands) {
  const Kept k = kept(p);
  x = reshape(sliced(factored(x, p, operands), p, operands), k.lengths);
  if (!k.is_identity()) x = transpose(x, k.permutation);
  if (x.numel() == v.numel()) return reshape(x, v.sizes);
  return broadcast_in_dim(x, v.sizes, k.view_dims);
}

Value read_gather(Value x, const View& v, Value offset) {
  if (const Value y = read_in_pieces(flatten(x), v, offset)) return y;
  const Value y = take(flatten(x), flat_index(v, offset, x.numel()));
  return broadcast_to(y, v.sizes);
}

}  // namespace

Value read(Value base, const View& v, const Plan& p, const hlo::Values& starts) {
  require_operands(p, starts);
  if (p.kind == Plan::Kind::whole) return base;
  if (v.numel() == 0) return hlo::full(base.builder(), {v.dtype, v.sizes}, 0);
  if (v.dtype == DType::pred && base.dtype() != DType::pred) {  // converts the view, not the base
    View bytes = v;
    bytes.dtype = DType::u8;
    const Value y = read(base, bytes, p, starts);
    return y != zeros_like(y);
  }
  const Value x = reinterpret(base, v.dtype);
  return p.kind == Plan::Kind::chain ? read_chain(x, v, p, starts) : read_gather(x, v, starts[0]);
}

}  // namespace torch_tpu::view
