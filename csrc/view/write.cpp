// SPDX-License-Identifier: Apache-2.0
#include "view/chain.h"
#include "view/reinterpret.h"
#include "view/view.h"

namespace torch_tpu::view {
namespace {

// Steps that skip more than this many elements for one that is written are left to a scatter.
constexpr int64_t kMaxWaste = 64;

bool is_wasteful(const Plan& p) {
  return hlo::numel(spans(p)) > kMaxWaste * hlo::numel(each(p, &Factor::length));
}

// The view's offset from the starts of a chain.
Value offset_of(hlo::Builder& b, const Plan& p, const hlo::Values& operands) {
  if (p.window > 0) return operands[0];
  const hlo::Values starts = factor_starts(b, p, operands);
  Value offset = constant(b, DType::s64, 0);
  for (size_t i = 0; i < starts.size(); ++i) {
    offset = offset * constant(b, DType::s64, p.factors[i].size) + starts[i];
  }
  return offset;
}

// `data` as the slices of the factors: the inverse of what reading does after slicing.
Value to_slices(Value data, const Plan& p) {
  const Kept k = kept(p);
  Dims in_view_order, inverse(k.permutation.size());
  for (size_t i = 0; i < k.permutation.size(); ++i) {
    in_view_order.push_back(k.lengths[k.permutation[i]]);
    inverse[k.permutation[i]] = static_cast<int64_t>(i);
  }
  data = reshape(data, in_view_order);
  if (!k.is_identity()) data = transpose(data, inverse);
  return reshape(data, each(p, &Factor::length));
}

// True at the elements of the spans that the steps meet.
Value step_mask(hlo::Builder& b, const Plan& p) {
  const Dims shape = spans(p);
  Value mask;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t step = p.factors[i].step;
    if (step == 1) continue;
    const DType t = index_type(shape[i]);
    Value met = remainder(iota(b, {t, {shape[i]}}, 0), constant(b, t, step)) == constant(b, t, 0);
    met = broadcast_in_dim(met, shape, {static_cast<int64_t>(i)});
    mask = mask ? mask & met : met;
  }
  return mask;
}

// `update` with its elements `step` apart, the elements of `old` between them.
Value merge_steps(Value old, Value update, const Plan& p) {
  hlo::Builder& b = old.builder();
  const Dims none(p.factors.size(), 0);
  Dims interior = each(p, &Factor::step);
  for (int64_t& i : interior) --i;
  const Value spread = pad(update, constant(b, update.dtype(), 0), none, none, interior);
  return select(step_mask(b, p), spread, old);
}

// x, cut into factors, with the slices replaced.
Value place(Value x, Value update, const Plan& p, const hlo::Values& operands) {
  if (!is_partial(p)) return has_steps(p) ? merge_steps(x, update, p) : update;
  const hlo::Values starts = factor_starts(x.builder(), p, operands);
  if (has_steps(p)) update = merge_steps(dynamic_slice(x, starts, spans(p)), update, p);
  return dynamic_update_slice(x, update, starts);
}

Value write_chain(Value x, const Plan& p, const hlo::Values& operands, Value data) {
  const Value placed = place(factored(x, p, operands), to_slices(data, p), p, operands);
  if (p.window == 0) return reshape(placed, x.dims());
  const Value range = slice_in_dim(flatten(placed), 0, 0, p.window);
  return reshape(dynamic_update_slice(flatten(x), range, operands), x.dims());
}

Value scatter_at(Value x, const View& v, Value offset, Value data) {
  hlo::ScatterDims dims;
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  const Value index = flatten(flat_index(v, offset, x.numel()));
  const auto overwrite = [](const hlo::Values&, const hlo::Values& right) { return right; };
  View distinct = v;
  distinct.sizes = distinct_sizes(v);
  const hlo::Values out = scatter({flatten(x)}, index, {flatten(data)}, dims, overwrite, false,
                                  is_non_overlapping(distinct));
  return reshape(out[0], x.dims());
}

}  // namespace

Value write(Value base, const View& v, const Plan& p, const hlo::Values& starts, Value data) {
  require_operands(p, starts);
  if (p.kind == Plan::Kind::whole) return data;
  if (v.numel() == 0) return base;
  if (v.dtype == DType::pred && base.dtype() != DType::pred) {
    // A base of preds would turn the bytes beside the view into 0 and 1.
    View bytes = v;
    bytes.dtype = DType::u8;
    return write(base, bytes, p, starts, convert(data, DType::u8));
  }
  const Dims distinct = distinct_sizes(v);
  if (distinct != v.sizes)
    data = slice(data, Dims(distinct.size(), 0), distinct, Dims(distinct.size(), 1));
  const Value x = reinterpret(base, v.dtype);
  Value written;
  if (p.kind == Plan::Kind::gather) {
    written = scatter_at(x, v, starts[0], data);
  } else if (is_wasteful(p)) {
    written = scatter_at(x, v, offset_of(x.builder(), p, starts), data);
  } else {
    written = write_chain(x, p, starts, data);
  }
  return reinterpret_back(base, written);
}

}  // namespace torch_tpu::view
