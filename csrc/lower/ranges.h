// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "lower/maths.h"

// Sums over neighbouring positions: how adaptive pooling averages, and how a map that copies
// positions (resizing) is transposed. Positions are known when the program is built.
namespace torch_tpu::lower {

struct Range {
  int64_t start, end;
};
using Ranges = std::vector<Range>;

// Sums of x along `dim` over each range. Ranges of one position pick; equal neighbours reshape;
// others gather, with zeros selected (not multiplied) past a short range's end.
inline Value sum_ranges(Value x, int64_t dim, const Ranges& ranges) {
  const auto n = static_cast<int64_t>(ranges.size());
  int64_t longest = 0;
  for (const Range& r : ranges) longest = std::max(longest, r.end - r.start);
  Dims split = x.dims();
  split[dim] = n;
  split.insert(split.begin() + dim + 1, longest);
  bool tiles = n * longest == x.dim(dim);
  for (int64_t i = 0; i < n; ++i)
    tiles = tiles && ranges[i].start == i * longest && ranges[i].end == (i + 1) * longest;
  if (tiles) return longest == 1 ? x : hlo::sum(reshape(x, split), {dim + 1});

  Dims places, inside;
  for (const Range& r : ranges) {
    for (int64_t k = 0; k < longest; ++k) {
      places.push_back(std::min(r.start + k, std::max<int64_t>(r.end - 1, 0)));
      inside.push_back(r.start + k < r.end);
    }
  }
  hlo::Builder& b = x.builder();
  Value picked = hlo::index_select(x, dim, hlo::literal(b, DType::s32, places));
  if (longest == 1 && std::find(inside.begin(), inside.end(), 0) == inside.end()) return picked;
  picked = reshape(picked, split);
  Dims mask(split.size(), 1);
  mask[dim] = n;
  mask[dim + 1] = longest;
  Value valid = reshape(hlo::literal(b, DType::s32, inside), mask) != 0;
  return hlo::sum(hlo::select(valid, picked, scalar(picked, 0)), {dim + 1});
}

// Where an ascending list of positions in [0, n) holds each of them: entry p is the range of k with
// positions[k] == p.
inline Ranges places_of(const Dims& positions, int64_t n) {
  Ranges ranges;
  auto at = positions.begin();
  for (int64_t p = 0; p < n; ++p) {
    auto past = std::upper_bound(at, positions.end(), p);
    ranges.push_back({at - positions.begin(), past - positions.begin()});
    at = past;
  }
  return ranges;
}

}  // namespace torch_tpu::lower
