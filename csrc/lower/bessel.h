// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/args.h"

namespace torch_tpu::lower {

// The modified Bessel function of the first kind, order 0, of a floating x: inf where it overflows.
Value bessel_i0(Value x);

}  // namespace torch_tpu::lower
