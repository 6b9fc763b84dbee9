// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Distances between all pairs of rows: (sum |a - b|^p)^(1/p); p = inf the largest, p = 0 how many
// differ.
namespace torch_tpu::lower {
namespace {

// The reduction of |d| over the last dimension.
Value norm(Value d, double p) {
  const Dims last = {d.rank() - 1};
  const Value a = abs(d);
  if (p == 0) return sum(convert(a != 0, a.dtype()), last);
  if (p == 1) return sum(a, last);
  if (p == 2) return sqrt(sum(a * a, last));
  if (std::isinf(p)) return maximum(max(a, last), 0);  // of nothing: 0
  const Value s = sum(power(a, full_like(a, p)), last);
  return power(s, full_like(s, 1 / p));
}

// d norm / d d, with `r` the norm (a last dimension of 1); 0 where the norm is 0 or the derivative
// unbounded, as on CPU.
Value norm_gradient(Value d, Value r, double p) {
  const Value zero = zeros_like(d), s = signum(d), a = abs(d);
  if (p == 0) return zero;
  if (p == 1) return s;
  if (std::isinf(p)) return select(a == r, s, zero);
  if (p == 2) return select(r == 0, zero, d / r);
  const Value g = s * power(a / r, full_like(d, p - 1));
  return select((r == 0) | (d == 0), zero, g);
}

// a[.., i, :] - b[.., j, :] as [.., i, j, :]; batch dimensions broadcast.
Value differences(Value a, Value b) { return unsqueeze(a, -2) - unsqueeze(b, -3); }

// x1 [.., n, m], x2 [.., k, m] -> [.., n, k]. Always by differences: the product form that
// compute_mode may ask for is only quicker, and loses digits. No columns: 0.
Value cdist_forward(Value x1, Value x2, double p, std::optional<int64_t> /*compute_mode*/) {
  return norm(differences(x1, x2), p);
}

// The gradient of x1.
Value cdist_backward(Value g, Value x1, Value x2, double p, Value dist) {
  const Value d = differences(x1, x2);
  const Value all_pairs = unsqueeze(g, -1) * norm_gradient(d, unsqueeze(dist, -1), p);
  return sum(all_pairs, {all_pairs.rank() - 2});
}

// For each (i, j) of n rows, the number of the pair {i, j} in the order (0, 1), (0, 2), .., (1, 2),
// ..; 0 where i = j.
Value pair_number(Value x, int64_t n) {
  const Type index{DType::s64, {n, n}};
  const Value i = iota(x.builder(), index, 0), j = iota(x.builder(), index, 1);
  const Value low = hlo::minimum(i, j), high = hlo::maximum(i, j);
  const Value k = low * static_cast<double>(n) - low * (low + 1) / 2 + (high - low - 1);
  return select(i == j, zeros_like(k), k);
}

// The distances of all pairs i < j of rows: a stable sort of the matrix's places by "not above the
// diagonal" puts the wanted ones first, in order.
Value pdist_forward(Value x, double p) {
  const int64_t n = x.dim(0), pairs = n * (n - 1) / 2;
  if (pairs == 0) return hlo::full(x.builder(), {x.dtype(), {0}}, 0);
  const Type index{DType::s64, {n, n}};
  const Value outside = flatten(iota(x.builder(), index, 0) >= iota(x.builder(), index, 1));
  const auto less = [](const Values& a, const Values& b) { return a[0] < b[0]; };
  const Values sorted =
      hlo::sort({convert(outside, DType::s32), flatten(norm(differences(x, x), p))}, 0, true, less);
  return slice_in_dim(sorted[1], 0, 0, pairs);
}

// Gradient and distance of each pair count for both of its rows.
Value pdist_backward(Value g, Value x, double p, Value dist) {
  const int64_t n = x.dim(0);
  if (g.numel() == 0) return zeros_like(x);
  const Value k = pair_number(x, n);
  const Type index{DType::s64, {n, n}};
  const Value diagonal = iota(x.builder(), index, 0) == iota(x.builder(), index, 1);
  const auto matrix = [&](Value v) {
    const Value full = hlo::take(v, k);
    return select(diagonal, zeros_like(full), full);
  };
  return cdist_backward(matrix(g), x, x, p, matrix(dist));
}

// Slices along `dim` whose p-norm is above maxnorm, a run-time operand, are scaled down to it.
Value renorm(Value x, Number p, int64_t dim, Value maxnorm) {
  dim = wrap(dim, x.rank());
  Dims order = all_dims(x);
  std::swap(order[0], order[dim]);
  const Value slices = transpose(convert(x, hlo::accumulate_type(x.dtype())), order);
  const Value r = norm(reshape(slices, {x.dim(dim), x.dim(dim) == 0 ? 0 : x.numel() / x.dim(dim)}),
                       p.to_double());
  const Value limit = convert(maxnorm, r.dtype());
  const Value factor = select(r > limit, limit / (r + 1e-7), ones_like(r));
  const Value by_dim = hlo::broadcast_in_dim(factor, x.dims(), {dim});
  const Value y = convert(x, hlo::accumulate_type(x.dtype()));
  return convert(y * convert(by_dim, y.dtype()), x.dtype());
}

}  // namespace

void register_distance(Registry& r) {
  r.add("aten::_cdist_forward", cdist_forward);
  r.add("aten::_cdist_backward", cdist_backward);
  r.add("aten::_pdist_forward", pdist_forward);
  r.add("aten::_pdist_backward", pdist_backward);
  r.add("aten::renorm", renorm);
}

}  // namespace torch_tpu::lower
