// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lower/dims.h"
#include "lower/factorize.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/maths.h"
#include "lower/product.h"
#include "lower/registry.h"
#include "lower/require.h"

// Dense linear algebra on the last two dimensions: factorizations and what is solved with them.
// Eigenvalues: eigen.cpp.
namespace torch_tpu::lower {
namespace {

using hlo::Compare;
using hlo::Transpose;

Dims batch_of(Value a) { return {a.dims().begin(), a.dims().end() - 2}; }
Dims with_matrix(Dims batch, int64_t m, int64_t n) {
  batch.push_back(m);
  batch.push_back(n);
  return batch;
}
// Both with their common batch dimensions.
std::pair<Value, Value> same_batch(Value a, Value b) {
  const Dims batch = hlo::broadcast_dims(batch_of(a), batch_of(b));
  return {hlo::broadcast_to(a, with_matrix(batch, a.dim(-2), a.dim(-1))),
          hlo::broadcast_to(b, with_matrix(batch, b.dim(-2), b.dim(-1)))};
}

// X with a X = b, or X a = b (not left); only the named triangle of a is read.
Value solve_with_triangle(Value a, Value b, bool left, bool lower, bool unit,
                          Transpose t = Transpose::no_transpose) {
  auto [x, y] = same_batch(a, b);
  if (y.numel() == 0) return y;
  return hlo::triangular_solve(x, y, left, lower, unit, t);
}

// Reports the first of `info` that is not 0: its number is "{0}" in `text`, its matrix "{1}".
void check_info(Context& ctx, Value info, const std::string& name, const std::string& text) {
  const std::string where = info.rank() > 0 ? ": (Batch element {1}): " : ": ";
  ctx.builder.check(first_wrong_and_place(compare(info, scalar(info, 0), Compare::ne), info),
                    name + where + text);
}

// ---- Cholesky
// --------------------------------------------------------------------------------------------------

// (L with L L^H = self, or its adjoint; info: 0, or the first order, from 1, of a leading minor
// that is not positive). Reads one triangle. Where info is not 0, L holds NaNs.
std::pair<Value, Value> cholesky_ex(Context& ctx, Value self, bool upper, bool check_errors) {
  const int64_t n = self.dim(-1);
  if (self.numel() == 0) return {self, hlo::full(ctx.builder, {DType::s32, batch_of(self)}, 0)};
  Value l = lower_triangle(hlo::cholesky(upper ? adjoint(self) : self, true));
  Value on_diagonal = compare(identity_like(l), hlo::zeros_like(l), Compare::ne);
  Value positive =
      compare(hlo::real(l), hlo::zeros_like(hlo::real(l)), Compare::gt);  // false for NaN
  Value i = hlo::iota(ctx.builder, {DType::s32, l.dims()}, l.rank() - 1);
  Value first =
      hlo::min(select(and_(on_diagonal, not_(positive)), i, scalar(i, static_cast<double>(n))),
               {l.rank() - 2, l.rank() - 1});
  Value info = select(compare(first, scalar(first, static_cast<double>(n)), Compare::lt),
                      first + scalar(first, 1), scalar(first, 0));
  if (check_errors) {
    check_info(
        ctx, info, "LinAlgError: linalg.cholesky_ex",
        "The factorization could not be completed because the input is not positive-definite "
        "(the leading minor of order {0} is not positive-definite).");
  }
  return {upper ? adjoint(l) : l, info};
}

// X with A X = self, A = L L^H (U^H U if upper) given by its factor.
Value cholesky_solve_helper(Value self, Value a, bool upper) {
  const Transpose adjoint_of = Transpose::adjoint, plain = Transpose::no_transpose;
  Value y = solve_with_triangle(a, self, true, !upper, false, upper ? adjoint_of : plain);
  return solve_with_triangle(a, y, true, !upper, false, upper ? plain : adjoint_of);
}
Value cholesky_inverse(Value self, bool upper) {
  return cholesky_solve_helper(identity_like(self), self, upper);
}

// ---- LU
// --------------------------------------------------------------------------------------------------------

std::tuple<Value, Value, Value> lu_factor_ex(Context& ctx, Value a, bool pivot, bool check_errors) {
  if (!pivot)
    throw UserError("linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  const Lu f = lu_factor(a);
  if (check_errors) {
    check_info(ctx, f.info, "RuntimeError: torch.linalg.lu_factor_ex",
               "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If "
               "you still want to perform the factorization, consider calling linalg.lu(A, pivot) "
               "or linalg.lu_factor_ex(A, pivot)");
  }
  return {f.lu, f.pivots, f.info};
}

// P with A = P L U: ones at [permutation[i], i].
Value permutation_matrix(Value permutation, DType t) {
  Dims dims = permutation.dims();
  const int64_t m = dims.back();
  dims.push_back(m);
  Dims where = all_dims(permutation);
  where.back() += 1;  // permutation runs along the columns
  Value source = hlo::broadcast_in_dim(permutation, dims, where);
  Value rows =
      hlo::iota(permutation.builder(), {DType::s32, dims}, static_cast<int64_t>(dims.size()) - 2);
  return convert(convert(compare(source, rows, Compare::eq), hlo::real_type(t)), t);
}

// L [m, k] and U [k, n], k = min(m, n).
std::pair<Value, Value> unpacked(Value lu) {
  const int64_t m = lu.dim(-2), n = lu.dim(-1), k = std::min(m, n), r = lu.rank();
  Value l = lower_triangle(slice_in_dim(lu, r - 1, 0, k), -1);
  return {l + identity_like(l), upper_triangle(slice_in_dim(lu, r - 2, 0, k))};
}

Value nothing_like(Value a) { return hlo::full(a.builder(), {a.dtype(), {0}}, 0); }

std::tuple<Value, Value, Value> lu_unpack(Value lu, Value pivots, bool unpack_data,
                                          bool unpack_pivots) {
  Value p = nothing_like(lu), l = nothing_like(lu), u = nothing_like(lu);
  Dims one_each = batch_of(lu);
  one_each.push_back(pivots.dim(-1));
  pivots = hlo::broadcast_to(pivots, one_each);
  if (unpack_pivots) p = permutation_matrix(pivots_to_permutation(pivots, lu.dim(-2)), lu.dtype());
  if (unpack_data) std::tie(l, u) = unpacked(lu);
  return {p, l, u};
}
std::tuple<Value, Value, Value> linalg_lu(Value a, bool pivot) {
  if (!pivot) throw UserError("linalg.lu: LU without pivoting is not implemented on the CPU");
  const Lu f = lu_factor(a);
  return lu_unpack(f.lu, f.pivots, true, true);
}

// X with A X = B (X A = B if not left), A or its adjoint given by LU and pivots.
Value lu_solve(Value lu, Value pivots, Value b, bool left, bool adjoint_a) {
  if (!left) return adjoint(lu_solve(lu, pivots, adjoint(b), true, !adjoint_a));
  const int64_t n = lu.dim(-1);
  Value p = permutation_matrix(pivots_to_permutation(pivots, n), lu.dtype());
  auto [perm, rhs] = same_batch(p, b);
  if (rhs.numel() == 0) return rhs;
  if (!adjoint_a) {
    Value y = solve_with_triangle(lu, matmul(transposed(perm), rhs), true, true, true);
    return solve_with_triangle(lu, y, true, false, false);
  }
  Value y = solve_with_triangle(lu, rhs, true, false, false, Transpose::adjoint);
  y = solve_with_triangle(lu, y, true, true, true, Transpose::adjoint);
  return matmul(perm, y);
}

// (A^-1, info of A's LU)
std::pair<Value, Value> inv_ex(Context& ctx, Value a, bool check_errors) {
  const Lu f = lu_factor(a);
  if (check_errors) {
    check_info(ctx, f.info, "LinAlgError: linalg.inv_ex",
               "The diagonal element {0} is zero, the inversion could not be completed because the "
               "input matrix is singular.");
  }
  return {lu_solve(f.lu, f.pivots, identity_like(a), true, false), f.info};
}

// ---- triangles
// -------------------------------------------------------------------------------------------------

Value solve_triangular(Value self, Value b, bool upper, bool left, bool unitriangular) {
  return solve_with_triangle(self, b, left, !upper, unitriangular);
}
// (X with A X = self, or A^T X = self; A)
std::pair<Value, Value> triangular_solve(Value self, Value a, bool upper, bool transpose_a,
                                         bool unitriangular) {
  auto [x, y] = same_batch(a, self);
  Value out = solve_with_triangle(x, y, true, !upper, unitriangular,
                                  transpose_a ? Transpose::transpose : Transpose::no_transpose);
  return {out, x};
}

// ---- QR
// --------------------------------------------------------------------------------------------------------

// a with n columns: cut, or zeros added.
Value with_columns(Value a, int64_t n) {
  if (n <= a.dim(-1)) return slice_in_dim(a, a.rank() - 1, 0, n);
  Dims none(a.rank(), 0), high(a.rank(), 0);
  high.back() = n - a.dim(-1);
  return hlo::pad(a, hlo::constant(a.builder(), a.dtype(), 0), none, high, none);
}

std::pair<Value, Value> qr(Value a, std::string mode) {
  if (mode != "reduced" && mode != "complete" && mode != "r") {
    throw UserError("qr received unrecognized mode '" + mode +
                    "' but expected one of 'reduced' (default), 'r', or 'complete'");
  }
  const int64_t m = a.dim(-2), k = std::min(m, a.dim(-1)), width = mode == "complete" ? m : k;
  auto [h, tau] = geqrf(a);
  Value r = h;
  if (width > k) {
    r = upper_triangle(h);
  } else {
    r = upper_triangle(slice_in_dim(h, h.rank() - 2, 0, k));
  }
  if (mode == "r") return {nothing_like(a), r};
  return {householder_product(with_columns(h, width), tau), r};
}

// Q C, Q^H C, C Q or C Q^H, Q the product of input's reflections (square).
Value ormqr(Value input, Value tau, Value other, bool left, bool transpose_q) {
  const int64_t m = input.dim(-2);
  auto [h, c] = same_batch(with_columns(input, m), other);
  Value q = householder_product(h, hlo::broadcast_to(tau, [&] {
                                  Dims d = batch_of(h);
                                  d.push_back(tau.dim(-1));
                                  return d;
                                }()));
  if (transpose_q) q = adjoint(q);
  return left ? matmul(q, c) : matmul(c, q);
}

// ---- others
// ----------------------------------------------------------------------------------------------------

// Cross products of the vectors of three along `dim`.
Value cross(Value self, Value other, int64_t dim) {
  auto [a, b] = hlo::broadcast(self, other);
  const int64_t d = wrap(dim, a.rank());
  auto part = [&](Value x, int64_t i) { return slice_in_dim(x, d, i, i + 1); };
  auto term = [&](int64_t i, int64_t j) {
    return part(a, i) * part(b, j) - part(a, j) * part(b, i);
  };
  return hlo::concatenate({term(1, 2), term(2, 0), term(0, 1)}, d);
}

// exp(A) = (exp(A / 2^s))^(2^s), s the least with |A / 2^s|_1 <= 1; the inner one by 18 terms of
// the series (1 / 19! < 1e-17).
Value matrix_exp(Value self) {
  if (self.numel() == 0) return self;
  const DType t = hlo::accumulate_type(self.dtype());
  Value a = convert(self, t);
  Value norm = hlo::max(sum(hlo::abs(a), {a.rank() - 2}), {a.rank() - 2});  // [batch]
  Value s = convert(maximum(hlo::ceil(log2(maximum(norm, 1e-30))), 0), DType::s32);
  s = minimum(s, 1024);
  Value down = power(hlo::full_like(norm, 2), -convert(s, norm.dtype()));
  Dims keep = batch_of(a);
  keep.push_back(1), keep.push_back(1);
  a = a * hlo::broadcast_to(convert(reshape(down, keep), t), a.dims());
  Value eye = identity_like(a), e = eye;
  for (int k = 18; k > 0; --k) e = eye + matmul(a, e) / static_cast<double>(k);
  Value most = hlo::max(s, all_dims(s));
  Value squarings = hlo::broadcast_to(reshape(s, keep), a.dims());
  e = hlo::while_(
      {hlo::constant(a.builder(), DType::s32, 0), e, most, squarings},
      [](const Values& v) { return compare(v[0], v[2], Compare::lt); },
      [](const Values& v) {
        Value squared = matmul(v[1], v[1]);
        Value wanted = compare(hlo::broadcast_to(v[0], v[3].dims()), v[3], Compare::lt);
        return Values{v[0] + scalar(v[0], 1), select(wanted, squared, v[1]), v[2], v[3]};
      })[1];
  return convert(e, self.dtype());
}

}  // namespace

void register_linalg(Registry& r) {
  r.add("aten::linalg_cholesky_ex", cholesky_ex);
  r.add("aten::cholesky", [](Context& ctx, Value self, bool upper) {
    return cholesky_ex(ctx, self, upper, true).first;
  });
  r.add("aten::_cholesky_solve_helper", cholesky_solve_helper);
  r.add("aten::cholesky_inverse", cholesky_inverse);
  r.add("aten::linalg_lu_factor_ex", lu_factor_ex);
  r.add("aten::linalg_lu", linalg_lu);
  r.add("aten::lu_unpack", lu_unpack);
  r.add("aten::linalg_lu_solve", lu_solve);
  r.add("aten::linalg_inv_ex", inv_ex);
  r.add("aten::linalg_solve_triangular", solve_triangular);
  r.add("aten::triangular_solve", triangular_solve);
  r.add("aten::geqrf", [](Value a) { return geqrf(a); });
  r.add("aten::linalg_householder_product", householder_product);
  r.add("aten::linalg_qr", qr);
  r.add("aten::ormqr", ormqr);
  r.add("aten::linalg_cross", cross);
  r.add("aten::linalg_matrix_exp", matrix_exp);
}

}  // namespace torch_tpu::lower
