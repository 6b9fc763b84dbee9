// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "lower/args.h"

// Functions of real numbers that several families need and StableHLO lacks. All are element-wise.
namespace torch_tpu::lower {

// A rank-0 constant of x's dtype.
inline Value scalar(Value x, double v) { return hlo::constant(x.builder(), x.dtype(), v); }
inline Value nan_like(Value x) { return scalar(x, std::numeric_limits<double>::quiet_NaN()); }

inline Value maximum(Value x, double v) { return hlo::maximum(x, scalar(x, v)); }
inline Value minimum(Value x, double v) { return hlo::minimum(x, scalar(x, v)); }
inline Value square(Value x) { return x * x; }

// x as dtype t with C++'s conversions: hlo::convert, but a floating x that a narrow integer type
// cannot hold wraps around
// (-1.0 as uint8 is 255, as on CPU) where XLA saturates.
Value cast(Value x, DType t);

// The sign bit: true for -0.0 and negative NaNs too. Unsigned integers and pred: false.
Value sign_bit(Value x);
// |magnitude| with the sign bit of `sign`.
Value copysign(Value magnitude, Value sign);
// -1, 0 or 1 in x's dtype; NaN and -0.0 give 0, as on CPU. Real x or pred.
Value signum(Value x);
// Rounds toward zero; integers unchanged.
Value trunc(Value x);
// chlo's erf, but exactly 1 where 1 is the nearest value: XLA's polynomial in f32 ends at 1
// - 1.8e-7, which gelu would multiply by x.
Value saturated_erf(Value x);
// x == m * 2^e with 0.5 <= |m| < 1, e an s32; zeros, infinities and NaNs are their own m with e =
// 0. f32 and f64.
std::pair<Value, Value> frexp(Value x);
// Base-2 logarithm, exact for powers of two. Real or complex.
Value log2(Value x);

}  // namespace torch_tpu::lower
