// SPDX-License-Identifier: Apache-2.0
#include "view/chain.h"

#include <algorithm>
#include <limits>
#include <string>

namespace torch_tpu::view {

Dims each(const Plan& p, int64_t Factor::* member) {
  Dims out;
  for (const Factor& f : p.factors) out.push_back(f.*member);
  return out;
}

Dims spans(const Plan& p) {
  Dims out;
  for (const Factor& f : p.factors) out.push_back(f.span());
  return out;
}

bool is_partial(const Plan& p) {
  return std::any_of(p.factors.begin(), p.factors.end(),
                     [](const Factor& f) { return f.is_partial(); });
}

bool has_steps(const Plan& p) {
  return std::any_of(p.factors.begin(), p.factors.end(),
                     [](const Factor& f) { return f.step > 1; });
}

bool Kept::is_identity() const { return std::is_sorted(permutation.begin(), permutation.end()); }

Kept kept(const Plan& p) {
  Kept k;
  Dims in_memory;
  for (const Factor& f : p.factors) {
    if (f.view_dim < 0) continue;
    k.lengths.push_back(f.length);
    k.permutation.push_back(static_cast<int64_t>(in_memory.size()));
    in_memory.push_back(f.view_dim);
  }
  std::sort(k.permutation.begin(), k.permutation.end(),
            [&](int64_t a, int64_t b) { return in_memory[a] < in_memory[b]; });
  for (int64_t i : k.permutation) k.view_dims.push_back(in_memory[i]);
  return k;
}

hlo::Values factor_starts(hlo::Builder& b, const Plan& p, const hlo::Values& operands) {
  hlo::Values starts;
  auto next = operands.begin();
  const Value zero = constant(b, DType::s64, 0);
  for (const Factor& f : p.factors)
    starts.push_back(p.window == 0 && f.is_partial() ? *next++ : zero);
  return starts;
}

DType index_type(int64_t limit) {
  return limit <= std::numeric_limits<int32_t>::max() ? DType::s32 : DType::s64;
}

Value flat_index(const View& v, Value offset, int64_t base_numel) {
  hlo::Builder& b = offset.builder();
  const DType t = index_type(base_numel);
  const Dims sizes = distinct_sizes(v);
  Value index = broadcast_in_dim(convert(offset, t), sizes, {});
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    index = index + iota(b, {t, sizes}, static_cast<int64_t>(d)) * constant(b, t, v.strides[d]);
  }
  return index;
}

Dims distinct_sizes(const View& v) {
  Dims sizes = v.sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (v.strides[d] == 0) sizes[d] = 1;
  }
  return sizes;
}

Value factored(Value x, const Plan& p, const hlo::Values& operands) {
  const Dims sizes = each(p, &Factor::size);
  if (p.window > 0) {
    x = dynamic_slice(flatten(x), operands, {p.window});
    x = pad(x, constant(x.builder(), x.dtype(), 0), {0}, {hlo::numel(sizes) - p.window}, {0});
  }
  return reshape(x, sizes);
}

void require_operands(const Plan& p, const hlo::Values& operands) {
  if (static_cast<int64_t>(operands.size()) == p.num_operands()) return;
  throw hlo::Error("view: the plan takes " + std::to_string(p.num_operands()) + " starts, got " +
                   std::to_string(operands.size()));
}

}  // namespace torch_tpu::view
