// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lower/context.h"

// Indices as PyTorch gives them (integer tensors, negative ones counting from the end, None for a
// whole dimension), made safe and put into the form that hlo::gather and hlo::scatter take. Shared
// by reads (index.cpp) and writes (scatter.cpp).
namespace torch_tpu::lower {

enum class Negative : bool { refused, wraps };

// `index` brought into [0, size): negative entries wrap if asked; an entry out of range is reported
// to the user with `message` ("{0}" is the entry) when the host next waits, and clamped. s32, or
// s64 where `size` needs it. Throws at once when size is 0 and there is an entry.
Value bounded(Context& ctx, Value index, int64_t size, Negative negative,
              const std::string& message);

// CPU's words for an index outside of dimension `dim`: an IndexError, or where gather and scatter
// say it a RuntimeError.
std::string out_of_bounds(int64_t dim, int64_t size);
std::string out_of_bounds_at_run(int64_t dim, int64_t size);

// What Builder::check takes to name the culprit: the first of `values` (integers, row-major;
// another on a device that reduces in another order) where `wrong`, else 0; a 0 must not be wrong.
// The second form also says its flat position: s64 [2].
Value first_wrong(Value wrong, Value values);
Value first_wrong_and_place(Value wrong, Value values);

// x[indices]: what to gather, and where a scatter of the same indices writes.
struct IndexPlan {
  Value starts;      // broadcast shape of the indices, and one last dimension of a coordinate an
                     // indexed dimension; null if all None
  Dims indexed;      // dimensions of x that have an index
  Dims offset_dims;  // dimensions of the result that are whole dimensions of x
  Dims slice_sizes;  // of x: 1 where indexed
  Dims result;       // sizes of x[indices]
};

// PyTorch's placing: the index tensors' common shape stands where the first of them is, or in front
// when a None lies between two of them. `indices` may be shorter than x's rank.
IndexPlan plan_index(Context& ctx, const Dims& sizes, const Values& indices);

// Which flat positions of `mask` (pred) are true, ascending, then n for each that is not: s32 (s64
// where n needs it), [n].
Value true_positions(Value mask);

}  // namespace torch_tpu::lower
