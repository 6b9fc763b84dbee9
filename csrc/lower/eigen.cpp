// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "lower/dims.h"
#include "lower/factorize.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/product.h"
#include "lower/registry.h"
#include "lower/require.h"
#include "lower/sort.h"

// Singular values and the eigenvalues of Hermitian matrices by Jacobi rotations: as accurate as the
// matrix allows, and all pairs of columns of a round at once. Vectors are unique up to a phase;
// ours need not be LAPACK's.
namespace torch_tpu::lower {
namespace {

using hlo::Compare;

constexpr int kMaxSweeps = 30;

double epsilon(DType t) { return hlo::real_type(t) == DType::f64 ? 0x1p-52 : 0x1p-23; }
Value s32(Value like, int64_t v) { return hlo::constant(like.builder(), DType::s32, v); }

Value columns(Value x, int64_t from, int64_t to) { return slice_in_dim(x, 2, from, to); }
Value side_by_side(Value a, Value b) { return hlo::concatenate({a, b}, 2); }

// Round robin: column 0 of the left half stays, the others go round, so that every two columns meet
// once in 2 h - 1 rounds.
std::pair<Value, Value> rotated(Value left, Value right) {
  const int64_t h = left.dim(2);
  if (h == 1) return {left, right};
  Value next_left = side_by_side(columns(left, 0, 1), columns(right, 0, 1));
  if (h > 2) next_left = side_by_side(next_left, columns(left, 1, h - 1));
  return {next_left, side_by_side(columns(right, 1, h), columns(left, h - 1, h))};
}

struct Orthogonal {
  Value columns;  // a v: orthogonal columns
  Value v;        // unitary
};

// One-sided Jacobi (Hestenes): right-multiplies a [b, m, n], n even, by rotations until its columns
// are orthogonal.
Orthogonal orthogonalized(Value a) {
  const int64_t n = a.dim(2), h = n / 2;
  const DType t = a.dtype(), r = hlo::real_type(t);
  Value v = identity_like(hlo::full(a.builder(), {t, {a.dim(0), n, n}}, 0));
  Value g = hlo::concatenate({a, v}, 1);  // what is done to a's columns is done to v's
  const int64_t m = a.dim(1);
  Value zero = hlo::constant(a.builder(), r, 0);
  Values out = hlo::while_(
      {s32(a, 0), s32(a, 0), columns(g, 0, h), columns(g, h, n), zero,
       hlo::constant(a.builder(), r, 1)},
      [&](const Values& x) {  // sweeps done, round, left, right, greatest cosine of this sweep, of
                              // the last sweep
        return and_(compare(x[0], s32(x[0], kMaxSweeps), Compare::lt), x[5] > epsilon(r));
      },
      [&](const Values& x) {
        Value left = x[2], right = x[3];
        Value p = slice_in_dim(left, 1, 0, m), q = slice_in_dim(right, 1, 0, m);
        auto norm2 = [](Value y) {
          return sum(
              hlo::is_complex(y.dtype()) ? square(hlo::real(y)) + square(hlo::imag(y)) : y * y, {1},
              hlo::keep_dims);
        };
        Value alpha = norm2(p), beta = norm2(q), gamma = sum(conj(p) * q, {1}, hlo::keep_dims),
              size = hlo::abs(gamma);
        Value scale = sqrt(alpha) * sqrt(beta);
        Value idle = or_(compare(size, hlo::zeros_like(size), Compare::eq), not_(is_finite(size)));
        Value safe = select(idle, hlo::ones_like(size), size);
        Value zeta = (beta - alpha) / (safe * 2.0);
        Value tangent = 1.0 / (hlo::abs(zeta) + sqrt(zeta * zeta + 1.0));
        tangent = select(compare(zeta, hlo::zeros_like(zeta), Compare::lt), -tangent, tangent);
        tangent = select(idle, hlo::zeros_like(tangent), tangent);
        Value cosine = rsqrt(tangent * tangent + 1.0), sine = cosine * tangent;
        Value phase = select(idle, hlo::ones_like(gamma), gamma / convert(safe, t));
        Value turned = right * hlo::broadcast_to(conj(phase), right.dims());
        Value c = hlo::broadcast_to(convert(cosine, t), left.dims()),
              s = hlo::broadcast_to(convert(sine, t), left.dims());
        auto [next_left, next_right] = rotated(c * left - s * turned, s * left + c * turned);

        Value ratio = select(or_(idle, compare(scale, hlo::zeros_like(scale), Compare::eq)),
                             hlo::zeros_like(size), size / scale);
        Value worst = hlo::maximum(x[4], hlo::max(ratio, {0, 1, 2}));
        Value round = x[1] + s32(x[1], 1),
              last = compare(round, s32(round, std::max<int64_t>(n - 1, 1)), Compare::eq);
        return Values{select(last, x[0] + s32(x[0], 1), x[0]),
                      select(last, s32(round, 0), round),
                      next_left,
                      next_right,
                      select(last, hlo::zeros_like(worst), worst),
                      select(last, worst, x[5])};
      });
  Value done = side_by_side(out[2], out[3]);
  return {slice_in_dim(done, 1, 0, m), slice_in_dim(done, 1, m, m + n)};
}

// Columns of x [b, m, n] in the order of `place` [b, n].
Value reordered(Value x, Value place) {
  Value pick = hlo::broadcast_in_dim(place, {x.dim(0), x.dim(2), x.dim(2)}, {0, 2});
  Value row = hlo::iota(x.builder(), {pick.dtype(), pick.dims()}, 1);
  return matmul(
      x, convert(convert(compare(row, pick, Compare::eq), hlo::real_type(x.dtype())), x.dtype()));
}

struct Svd {
  Value u, s, v;  // a = u diag(s) v^H: [b, m, n] or [b, m, m] if full, [b, n], [b, n, n]
};

// a [b, m, n], m >= n >= 1.
Svd svd_of_tall(Value a, bool full) {
  const int64_t b = a.dim(0), m = a.dim(1), n = a.dim(2), even = n + n % 2;
  Dims none(3, 0);
  Value padded =
      hlo::pad(a, hlo::constant(a.builder(), a.dtype(), 0), none, {0, even - n, even - n}, none);
  const Orthogonal o =
      orthogonalized(padded);  // a zero column stays one, and apart from the others
  Value size2 = hlo::is_complex(a.dtype())
                    ? square(hlo::real(o.columns)) + square(hlo::imag(o.columns))
                    : o.columns * o.columns;
  Value s = sqrt(sum(size2, {1}));
  // The padding's column must come last whatever the others are.
  Value is_padding = hlo::full(a.builder(), {DType::pred, {b, even}}, 0);
  if (even > n) {
    Value last = reshape(slice_in_dim(o.v, 1, n, n + 1), {b, even});
    is_padding = compare(hlo::abs(last), hlo::full_like(hlo::abs(last), 0.5), Compare::gt);
  }
  auto [ordered, place] = sorted(select(is_padding, hlo::full_like(s, -1), s), 1, true);
  s = slice_in_dim(ordered, 1, 0, n);
  Value v = slice_in_dim(columns(reordered(o.v, place), 0, n), 1, 0, n);
  Value g = slice_in_dim(columns(reordered(o.columns, place), 0, n), 1, 0, m);
  // Orthogonal columns have a diagonal R: Q is u up to R's signs, and orthonormal even where s is
  // 0.
  auto [h, tau] = geqrf(g);
  Value r = sum(upper_triangle(slice_in_dim(h, 1, 0, n)) * identity_like(slice_in_dim(h, 1, 0, n)),
                {1}, hlo::keep_dims);
  if (full && m > n)
    h = hlo::pad(h, hlo::constant(a.builder(), a.dtype(), 0), none, {0, 0, m - n}, none);
  Value q = householder_product(h, tau);
  Value sign = select(compare(hlo::real(r), hlo::zeros_like(hlo::real(r)), Compare::lt),
                      hlo::full_like(hlo::real(r), -1), hlo::ones_like(hlo::real(r)));
  sign = convert(sign, a.dtype());
  if (q.dim(2) > n)
    sign =
        hlo::pad(sign, hlo::constant(a.builder(), a.dtype(), 1), none, {0, 0, q.dim(2) - n}, none);
  return {q * hlo::broadcast_to(sign, q.dims()), s, v};
}

Value batched(Value a) {
  const int64_t m = a.dim(-2), n = a.dim(-1);
  return reshape(
      a, {m * n == 0 ? hlo::numel(Dims(a.dims().begin(), a.dims().end() - 2)) : a.numel() / (m * n),
          m, n});
}
Value unbatched(Value x, Value like) {
  Dims dims(like.dims().begin(), like.dims().end() - 2);
  dims.insert(dims.end(), x.dims().begin() + 1, x.dims().end());
  return reshape(x, dims);
}

// (U, S, Vh): a = U diag(S) Vh, S descending. Without compute_uv U and Vh are empty.
std::tuple<Value, Value, Value> svd(Value a, bool full_matrices, bool compute_uv,
                                    std::optional<std::string> driver) {
  (void)driver;
  require_inexact("linalg_svd_cpu", a);
  const int64_t m = a.dim(-2), n = a.dim(-1), k = std::min(m, n);
  Value none = hlo::full(a.builder(), {a.dtype(), {0}}, 0);
  Value x = batched(a);
  if (a.numel() == 0) {
    Value s = hlo::full(a.builder(), {hlo::real_type(a.dtype()), {x.dim(0), k}}, 0);
    if (!compute_uv) return {none, unbatched(s, a), none};
    Value u = hlo::full(a.builder(), {a.dtype(), {x.dim(0), m, full_matrices ? m : k}}, 0);
    Value vh = hlo::full(a.builder(), {a.dtype(), {x.dim(0), full_matrices ? n : k, n}}, 0);
    return {unbatched(identity_like(u), a), unbatched(s, a), unbatched(identity_like(vh), a)};
  }
  const bool wide = m < n;
  const Svd d = svd_of_tall(wide ? adjoint(x) : x, full_matrices);
  if (!compute_uv) return {none, unbatched(d.s, a), none};
  return {unbatched(wide ? d.v : d.u, a), unbatched(d.s, a),
          unbatched(adjoint(wide ? d.u : d.v), a)};
}

// (eigenvalues ascending, eigenvectors in columns) of the Hermitian matrix in one triangle of a.
// With x = a + c, c a bound that makes it positive: a's singular vectors are then its eigenvectors,
// and the eigenvalue of v is v^H a v.
std::pair<Value, Value> eigh(Value a, std::string uplo, bool compute_v) {
  require_inexact("linalg_eigh", a);
  Value none = hlo::full(a.builder(), {a.dtype(), {0}}, 0);
  Value x = batched(a);
  const int64_t b = x.dim(0), n = x.dim(1);
  if (a.numel() == 0)
    return {unbatched(hlo::full(a.builder(), {hlo::real_type(a.dtype()), {b, n}}, 0), a),
            compute_v ? a : none};
  Value eye = identity_like(x);
  Value half = uplo == "U" || uplo == "u" ? upper_triangle(x, 1) : lower_triangle(x, -1);
  Value diagonal = hlo::real(x * eye);
  x = half + adjoint(half) + convert(diagonal, x.dtype());
  Value bound = hlo::max(sum(hlo::abs(x), {2}), {1});
  Value shift = hlo::broadcast_to(convert(reshape(bound, {b, 1, 1}), x.dtype()), x.dims()) * eye;
  const Svd d = svd_of_tall(x + shift, false);
  Value v = hlo::reverse(d.v, {2});  // descending -> ascending
  Value w = hlo::real(sum(conj(v) * matmul(x, v), {1}));
  auto [ordered, place] = sorted(w, 1, false);
  return {unbatched(ordered, a), compute_v ? unbatched(reordered(v, place), a) : none};
}

}  // namespace

void register_eigen(Registry& r) {
  r.add("aten::_linalg_svd", svd);
  r.add("aten::_linalg_eigh", eigh);
}

}  // namespace torch_tpu::lower
