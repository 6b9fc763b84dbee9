// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "view/chain.h"

namespace torch_tpu::view {
namespace {

// A dim and how long its pieces are.
struct Division {
  int64_t dim = -1, length = 0, count = 0;
};

bool moves(const View& v, int64_t d) { return v.sizes[d] > 1 && v.strides[d] > 0; }

// Windows up to this length are read element by element: rows of a few elements waste TPU's lanes.
// f32[1048576].unfold(0, 4, 2) in pieces of two takes over 40 s to compile for v5e and 1.5 ms to
// run by the compiler's account; in single elements 2 s and 0.09 ms.
constexpr int64_t kShortWindow = 16;

// How to divide `inner`, which reaches over the stride of `outer`: the longest pieces that do not,
// if steps of `outer` fall on elements of `inner`.
Division divide_inner(const View& v, int64_t outer, int64_t inner) {
  const int64_t size = v.sizes[inner], s = v.strides[outer], t = v.strides[inner];
  const int64_t length = size > kShortWindow && s % t == 0 ? std::gcd(size, s / t) : 1;
  return {inner, length, size / length};
}

// The division into the fewest pieces that undoes one overlap of two dims; without overlaps, the
// shortest dim element by element.
Division choose(const View& v) {
  Division best;
  const auto offer = [&](const Division& d) {
    if (d.count > 1 && (best.count == 0 || d.count < best.count)) best = d;
  };
  const int64_t rank = static_cast<int64_t>(v.sizes.size());
  for (int64_t a = 0; a < rank; ++a) {
    for (int64_t b = 0; b < rank; ++b) {
      const bool overlap = a != b && moves(v, a) && moves(v, b) && v.strides[a] >= v.strides[b] &&
                           (v.sizes[b] - 1) * v.strides[b] >= v.strides[a];
      if (!overlap) continue;
      offer(divide_inner(v, a, b));
      offer({a, 1, v.sizes[a]});
    }
  }
  if (best.count > 0) return best;
  for (int64_t d = 0; d < rank; ++d) {
    if (moves(v, d)) offer({d, 1, v.sizes[d]});
  }
  return best;
}

View piece_of(View v, const Division& division, int64_t i) {
  v.sizes[division.dim] = division.length;
  v.offset += i * division.length * v.strides[division.dim];
  return v;
}

// Into how many pieces read_range divides: the kind of a plan does not depend on the offset, so the
// first piece stands for all.
int64_t count_pieces(const Type& range, const View& v) {
  if (plan(range, v).kind != Plan::Kind::gather) return 1;
  const Division division = choose(v);
  return division.count * count_pieces(range, piece_of(v, division, 0));
}

Value read_range(Value range, const View& v) {
  const Plan p = plan(range.type(), v);
  if (p.kind != Plan::Kind::gather) {
    hlo::Values starts;
    for (int64_t start : p.operands()) {
      starts.push_back(constant(range.builder(), DType::s64, start));
    }
    return read(range, v, p, starts);
  }
  const Division division = choose(v);
  hlo::Values pieces;
  for (int64_t i = 0; i < division.count; ++i) {
    pieces.push_back(read_range(range, piece_of(v, division, i)));
  }
  return concatenate(pieces, division.dim);
}

}  // namespace

Value read_in_pieces(Value flat, View v, Value offset) {
  constexpr int64_t kMaxPieces = 32;
  v.offset = 0;
  if (count_pieces({v.dtype, {extent(v)}}, v) > kMaxPieces) return {};
  return read_range(dynamic_slice(flat, {offset}, {extent(v)}), v);
}

}  // namespace torch_tpu::view
