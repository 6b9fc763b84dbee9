// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "lower/maths.h"
#include "lower/special_tables.h"

namespace torch_tpu::lower {

// The series at x by Clenshaw's recurrence, as many terms as x's dtype can tell apart.
inline Value evaluate(const tables::Series& s, Value x) {
  const double eps = x.dtype() == DType::f64 ? 1e-18 : 1e-10;
  size_t n = s.c.size();
  while (n > 1 && std::abs(s.c[n - 1]) < eps * std::abs(s.c[0])) --n;
  const Value t = (x - s.low) * (2 / (s.high - s.low)) - 1;
  Value b1 = zeros_like(t), b2 = b1;
  for (size_t k = n - 1; k > 0; --k) {
    const Value b0 = 2.0 * t * b1 - b2 + s.c[k];
    b2 = b1;
    b1 = b0;
  }
  return t * b1 - b2 + s.c[0];
}

}  // namespace torch_tpu::lower
