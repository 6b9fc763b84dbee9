// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Samples x at the points that a grid names, and the gradients by both.
//   x  [n, c, *in]     grid  [n, *out, d] with d = 2 or 3 coordinates, the last dimension's first;
//   -1 and 1 are x's borders (the centres of its corner elements with align_corners)     out  [n,
//   c, *out]
// Points outside x read zeros, the border, or x mirrored. Computed in f32 for 16-bit x. A NaN
// coordinate lies outside.
namespace torch_tpu::lower {
namespace {

using hlo::abs;
using hlo::convert;
using hlo::floor;
using hlo::reshape;
using hlo::select;
using hlo::sum;

enum class Mode : int64_t { linear, nearest, cubic };
enum class Outside : int64_t { zeros, border, reflection };

// A point's coordinate along one dimension, in elements, and its derivative by the grid's number.
// Both [n, p].
struct Coordinate {
  Value at, slope;
};

struct Sampler {
  Value x;  // [n, c, s], s elements a plane
  Dims in;  // x's sampled dimensions
  Mode mode;
  Outside outside;
  bool align_corners;
  int64_t rank() const { return static_cast<int64_t>(in.size()); }
};

double step(const Sampler& s, int64_t d) {
  return (s.align_corners ? static_cast<double>(s.in[d] - 1) : static_cast<double>(s.in[d])) / 2;
}

// Element coordinates of the grid's numbers, nothing done yet about those outside.
Coordinate unnormalized(const Sampler& s, Value g, int64_t d) {
  const double size = static_cast<double>(s.in[d]);
  Value at = s.align_corners ? (g + 1.0) * ((size - 1) / 2) : ((g + 1.0) * size - 1.0) * 0.5;
  return {at, hlo::full_like(g, step(s, d))};
}

Coordinate clipped(const Coordinate& c, double last) {
  Value inside = (c.at > 0) & (c.at < last);
  return {hlo::clamp(scalar(c.at, 0), c.at, scalar(c.at, last)),
          select(inside, c.slope, hlo::zeros_like(c.slope))};
}

// Mirrored at the first and last element's centre (align_corners) or outer edge.
Coordinate reflected(const Sampler& s, const Coordinate& c, int64_t d) {
  const double size = static_cast<double>(s.in[d]);
  const double low = s.align_corners ? 0 : -0.5, span = s.align_corners ? size - 1 : size;
  if (span == 0) return {hlo::zeros_like(c.at), hlo::zeros_like(c.slope)};
  Value from = c.at - low, distance = abs(from);
  Value extra = hlo::remainder(distance, scalar(distance, span)), flips = floor(distance / span);
  Value even = hlo::remainder(flips, scalar(flips, 2)) == 0;
  Value slope = select(from < 0, -c.slope, c.slope);
  return {select(even, extra + low, (span + low) - extra), select(even, slope, -slope)};
}

Coordinate placed(const Sampler& s, Coordinate c, int64_t d) {
  if (s.outside == Outside::zeros) return c;
  if (s.outside == Outside::reflection) c = reflected(s, c, d);
  return clipped(c, static_cast<double>(s.in[d] - 1));
}

// One element of each point's neighbourhood: its flat index in the plane, s where there is none.
Value element_index(const Sampler& s, const Values& at) {
  Value index, inside;
  for (int64_t d = 0; d < s.rank(); ++d) {
    const double size = static_cast<double>(s.in[d]);
    Value ok = (at[d] >= 0) & (at[d] < size);
    Value i = convert(select(ok, at[d], hlo::zeros_like(at[d])), DType::s32);
    index = index ? index * size + i : i;
    inside = inside ? inside & ok : ok;
  }
  return select(inside, index, scalar(index, static_cast<double>(hlo::numel(s.in))));
}

// x's elements at `index` [n, p]: [n, c, p], zeros where there is none.
Value fetch(const Sampler& s, Value index) {
  const Dims& dims = index.dims();
  const hlo::GatherDims g{{1}, {2}, {0}, {0}, {2}, 2};
  Value picked = hlo::gather(s.x, reshape(index, {dims[0], dims[1], 1}), g, {1, s.x.dim(1), 1});
  Value none = hlo::unsqueeze(index >= static_cast<double>(hlo::numel(s.in)), 1);
  return select(none, scalar(picked, 0), picked);
}

// dx with `updates` [n, c, p] added at `index` [n, p]; places outside x are dropped.
Value add_at(Value dx, Value index, Value updates) {
  const hlo::ScatterDims to{{1}, {2}, {0}, {0}, {2}, 2};
  auto add = [](const Values& a, const Values& b) { return Values{a[0] + b[0]}; };
  return hlo::scatter({dx}, reshape(index, {index.dim(0), index.dim(1), 1}), {updates}, to, add)[0];
}

// One term of the sum over a neighbourhood: out += weight x[index], and the weight's derivative by
// each coordinate of the grid.
struct Term {
  Value index, weight;
  Values slopes;
};

// One dimension of a neighbourhood: coordinates of its elements, their weights and the weights'
// derivatives.
struct Neighbours {
  Values at, weight, slope;
};

Neighbours linear(const Coordinate& c) {
  Value first = floor(c.at), t = c.at - first;
  return {{first, first + 1.0}, {1.0 - t, t}, {-c.slope, c.slope}};
}

Neighbours nearest(const Coordinate& c) {
  return {{hlo::round_nearest_even(c.at)}, {hlo::ones_like(c.at)}, {hlo::zeros_like(c.at)}};
}

// Keys' kernel with a = -3/4; each of the four elements may lie outside on its own.
Neighbours cubic(const Sampler& s, const Coordinate& c, int64_t d) {
  constexpr double a = -0.75;
  auto near = [](Value x) { return ((a + 2) * x - (a + 3)) * x * x + 1.0; };
  auto near_slope = [](Value x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  auto far = [](Value x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  auto far_slope = [](Value x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  Value first = floor(c.at), t = c.at - first;
  Neighbours n{{},
               {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)},
               {far_slope(t + 1.0), near_slope(t), -near_slope(1.0 - t), -far_slope(2.0 - t)}};
  for (int64_t k = 0; k < 4; ++k) {
    n.at.push_back(
        hlo::round_nearest_even(placed(s, {first + static_cast<double>(k - 1), c.slope}, d).at));
    n.slope[k] = n.slope[k] * c.slope;
  }
  return n;
}

// All terms of all points; grid's numbers as [n, p, d].
std::vector<Term> terms(const Sampler& s, Value grid) {
  const int64_t rank = s.rank();
  std::vector<Neighbours> sides;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t column = rank - 1 - d;
    Value g = hlo::squeeze(hlo::slice_in_dim(grid, 2, column, column + 1), {2});
    const Coordinate c = unnormalized(s, g, d);
    sides.push_back(s.mode == Mode::linear    ? linear(placed(s, c, d))
                    : s.mode == Mode::nearest ? nearest(placed(s, c, d))
                                              : cubic(s, c, d));
  }
  std::vector<Term> all;
  const auto count = static_cast<int64_t>(sides[0].at.size());
  int64_t total = 1;
  for (int64_t d = 0; d < rank; ++d) total *= count;
  for (int64_t k = 0; k < total; ++k) {
    Values at(rank);
    std::array<int64_t, 3> which{};
    for (int64_t d = rank - 1, left = k; d >= 0; left /= count, --d) which[d] = left % count;
    Term term;
    for (int64_t d = 0; d < rank; ++d) {
      at[d] = sides[d].at[which[d]];
      Value w = sides[d].weight[which[d]];
      term.weight = term.weight ? term.weight * w : w;
    }
    for (int64_t d = 0; d < rank; ++d) {
      Value slope = sides[d].slope[which[d]];
      for (int64_t e = 0; e < rank; ++e) {
        if (e != d) slope = slope * sides[e].weight[which[e]];
      }
      term.slopes.push_back(slope);
    }
    term.index = element_index(s, at);
    all.push_back(std::move(term));
  }
  return all;
}

struct Call {
  Sampler s;
  Value grid;  // [n, p, d]
  Dims out;    // [n, c, *out]
};
Call call_of(Value x, Value grid, int64_t mode, int64_t outside, bool align_corners) {
  const DType acc = hlo::accumulate_type(x.dtype());
  const Dims in(x.dims().begin() + 2, x.dims().end());
  Dims out{x.dim(0), x.dim(1)};
  out.insert(out.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  const int64_t points = hlo::numel({out.begin() + 2, out.end()});
  Value planes = reshape(convert(x, acc), {x.dim(0), x.dim(1), hlo::numel(in)});
  return {{planes, in, static_cast<Mode>(mode), static_cast<Outside>(outside), align_corners},
          reshape(convert(grid, acc), {x.dim(0), points, grid.dim(-1)}),
          out};
}

Value grid_sampler(Value x, Value grid, int64_t mode, int64_t outside, bool align_corners) {
  require_floating("grid_sampler", x);
  const Call c = call_of(x, grid, mode, outside, align_corners);
  if (hlo::numel(c.out) == 0) return hlo::full(x.builder(), {x.dtype(), c.out}, 0);
  Value out;
  for (const Term& t : terms(c.s, c.grid)) {
    Value part = fetch(c.s, t.index) * hlo::unsqueeze(t.weight, 1);
    out = out ? out + part : part;
  }
  return convert(reshape(out, c.out), x.dtype());
}

// dx = sum over terms of weight g at its element;   dgrid = sum over terms and channels of slope
// x[index] g
Values grid_sampler_backward(Value grad, Value x, Value grid, int64_t mode, int64_t outside,
                             bool align_corners, const std::vector<bool>& mask) {
  const Call c = call_of(x, grid, mode, outside, align_corners);
  Value dx = mask[0] ? hlo::zeros_like(c.s.x) : Value(), dgrid;
  if (mask[1]) dgrid = hlo::zeros_like(grid);
  if (grad.numel() == 0) return {mask[0] ? hlo::zeros_like(x) : Value(), dgrid};
  Value g = reshape(convert(grad, c.s.x.dtype()), {c.out[0], c.out[1], c.grid.dim(1)});
  Values slopes(c.s.rank());
  for (const Term& t : terms(c.s, c.grid)) {
    if (mask[0]) dx = add_at(dx, t.index, g * hlo::unsqueeze(t.weight, 1));
    if (!mask[1] || c.s.mode == Mode::nearest) continue;
    Value along = sum(fetch(c.s, t.index) * g, {1});
    for (int64_t d = 0; d < c.s.rank(); ++d) {
      Value part = along * t.slopes[d];
      slopes[d] = slopes[d] ? slopes[d] + part : part;
    }
  }
  if (mask[0]) dx = convert(reshape(dx, x.dims()), x.dtype());
  if (mask[1] && slopes[0]) {
    Values columns;
    for (int64_t d = c.s.rank() - 1; d >= 0; --d) columns.push_back(hlo::unsqueeze(slopes[d], 2));
    dgrid = convert(reshape(hlo::concatenate(columns, 2), grid.dims()), grid.dtype());
  }
  return {dx, dgrid};
}

}  // namespace

void register_grid_sampler(Registry& r) {
  r.add("aten::grid_sampler_2d", grid_sampler);
  r.add("aten::grid_sampler_3d", grid_sampler);
  r.add("aten::grid_sampler_2d_backward", grid_sampler_backward);
  r.add("aten::grid_sampler_3d_backward", grid_sampler_backward);
}

}  // namespace torch_tpu::lower
