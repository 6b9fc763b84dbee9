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
                   : "index {0} is out of bounds for dimension " + std::to_string(dim) +
                         " with size " + std::to_string(size);
}

std::string out_of_bounds_at_run(int64_t dim, int64_t size) {
  return "RuntimeError: index {0} is out of bounds for dimension " + std::to_string(dim) +
         " with size " + std::to_string(size);
}

namespace {

// Reduces to the first elements of `columns` where the first column is not 0.
Values first_nonzero(const Values& columns) {
  const Values zeros(columns.size(), constant(columns[0].builder(), DType::s64, 0));
  return hlo::reduce(columns, zeros, all_dims(columns[0]), [](const Values& l, const Values& r) {
    Value keep = compare(l[0], hlo::zeros_like(l[0]), hlo::Compare::ne);
    Values first;
    for (size_t i = 0; i < l.size(); ++i) first.push_back(select(keep, l[i], r[i]));
    return first;
  });
}

}  // namespace

Value first_wrong(Value wrong, Value values) {
  Value v = convert(values, DType::s64);
  // XLA:CPU vectorises a minimum of 32-bit numbers, and a second, small program step costs more
  // than that only where there is little to reduce.
  constexpr int64_t kMany = 1 << 14;
  const int64_t n = v.numel();
  if (n >= kMany && n < INT32_MAX) {
    Value place = hlo::iota(v.builder(), {DType::s32, {n}}, 0),
          none = constant(v.builder(), DType::s32, n);
    Value first = hlo::min(select(flatten(wrong), place, broadcast_to(none, {n})), {0});
    Value found = hlo::take(v, hlo::minimum(first, constant(v.builder(), DType::s32, n - 1)));
    return select(compare(first, none, hlo::Compare::lt), found, hlo::zeros_like(found));
  }
  return first_nonzero({select(wrong, v, hlo::zeros_like(v))})[0];
}

Value first_wrong_and_place(Value wrong, Value values) {
  Value v = flatten(convert(values, DType::s64));
  Value place = hlo::iota(v.builder(), v.type(), 0);
  const Values first = first_nonzero({select(flatten(wrong), v, hlo::zeros_like(v)), place});
  return hlo::concatenate({reshape(first[0], {1}), reshape(first[1], {1})}, 0);
}

Value bounded(Context& ctx, Value index, int64_t size, Negative negative,
              const std::string& message) {
  if (size == 0 && index.numel() > 0) {
    constexpr std::string_view runtime_error = "RuntimeError: ";
    if (message.starts_with(runtime_error)) {
      std::string text = message.substr(runtime_error.size());
      // Any index will do.
      if (const size_t at = text.find("{0}"); at != text.npos) text.replace(at, 3, "0");
      throw UserError(text);
    }
    throw UserError(message, UserError::Kind::index);
  }
  const DType t = coordinate_type(size);
  if (index.numel() == 0) return convert(index, t);
  Value i = index.dtype() == DType::s64 ? index : convert(index, t);
  auto bound = [&](int64_t v) { return constant(ctx.builder, i.dtype(), v); };
  Value low = compare(i, bound(negative == Negative::wraps ? -size : 0), hlo::Compare::lt);
  Value high = compare(i, bound(size - 1), hlo::Compare::gt);
  ctx.builder.check(first_wrong(or_(low, high), i), message);
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
    // CPU moves what is indexed to the front before it counts the dimensions.
    const auto nth = static_cast<int64_t>(columns.size());
    Value i = bounded(ctx, indices[d], sizes[d], Negative::wraps, out_of_bounds(nth, sizes[d]));
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
