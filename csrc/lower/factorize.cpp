// SPDX-License-Identifier: Apache-2.0
#include "lower/factorize.h"

#include <algorithm>

#include "lower/dims.h"
#include "lower/maths.h"
#include "lower/product.h"

namespace torch_tpu::lower {
namespace {

using hlo::Compare;

Value s32(Value like, int64_t v) { return hlo::constant(like.builder(), DType::s32, v); }
Value row_index(Value a) { return hlo::iota(a.builder(), {DType::s32, a.dims()}, a.rank() - 2); }
Value column_index(Value a) { return hlo::iota(a.builder(), {DType::s32, a.dims()}, a.rank() - 1); }

// Batch dimensions as one: [b, m, n].
Value flat_batch(Value a, int64_t trailing) {
  if (a.rank() < trailing) throw hlo::Error("factorization of " + a.type().str() + ": no matrix");
  Dims dims(a.dims().end() - trailing, a.dims().end());
  dims.insert(dims.begin(), a.numel() == 0
                                ? hlo::numel(Dims(a.dims().begin(), a.dims().end() - trailing))
                                : a.numel() / hlo::numel(dims));
  return reshape(a, dims);
}
// x [b, ..] with like's batch dimensions (those before its last two).
Value with_batch_of(Value x, Value like) {
  Dims dims(like.dims().begin(), like.dims().end() - 2);
  dims.insert(dims.end(), x.dims().begin() + 1, x.dims().end());
  return reshape(x, dims);
}

// |re| + |im|, what LAPACK chooses pivots by.
Value magnitude(Value x) {
  return hlo::is_complex(x.dtype()) ? hlo::abs(hlo::real(x)) + hlo::abs(hlo::imag(x)) : hlo::abs(x);
}

// x [b, 1, n] or [b, m, 1] over all of a.
Value spread(Value x, Value a) { return hlo::broadcast_to(x, a.dims()); }
Value mask_sum(Value mask, Value x, int64_t dim) {
  return sum(select(mask, x, hlo::zeros_like(x)), {dim}, hlo::keep_dims);
}

}  // namespace

Value transposed(Value a) {
  Dims order = all_dims(a);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(a, order);
}
Value adjoint(Value a) { return conj(transposed(a)); }

Value lower_triangle(Value a, int64_t k) {
  return select(compare(column_index(a) - row_index(a),
                        hlo::full_like(column_index(a), static_cast<double>(k)), Compare::le),
                a, hlo::zeros_like(a));
}
Value upper_triangle(Value a, int64_t k) {
  return select(compare(column_index(a) - row_index(a),
                        hlo::full_like(column_index(a), static_cast<double>(k)), Compare::ge),
                a, hlo::zeros_like(a));
}
Value identity_like(Value a) {
  return convert(
      convert(compare(row_index(a), column_index(a), Compare::eq), hlo::real_type(a.dtype())),
      a.dtype());
}
Value matmul(Value a, Value b) { return hlo::dot(a, b, a.dtype(), hlo::Precision::highest); }

// One column a step, over the whole batch: find the pivot, exchange two rows, subtract the outer
// product.
Lu lu_factor(Value input) {
  Value a = flat_batch(input, 2);
  const int64_t b = a.dim(0), m = a.dim(1), n = a.dim(2), steps = std::min(m, n);
  hlo::Builder& builder = a.builder();
  Value pivots = hlo::full(builder, {DType::s32, {b, steps}}, 0),
        info = hlo::full(builder, {DType::s32, {b}}, 0);
  if (a.numel() > 0) {
    Values out = hlo::while_(
        {s32(a, 0), a, pivots, info},
        [&](const Values& v) { return compare(v[0], s32(v[0], steps), Compare::lt); },
        [&](const Values& v) {
          Value k = v[0], x = v[1];
          Value rows = row_index(x), columns = column_index(x),
                at = spread(reshape(k, {1, 1, 1}), x);
          Value column = hlo::dynamic_slice(x, {s32(k, 0), s32(k, 0), k}, {b, m, 1});
          Value row_of = hlo::iota(builder, {DType::s32, column.dims()}, 1),
                k_of = spread(reshape(k, {1, 1, 1}), column);
          Value candidate = select(compare(row_of, k_of, Compare::ge), magnitude(column),
                                   hlo::full_like(magnitude(column), -1));
          Value best = spread(hlo::max(candidate, {1}, hlo::keep_dims), candidate);
          Value p = hlo::min(select(compare(candidate, best, Compare::eq), row_of, s32(k, m)), {1},
                             hlo::keep_dims);  // [b, 1, 1]
          p = select(compare(p, s32(k, m), Compare::lt), p,
                     spread(reshape(k, {1, 1, 1}), p));  // only NaNs: stay

          Value is_k = compare(rows, at, Compare::eq),
                is_p = compare(rows, spread(p, x), Compare::eq);
          Value row_k = hlo::dynamic_slice(x, {s32(k, 0), k, s32(k, 0)}, {b, 1, n}),
                row_p = mask_sum(is_p, x, 1);
          x = select(is_k, spread(row_p, x), select(is_p, spread(row_k, x), x));

          Value pivot = hlo::dynamic_slice(row_p, {s32(k, 0), s32(k, 0), k}, {b, 1, 1});
          Value singular = compare(pivot, hlo::zeros_like(pivot), Compare::eq);
          Value below = compare(rows, at, Compare::gt);
          Value l = hlo::dynamic_slice(x, {s32(k, 0), s32(k, 0), k}, {b, m, 1});
          l = select(hlo::broadcast_to(singular, l.dims()), l,
                     hlo::divide(l, hlo::broadcast_to(pivot, l.dims())));
          Value right = compare(columns, at, Compare::gt);
          Value updated = x - spread(l, x) * spread(row_p, x);
          x = select(and_(below, right), updated,
                     select(and_(below, compare(columns, at, Compare::eq)), spread(l, x), x));

          Value pivot_row = reshape(p, {b, 1}) + s32(k, 1);
          Value piv = hlo::dynamic_update_slice(v[2], pivot_row, {s32(k, 0), k});
          Value first =
              and_(reshape(singular, {b}), compare(v[3], hlo::zeros_like(v[3]), Compare::eq));
          Value inf = select(first, hlo::broadcast_to(k + s32(k, 1), {b}), v[3]);
          return Values{k + s32(k, 1), x, piv, inf};
        });
    a = out[1], pivots = out[2], info = out[3];
  }
  Dims batch(input.dims().begin(), input.dims().end() - 2);
  return {reshape(a, input.dims()), with_batch_of(pivots, input), reshape(info, batch)};
}

Value pivots_to_permutation(Value pivots, int64_t m) {
  Value p = flat_batch(pivots, 1);
  const int64_t b = p.dim(0), steps = p.dim(1);
  Value place = hlo::iota(p.builder(), {DType::s32, {b, m}}, 1);
  Value start = place;
  if (b > 0 && steps > 0) {
    place = hlo::while_(
        {s32(p, 0), start, convert(p, DType::s32), start},
        [&](const Values& v) { return compare(v[0], s32(v[0], steps), Compare::lt); },
        [&](const Values& v) {
          Value k = v[0], x = v[1], i = v[3];
          Value other = hlo::dynamic_slice(v[2], {s32(k, 0), k}, {b, 1}) - s32(k, 1);
          Value is_other = compare(i, hlo::broadcast_to(other, i.dims()), Compare::eq);
          Value is_k = compare(i, hlo::broadcast_to(reshape(k, {1, 1}), i.dims()), Compare::eq);
          Value at_k = hlo::broadcast_to(hlo::dynamic_slice(x, {s32(k, 0), k}, {b, 1}), i.dims());
          Value at_other = hlo::broadcast_to(mask_sum(is_other, x, 1), i.dims());
          return Values{k + s32(k, 1), select(is_k, at_other, select(is_other, at_k, x)), v[2], i};
        })[1];
  }
  Dims dims = pivots.dims();
  dims.back() = m;
  return reshape(place, dims);
}

std::pair<Value, Value> geqrf(Value input) {
  Value a = flat_batch(input, 2);
  const int64_t b = a.dim(0), m = a.dim(1), n = a.dim(2), steps = std::min(m, n);
  Value tau = hlo::full(a.builder(), {a.dtype(), {b, steps}}, 0);
  if (a.numel() > 0) {
    Values out = hlo::while_(
        {s32(a, 0), a, tau},
        [&](const Values& v) { return compare(v[0], s32(v[0], steps), Compare::lt); },
        [&](const Values& v) {
          Value k = v[0], x = v[1], zero = s32(v[0], 0);
          Value column = hlo::dynamic_slice(x, {zero, zero, k}, {b, m, 1});
          Value row_of = hlo::iota(x.builder(), {DType::s32, column.dims()}, 1),
                k_of = hlo::broadcast_to(reshape(k, {1, 1, 1}), column.dims());
          Value is_below = compare(row_of, k_of, Compare::gt),
                is_k = compare(row_of, k_of, Compare::eq);
          Value alpha = hlo::dynamic_slice(column, {zero, k, zero}, {b, 1, 1});
          Value size = hlo::abs(select(is_below, column, hlo::zeros_like(column)));
          // scaled by the greatest entry: squares neither overflow nor vanish
          Value top = hlo::maximum(hlo::max(size, {1}, hlo::keep_dims), hlo::abs(alpha));
          top = select(compare(top, hlo::zeros_like(top), Compare::eq), hlo::ones_like(top), top);
          Value part = size / hlo::broadcast_to(top, size.dims()), head = hlo::abs(alpha) / top;
          Value tail = sum(part * part, {1}, hlo::keep_dims);
          Value norm = top * sqrt(tail + head * head);
          Value re = hlo::real(alpha);
          Value beta = select(compare(re, hlo::zeros_like(re), Compare::lt), norm,
                              -norm);  // real, away from alpha
          Value idle = compare(tail, hlo::zeros_like(tail), Compare::eq);
          if (hlo::is_complex(x.dtype()))
            idle = and_(idle, compare(hlo::imag(alpha), hlo::zeros_like(re), Compare::eq));
          beta = select(idle, hlo::ones_like(beta), beta);
          Value beta_c = convert(beta, x.dtype());
          Value t = select(idle, hlo::zeros_like(alpha), (beta_c - alpha) / beta_c);
          Value scale = alpha - beta_c;
          scale = select(compare(scale, hlo::zeros_like(scale), Compare::eq), hlo::ones_like(scale),
                         scale);
          Value v_column = select(is_below, column / hlo::broadcast_to(scale, column.dims()),
                                  hlo::zeros_like(column));
          v_column =
              select(hlo::broadcast_to(idle, column.dims()), hlo::zeros_like(column), v_column);
          v_column = select(is_k, hlo::ones_like(column), v_column);

          // x = H^H x for the columns from k on
          Value w = matmul(adjoint(v_column), x);  // [b, 1, n]
          Value updated = x - spread(conj(t), x) * spread(v_column, x) * spread(w, x);
          Value columns = column_index(x), at = spread(reshape(k, {1, 1, 1}), x);
          x = select(compare(columns, at, Compare::gt), updated, x);
          Value stored = select(
              is_below, v_column,
              select(is_k, hlo::broadcast_to(select(idle, alpha, beta_c), column.dims()), column));
          x = select(compare(columns, at, Compare::eq), spread(stored, x), x);
          return Values{k + s32(k, 1), x,
                        hlo::dynamic_update_slice(v[2], reshape(t, {b, 1}), {zero, k})};
        });
    a = out[1], tau = out[2];
  }
  return {reshape(a, input.dims()), with_batch_of(tau, input)};
}

Value householder_product(Value input, Value tau_input) {
  Value a = flat_batch(input, 2), tau = flat_batch(tau_input, 1);
  const int64_t b = a.dim(0), m = a.dim(1), steps = tau.dim(1);
  Value q = identity_like(a);
  if (a.numel() > 0 && steps > 0) {
    q = hlo::while_(
        {s32(a, steps - 1), q, a, tau},
        [&](const Values& v) { return compare(v[0], s32(v[0], 0), Compare::ge); },
        [&](const Values& v) {
          Value k = v[0], zero = s32(v[0], 0);
          Value column = hlo::dynamic_slice(v[2], {zero, zero, k}, {b, m, 1});
          Value row_of = hlo::iota(a.builder(), {DType::s32, column.dims()}, 1),
                k_of = hlo::broadcast_to(reshape(k, {1, 1, 1}), column.dims());
          column = select(compare(row_of, k_of, Compare::gt), column, hlo::zeros_like(column));
          column = select(compare(row_of, k_of, Compare::eq), hlo::ones_like(column), column);
          Value t = hlo::dynamic_slice(v[3], {zero, k}, {b, 1});
          Value w = matmul(adjoint(column), v[1]);
          Value next =
              v[1] - spread(reshape(t, {b, 1, 1}), v[1]) * spread(column, v[1]) * spread(w, v[1]);
          return Values{k - s32(k, 1), next, v[2], v[3]};
        })[1];
  }
  return reshape(q, input.dims());
}

}  // namespace torch_tpu::lower
