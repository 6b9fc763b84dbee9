// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "lower/args.h"

namespace torch_tpu::lower {

// x in PyTorch's order along `dim` (a real dimension): NaN counts as the greatest, -0 equals 0,
// equal elements keep their order. Returns (values, where each came from: s32, or s64 where the
// size needs it).
std::pair<Value, Value> sorted(Value x, int64_t dim, bool descending);

// For each value how many elements of its sorted row come before it: before equal ones (right =
// false) or after them.
//   row     [n], or [.., n] with values' leading dimensions         values  [..] or [.., m] one
//   dtype result  values' shape, s32 (s64 where n needs it). Binary search by the same comparisons
//   as CPU's: NaN goes to the end.
Value search(Value row, Value values, bool right);

}  // namespace torch_tpu::lower
