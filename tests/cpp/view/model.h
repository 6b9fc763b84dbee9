// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <string>
#include <vector>

#include "view/view.h"

// What views mean, said by plain loops, and random ones to try.
namespace torch_tpu::view::model {

// The flat base index of every element of the view, row-major.
Dims indices(const View& v);

// The same by a plan's own account: its factors, window and operands. Throws std::logic_error where
// the plan leaves its base, a factor or its window, or takes another number of operands than it
// has.
Dims planned_indices(const Type& base, const View& v, const Plan& p);

struct Case {
  Type base;
  View view;
};
std::string str(const Case& c);

using Rng = std::mt19937_64;
int64_t uniform(Rng& rng, int64_t low, int64_t high);  // both ends included

// A base and a few of PyTorch's view operators applied to it: slices with steps, selects,
// permutations, splits and merges of dims, expands, diagonals, overlapping windows, as_strided.
Case random_case(Rng& rng, DType base_dtype, DType view_dtype);
inline Case random_case(Rng& rng) { return random_case(rng, DType::s32, DType::s32); }

}  // namespace torch_tpu::view::model
