// SPDX-License-Identifier: Apache-2.0
#include "lower/indexing.h"

#include <limits>

#include "lower/dims.h"

namespace torch_tpu::lower {
namespace {

DType coordinate_type(int64_t size) {
  return size > std::numeric_limits<int32_t>::max() ? DType::s64 : DType::s32;
}

Dims broadcast_of(const Values& indices) {
  Dims common;
  for (Value i : indices) {
    if (i) common = hlo::broadcast_dims(common, i.dims());
  }
  return common;
}

bool adjacent(const Dims& dims) {
  return dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size());
}

}  // namespace

std::string out_of_bounds(int64_t dim, int64_t size) {
  return size == 0 ? "index is out of bounds for dimension with size 0"
                   : "index is out of bounds for dimension " + std::to_string(dim) + " with size " +
                         std::to_string(size);
}

std::string out_of_bounds_at_run(int64_t dim, int64_t size) {
  return "RuntimeError: index is out of bounds for dimension " + std::to_string(dim) +
         " with size " + std::to_string(size);
}

Value bounded(Context& ctx, Value index, int64_t size, Negative negative,
              const std::string& message) {
  if (size == 0 && index.numel() > 0) {
    constexpr std::string_view runtime_error = "RuntimeError: ";
    if (message.starts_with(runtime_error)) throw UserError(message.substr(runtime_error.size()));
    throw UserError(message, UserError::Kind::index);
  }
  const DType t = coordinate_type(size);
  if (index.numel() == 0) return convert(index, t);
  Value i = index.dtype() == DType::s64 ? index : convert(index, t);
  auto bound = [&](int64_t v) { return constant(ctx.builder, i.dtype(), v); };
  Value low = compare(i, bound(negative == Negative::wraps ? -size : 0), hlo::Compare::lt);
  Value high = compare(i, bound(size - 1), hlo::Compare::gt);
  ctx.builder.check(hlo::any(or_(low, high), all_dims(i)), message);
  if (negative == Negative::wraps)
    i = select(compare(i, bound(0), hlo::Compare::lt), add(i, bound(size)), i);
  return convert(clamp(bound(0), i, bound(size - 1)), t);
}

Value true_positions(Value mask) {
  const int64_t n = mask.numel();
  const DType t = n > INT32_MAX ? DType::s64 : DType::s32;
  Value position = hlo::iota(mask.builder(), {t, {n}}, 0);
  Value key = select(flatten(mask), position, constant(mask.builder(), t, n));
  return hlo::sort({key}, 0, false, [](const Values& l, const Values& r) {
    return compare(l[0], r[0], hlo::Compare::lt);
  })[0];
}

IndexPlan plan_index(Context& ctx, const Dims& sizes, const Values& indices) {
  IndexPlan plan;
  if (indices.size() > sizes.size()) {
    throw UserError("too many indices for tensor of dimension " + std::to_string(sizes.size()),
                    UserError::Kind::index);
  }
  const Dims common = broadcast_of(indices);
  const auto batch = static_cast<int64_t>(common.size());
  DType coordinate = DType::s32;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    plan.indexed.push_back(static_cast<int64_t>(d));
    if (coordinate_type(sizes[d]) == DType::s64) coordinate = DType::s64;
  }
  if (plan.indexed.empty()) {
    plan.result = sizes;
    return plan;
  }

  Dims column = common;
  column.push_back(1);
  Values columns;
  for (int64_t d : plan.indexed) {
    Value i = bounded(ctx, indices[d], sizes[d], Negative::wraps, out_of_bounds(d, sizes[d]));
    columns.push_back(reshape(broadcast_to(convert(i, coordinate), common), column));
  }
  plan.starts = hlo::concatenate(columns, batch);

  const int64_t place =
      adjacent(plan.indexed) ? plan.indexed.front() : 0;  // whole dimensions before the index shape
  plan.slice_sizes = sizes;
  for (int64_t d : plan.indexed) plan.slice_sizes[d] = 1;
  size_t next = 0;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    if (next < plan.indexed.size() && plan.indexed[next] == d) {
      ++next;
      continue;
    }
    const auto whole = static_cast<int64_t>(plan.offset_dims.size());
    plan.offset_dims.push_back(whole < place ? whole : whole + batch);
    plan.result.push_back(sizes[d]);
  }
  plan.result.insert(plan.result.begin() + place, common.begin(), common.end());
  return plan;
}

}  // namespace torch_tpu::lower
