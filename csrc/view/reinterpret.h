// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ops.h"

// A storage's bytes read as another dtype, as the algebra needs it: whole bases only, strides are
// the caller's.
namespace torch_tpu::view {

// Dims of `base` read as elements of `t`: its own as far as they stand, flat where an element of
// `t` would cross a row. Bytes after the last whole element are left out.
hlo::Dims reinterpreted_dims(const hlo::Type& base, hlo::DType t);

// `x` read as `t`, shape reinterpreted_dims(x, t). Little-endian; a complex number is its real
// part, then its imaginary part; a pred is a byte 0 or 1, and every byte but 0 reads as true.
hlo::Value reinterpret(hlo::Value x, hlo::DType t);

// The inverse: `base` after its leading bytes were replaced by those of `x`, an array of
// reinterpret(base, x.dtype())'s shape. Bytes that the reinterpretation left out stay.
hlo::Value reinterpret_back(hlo::Value base, hlo::Value x);

}  // namespace torch_tpu::view
