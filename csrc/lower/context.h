// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "lower/args.h"

namespace torch_tpu::lower {

// What a lowering may ask about the program being built, beside its arguments. A function that
// takes `Context&` as its first parameter gets it.
struct Context {
  hlo::Builder& builder;
  DType default_dtype = DType::f32;  // torch.get_default_dtype(): what int -> float operators give
  hlo::Precision matmul_precision = hlo::Precision::highest;  // for f32 products
  // Draws `count` 32-bit random values' worth from the generator: returns the u64[2] state for
  // hlo::rng_bit_generator, already advanced past what the program drew before. Null where no
  // generator may be used.
  std::function<Value(int64_t count)> draw;
};

// Where draws from `state` (u64[2]) begin after `drawn` values' worth; advances `drawn` by `count`,
// in the generator's steps of four.
inline Value next_draw(Value state, int64_t& drawn, int64_t count) {
  const int64_t before = drawn;
  drawn += (count + 3) / 4 * 4;
  if (before == 0) return state;
  return state + hlo::literal(state.builder(), DType::u64, std::vector<int64_t>{0, before});
}

}  // namespace torch_tpu::lower
