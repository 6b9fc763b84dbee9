// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/args.h"

namespace torch_tpu::lower {

// Inclusive prefix combination along `dim` (a real dimension) of arrays of one shape: out_i = x_0 *
// x_1 * .. * x_i, where `*` is `combine` on whole arrays: (left, right), element-wise, associative.
// No identity element is needed.
Values associative_scan(const Values& xs, int64_t dim, const hlo::Combine& combine);

// Inclusive sums and maxima along `dim`, in x's own dtype (convert before: pred and 16-bit floats
// are the caller's).
Value cumulative_sum(Value x, int64_t dim);
Value cumulative_max(Value x, int64_t dim);

}  // namespace torch_tpu::lower
