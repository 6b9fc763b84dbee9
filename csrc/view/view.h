// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/ops.h"

// Strided views as algebra. A tensor is a strided window (sizes, strides, offset; in elements) on a
// base: a dense row-major array whose flattened elements are the storage. Reading one is a chain of
// slice, transpose, reshape and broadcast of the base; writing one is that chain's inverse. Pure
// functions; no state, no device.
namespace torch_tpu::view {

using hlo::Dims;
using hlo::DType;
using hlo::Type;
using hlo::Value;

// PyTorch's metadata of one tensor; strides and offset in elements of `dtype`. Strides are never
// negative.
struct View {
  DType dtype;
  Dims sizes, strides;
  int64_t offset = 0;
  int64_t numel() const { return hlo::numel(sizes); }
  bool operator==(const View&) const = default;
};

Dims contiguous_strides(const Dims& sizes);  // PyTorch's: a size of 0 or 1 counts as 1
// Whether the view reads exactly `base`: same dtype, same sizes, row-major, offset 0. Strides of
// size-1 dims do not matter.
bool is_whole(const Type& base, const View& v);
// Whether the view touches every element of a storage of `storage_nbytes` once: dense in some
// dimension order, offset 0.
bool covers(int64_t storage_nbytes, const View& v);
// The dims of `v` from outermost to innermost in memory; meaningful for dense views.
Dims memory_order(const View& v);
// No two indices reach the same element. May say false for exotic strides that do not overlap.
bool is_non_overlapping(const View& v);
// The largest element offset that the view touches plus one (0 if empty): the storage must hold as
// many.
int64_t extent(const View& v);

// One factor of the flat base and the slice [start : start + span() : step] that the view takes of
// it.
struct Factor {
  int64_t size;    // elements of the factor; the product of all is the number of elements cut up
  int64_t start;   // 0 where the slice spans the factor
  int64_t length;  // elements taken
  int64_t step;
  int64_t view_dim;  // the dim of the view that it is, -1 for those of length 1 that are dropped
  int64_t span() const { return (length - 1) * step + 1; }
  bool is_partial() const { return span() < size; }
};

// How one view of one base is read. The plan depends on the offset only through the choice of the
// class, so that views which differ in where they start share one program: `key()` is what must
// enter the program's key, `operands()` are the run-time starts.
struct Plan {
  enum class Kind : uint8_t {
    whole,   // the base itself
    chain,   // reshape to `factors`, slice them at run-time starts, transpose, reshape, broadcast
    gather,  // flat base, index arithmetic: anything else, overlapping views included
  };
  // Which factorisation a chain uses: the first of these that holds the view without an index
  // running over a factor's edge.
  enum class Cut : uint8_t {
    aligned,  // along the base's own dims and the view's strides
    flat,     // along the view's strides only
    window,   // the smallest flat range that holds the view, padded to a product of factors; every
              // start in it is 0
  };
  Kind kind = Kind::whole;
  Cut cut = Cut::aligned;
  int64_t offset = 0;  // of the view
  int64_t window = 0;  // Cut::window: elements of the range that begins at `offset`; otherwise 0
  std::vector<Factor>
      factors;  // chain: outermost first, sizes above 1. None for a view without elements

  // Equal keys and equal (base type, view dtype, sizes, strides) mean equal programs.
  uint64_t key() const { return static_cast<uint64_t>(kind) | static_cast<uint64_t>(cut) << 8; }

  // The run-time starts: rank-0 s64 values. A chain takes one for each partial factor, in order; a
  // window and a gather take the offset.
  int64_t num_operands() const;
  Dims operands() const;  // their values for this view
};

// Throws hlo::Error if the view reaches outside the base or has a negative stride or offset.
Plan plan(const Type& base, const View& v);

// Value of the view, shape v.sizes, dtype v.dtype. `starts` has plan.num_operands() rank-0 s64
// values. A dtype other than the base's reinterprets the storage's bytes (little-endian; a pred is
// a byte 0 or 1, and every byte but 0 reads as true).
Value read(Value base, const View& v, const Plan& p, const hlo::Values& starts);

// The new base after `data` (v.sizes, v.dtype) was written through the view; same type as `base`.
// Where indices overlap the last written wins in an unspecified order (PyTorch refuses most of
// these beforehand); of a dim of stride 0, index 0 does.
Value write(Value base, const View& v, const Plan& p, const hlo::Values& starts, Value data);

// For results made anew: the base type that holds a tensor of this view "naturally": dims in memory
// order for a dense view, otherwise the flat storage of extent(v) elements. And the base value from
// the tensor's value.
Type natural_base(const View& v);
Value to_base(Value data, const View& v);

}  // namespace torch_tpu::view
