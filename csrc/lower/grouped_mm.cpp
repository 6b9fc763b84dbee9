// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/product.h"
#include "lower/registry.h"

// Matrix products of groups that lie one after the other along one dimension, their ends known at
// run time: mixtures of experts in a graph. Eager code uses PyTorch's composition, which reads the
// ends on the host.
namespace torch_tpu::lower {
namespace {

using hlo::Compare;

constexpr int64_t kTile = 128;  // positions of one group that a step takes

Value s32(Value like, int64_t v) { return hlo::constant(like.builder(), DType::s32, v); }

// Runs `step` over tiles of groups' positions [0, length): (out, group, first position of the tile,
// which of its positions are the group's [tile]) -> out. A tile lies within [0, length).
using Step = std::function<Value(Value, Value, Value, Value)>;
Value over_groups(Value out, Value ends, int64_t length, int64_t tile, const Step& step) {
  const int64_t groups = ends.dim(0);
  return hlo::while_(
      {s32(out, 0), s32(out, 0), out, ends},
      [&](const Values& v) { return compare(v[0], s32(v[0], groups), Compare::lt); },
      [&](const Values& v) -> Values {
        const Value group = v[0], at = v[1];
        Value end = reshape(hlo::dynamic_slice(v[3], {group}, {1}), {});
        end = hlo::minimum(hlo::maximum(end, at), s32(at, length));
        const Value first = hlo::minimum(at, s32(at, length - tile));
        const Value next = hlo::minimum(end, at + s32(at, tile));
        const Value place =
            hlo::broadcast_to(first, {tile}) + hlo::iota(at.builder(), {DType::s32, {tile}}, 0);
        const Value mine = and_(compare(place, hlo::broadcast_to(at, {tile}), Compare::ge),
                                compare(place, hlo::broadcast_to(next, {tile}), Compare::lt));
        const Value ended = compare(next, end, Compare::ge);
        return {group + convert(ended, DType::s32), next, step(v[2], group, first, mine), v[3]};
      })[2];
}

// out[i] = a[i] @ b[g], i in group g of a's rows:  a [m, k], b [g, k, n], out [m, n]
Value rows_by_group(Context& ctx, Value a, Value b, Value ends, DType acc) {
  const int64_t m = a.dim(0), k = a.dim(1), n = b.dim(2), tile = std::min(m, kTile);
  const Value out = hlo::full(ctx.builder, {acc, {m, n}}, 0);
  return over_groups(out, ends, m, tile, [&](Value sum, Value g, Value first, Value mine) {
    const Value zero = s32(first, 0);
    const Value rows = hlo::dynamic_slice(a, {first, zero}, {tile, k});
    const Value matrix = reshape(hlo::dynamic_slice(b, {g, zero, zero}, {1, k, n}), {k, n});
    const Value product = hlo::dot(rows, matrix, acc, precision(ctx, a.dtype()));
    const Value old = hlo::dynamic_slice(sum, {first, zero}, {tile, n});
    const Value is_mine = hlo::broadcast_in_dim(mine, {tile, n}, {0});
    return hlo::dynamic_update_slice(sum, select(is_mine, product, old), {first, zero});
  });
}

// out[g] = a[:, group g] @ b[group g, :]:  a [m, k], b [k, n], out [g, m, n]
Value sums_by_group(Context& ctx, Value a, Value b, Value ends, DType acc) {
  const int64_t m = a.dim(0), k = a.dim(1), n = b.dim(1), tile = std::min(k, kTile);
  const Value out = hlo::full(ctx.builder, {acc, {ends.dim(0), m, n}}, 0);
  return over_groups(out, ends, k, tile, [&](Value sum, Value g, Value first, Value mine) {
    const Value zero = s32(first, 0);
    // Others' positions are zero on both sides: 0 times their inf would be NaN.
    const auto own = [&](Value x, int64_t dim) {
      return select(hlo::broadcast_in_dim(mine, x.dims(), {dim}), x, hlo::zeros_like(x));
    };
    const Value columns = own(hlo::dynamic_slice(a, {zero, first}, {m, tile}), 1);
    const Value rows = own(hlo::dynamic_slice(b, {first, zero}, {tile, n}), 0);
    const Value product = hlo::dot(columns, rows, acc, precision(ctx, a.dtype()));
    const Value old = hlo::dynamic_slice(sum, {g, zero, zero}, {1, m, n});
    return hlo::dynamic_update_slice(sum, old + reshape(product, {1, m, n}), {g, zero, zero});
  });
}

Value transposed_matrices(Value x) {
  Dims order = all_dims(x);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

// The products of groups, in a's dtype; summed in f32 for 16-bit operands.
//   offs  s32 [groups]: where each group ends; None if there is no grouped dimension
//   a [m, k], b [g, k, n]     groups of a's rows         [m, n]
//   a [m, k], b [k, n]        groups of the sum          [g, m, n]
//   a [g, m, k], b [k, n]     groups of b's columns      [m, n]
//   a [g, m, k], b [g, k, n]  one product a group        [g, m, n]
// Rows and columns after the last end, which PyTorch leaves undefined, are 0. `bias` is not
// implemented by PyTorch either.
Value grouped_mm(Context& ctx, Value a, Value b, std::optional<Value> offs,
                 std::optional<Value> bias, std::optional<DType> out_dtype) {
  if (bias) throw UserError("Bias not supported yet");
  if (out_dtype && *out_dtype != a.dtype())
    throw UserError("Grouped gemm output dtype must match `mat_a` dtype");
  const DType t = a.dtype(), acc = hlo::accumulate_type(t);
  const bool flat_a = a.rank() == 2, flat_b = b.rank() == 2;
  if (offs.has_value() != (flat_a || flat_b)) {
    throw UserError(
        "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
  }
  if (!flat_a && !flat_b) return convert(hlo::dot(a, b, acc, precision(ctx, a.dtype())), t);
  const Value ends = convert(*offs, DType::s32);
  Dims none;
  if (flat_a && flat_b) {
    none = {ends.dim(0), a.dim(0), b.dim(1)};
  } else {
    none = {a.dim(-2), b.dim(-1)};
  }
  if (a.numel() == 0 || b.numel() == 0) return hlo::full(ctx.builder, {t, none}, 0);
  if (flat_a && flat_b) return convert(sums_by_group(ctx, a, b, ends, acc), t);
  if (flat_a) return convert(rows_by_group(ctx, a, b, ends, acc), t);
  const Value turned =
      rows_by_group(ctx, transposed_matrices(b), transposed_matrices(a), ends, acc);
  return convert(transposed_matrices(turned), t);
}

}  // namespace

void register_grouped_mm(Registry& r) { r.add("aten::_grouped_mm", grouped_mm); }

}  // namespace torch_tpu::lower
