// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hlo/ops.h"

// Strided views as algebra. A tensor is a strided window (sizes, strides, offset; in elements) on a base: a dense row-major
// array whose flattened elements are the storage. Reading one is a chain of slice, transpose, reshape and broadcast of
// the base; writing one is that chain's inverse. Pure functions; no state, no device.
namespace torch_tpu::view {

using hlo::Dims;
using hlo::DType;
using hlo::Type;
using hlo::Value;

// PyTorch's metadata of one tensor; strides and offset in elements of `dtype`. Strides are never negative.
struct View {
  DType dtype;
  Dims sizes, strides;
  int64_t offset = 0;
  int64_t numel() const { return hlo::numel(sizes); }
  bool operator==(const View&) const = default;
};

Dims contiguous_strides(const Dims& sizes);   // PyTorch's: a size of 0 or 1 counts as 1
// Whether the view reads exactly `base`: same dtype, same sizes, row-major, offset 0. Strides of size-1 dims do not matter.
bool is_whole(const Type& base, const View& v);
// Whether the view touches every element of a storage of `storage_nbytes` once: dense in some dimension order, offset 0.
bool covers(int64_t storage_nbytes, const View& v);
// The dims of `v` from outermost to innermost in memory; meaningful for dense views.
Dims memory_order(const View& v);
// No two indices reach the same element. May say false for exotic strides that do not overlap.
bool is_non_overlapping(const View& v);
// The largest element offset that the view touches plus one (0 if empty): the storage must hold as many.
int64_t extent(const View& v);

// How one view of one base is read. The plan depends on the offset only through the choice of the class, so that views
// which differ in where they start share one program: `key()` is what must enter the program's key, `starts` are its
// run-time operands.
struct Plan {
  enum class Kind {
    whole,     // the base itself
    chain,     // reshape to `factors`, slice at run-time `starts` (sizes, steps), transpose, reshape, broadcast
    gather,    // flat base, index arithmetic: anything else, overlapping views included
  };
  Kind kind = Kind::whole;
  // --- chain: factors of the flat base, outermost first. product(factors) == base elements in the view's dtype.
  Dims factors;
  Dims starts;        // per factor: where the slice begins. Run-time operands where `is_dynamic`
  Dims lengths;       // per factor: elements taken
  Dims steps;         // per factor
  std::vector<bool> is_dynamic;   // per factor: false where the slice takes the whole factor
  Dims view_dim;      // per factor: which dim of the view it is, -1 for those of length 1 that are dropped
  // --- gather: starts = {offset}, one run-time operand
  std::string key() const;        // text or bytes; equal keys and equal (base, sizes, strides) mean equal programs
  int64_t num_operands() const;   // run-time starts, in order: s64 rank-0 values
  Dims operands() const;          // their values for this view
};

// Throws hlo::Error if the view reaches outside the base.
Plan plan(const Type& base, const View& v);

// Value of the view, shape v.sizes, dtype v.dtype. `starts` has plan.num_operands() rank-0 s64 values.
// A dtype other than the base's reinterprets the storage's bytes (little-endian; pred and u8 interchange as 0/1 bytes).
Value read(Value base, const View& v, const Plan& p, const hlo::Values& starts);

// The new base after `data` (v.sizes, v.dtype) was written through the view; same type as `base`. Where indices overlap the
// last written wins in an unspecified order (PyTorch refuses most of these beforehand).
Value write(Value base, const View& v, const Plan& p, const hlo::Values& starts, Value data);

// For results made anew: the base type that holds a tensor of this view "naturally": dims in memory order for a dense
// view, otherwise the flat storage of extent(v) elements. And the base value from the tensor's value.
Type natural_base(const View& v);
Value to_base(Value data, const View& v);

}  // namespace torch_tpu::view
