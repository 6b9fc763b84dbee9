// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "view/view.h"

// What reading and writing share: the parts of a plan in the form that StableHLO's operations take.
namespace torch_tpu::view {

// One member of every factor, in order.
Dims each(const Plan& p, int64_t Factor::* member);
Dims spans(const Plan& p);
bool is_partial(const Plan& p);
bool has_steps(const Plan& p);

// The factors that are dims of the view, in memory order: their lengths, and in which order the
// view has them.
struct Kept {
  Dims lengths;      // in memory order
  Dims view_dims;    // ascending: the view's dims of size above 1 and stride above 0
  Dims permutation;  // of memory order, to the view's
  bool is_identity() const;
};
Kept kept(const Plan& p);

// Where each factor's slice starts: the operands, constants 0 between them.
hlo::Values factor_starts(hlo::Builder& b, const Plan& p, const hlo::Values& operands);

// s32 if the numbers up to `limit` fit, else s64: 64-bit index arithmetic is emulated on TPU.
DType index_type(int64_t limit);

// Flat base index of every element of the view along its dims of stride above 0 (those of stride 0
// have size 1 here).
Value flat_index(const View& v, Value offset, int64_t base_numel);

// v.sizes with 1 where the stride is 0: the elements that the base really holds.
Dims distinct_sizes(const View& v);

// x's dims 0 .. n-1 cut into the plan's factors; of a window, the range at `operands[0]`, padded.
Value factored(Value x, const Plan& p, const hlo::Values& operands);

// A view that no chain reads, joined from a few pieces that chains do read: overlapping windows are
// as many shifted copies as windows meet at one element. Null if it would take more than 32.
// XLA gathers on TPU element by element (0.18 us each on v5e by its compiler's account); slices
// stream.
Value read_in_pieces(Value flat, View v, Value offset);

void require_operands(const Plan& p, const hlo::Values& operands);

}  // namespace torch_tpu::view
