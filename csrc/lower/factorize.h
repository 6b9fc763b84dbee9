// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "lower/context.h"

// Matrix factorizations on the last two dimensions, any batch dimensions: what linear solvers
// share. f32, f64, c64, c128.
namespace torch_tpu::lower {

struct Lu {
  Value lu;      // [.., m, n]: U on and above the diagonal, L (unit diagonal) below
  Value pivots;  // [.., min(m, n)] s32, from 1 as LAPACK: row i was exchanged with row pivots[i]
  Value info;    // [..] s32: 0, or the first i (from 1) with U[i, i] = 0
};
Lu lu_factor(Value a);

// [.., m] s32: after the exchanges row i is the old row permutation[i].
Value pivots_to_permutation(Value pivots, int64_t m);

// R above and on the diagonal, Householder vectors below it (their first entry, 1, left out); tau
// [.., min(m, n)], as LAPACK.
std::pair<Value, Value> geqrf(Value a);

// The first columns, as many as a has, of H_1 H_2 .. H_k, H_i = 1 - tau_i v_i v_i^H.  a [.., m, n],
// tau [.., k]
Value householder_product(Value a, Value tau);

// a^H on the last two dimensions, and a^T.
Value adjoint(Value a);
Value transposed(Value a);

// a with everything but row - column >= k (lower) or <= k (upper) set to zero.
Value lower_triangle(Value a, int64_t k = 0);
Value upper_triangle(Value a, int64_t k = 0);
Value identity_like(Value a);  // ones where row = column

// a @ b over the last two dimensions in a's dtype, as exact as the hardware can.
Value matmul(Value a, Value b);

}  // namespace torch_tpu::lower
