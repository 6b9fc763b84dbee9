// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/context.h"

// Random arrays from the context's generator, each element from bits of its own. Floating `t`: f32
// or f64 (convert afterwards). Same seed, same numbers on every platform up to the rounding of log,
// sqrt and erf_inv.
namespace torch_tpu::lower {

// `t` an unsigned dtype of 32 or 64 bits. Advances the generator by the elements' 32-bit words.
Value random_bits(Context& ctx, DType t, const Dims& dims);

// Multiples of 2^-digits in [0, 1): 24 digits for f32, 53 for f64 unless fewer are asked for (8 for
// bf16, 11 for f16: rounding to those dtypes then never gives 1).
Value random_unit(Context& ctx, DType t, const Dims& dims, int digits = 0);

// In (0, 1), neither end: for logarithms. Symmetric about 1/2.
Value random_open_unit(Context& ctx, DType t, const Dims& dims);

// Normal, mean 0 and standard deviation 1.
Value random_normal(Context& ctx, DType t, const Dims& dims);

// Integers in [0, range) as u64; `range` a rank-0 u64, 0 meaning 2^64. Biased by at most range /
// 2^64.
Value random_below(Context& ctx, Value range, const Dims& dims);

// A stream of its own for a loop that draws an unknown number of times: a fresh 128-bit state from
// the generator, u64[2]. Each draw of the loop advances it.
Value fresh_stream(Context& ctx);
Value next_open_unit(Value& stream, DType t, const Dims& dims);
Value next_normal(Value& stream, DType t, const Dims& dims);

// The dtype in which random floats for `t` are made: f64 for f64 and c128, else f32.
inline DType random_type(DType t) {
  return t == DType::f64 || t == DType::c128 ? DType::f64 : DType::f32;
}

}  // namespace torch_tpu::lower
