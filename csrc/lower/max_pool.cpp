// SPDX-License-Identifier: Apache-2.0
#include "lower/dims.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/maths.h"
#include "lower/pool.h"
#include "lower/registry.h"
#include "lower/require.h"

// Max pooling over the last dimensions, with the flat index (in the plane of these dimensions) of
// each maximum, s64. As on CPU the first of equal maxima is taken, any NaN beats every number, and
// the last NaN is the one pointed at. Padding is never chosen. Maxima are found one dimension at a
// time: row-major order of places makes that the same.
namespace torch_tpu::lower {
namespace {

using hlo::convert;
using hlo::reshape;
using hlo::select;

// A maximum and its place; place -1: none yet (value is then the lowest).
struct Best {
  Value value, place;
};

// Of two candidates, those of `a` at earlier places than those of `b`.
Best better(const Best& a, const Best& b) {
  Value take = (b.place >= 0) & ((b.value > a.value) | hlo::is_nan(b.value) | (a.place < 0));
  return {select(take, b.value, a.value), select(take, b.place, a.place)};
}

// The same for candidates in any order: equal maxima by the lower place, NaNs by the higher.
Best better_in_any_order(const Best& a, const Best& b) {
  Value later = b.place > a.place, nan_a = hlo::is_nan(a.value), nan_b = hlo::is_nan(b.value);
  Value number = ~nan_a & ((b.value > a.value) | ((b.value == a.value) & ~later));
  Value take = (b.place >= 0) & ((a.place < 0) | (nan_b & (~nan_a | later)) | (~nan_b & number));
  return {select(take, b.value, a.value), select(take, b.place, a.place)};
}

DType place_type(int64_t plane) { return plane < (int64_t{1} << 31) ? DType::s32 : DType::s64; }

// x's elements as candidates, each at its own place.
Best candidates(Value x, int64_t n) {
  const Dims plane = last_dims(x, n);
  const int64_t size = hlo::numel(plane);
  Value places = reshape(hlo::iota(x.builder(), {place_type(size), {size}}, 0), plane);
  return {x, hlo::broadcast_to(places, x.dims())};
}

Value lowest_of(Value x) { return hlo::lowest(x.builder(), x.dtype()); }

// Best of the elements at positions table[o][0], table[o][1], ... of `dim` for each o (same count
// for all; -1: nothing there). More than a few are gathered at once and reduced; few are cheaper
// one after another.
Best best_of_table(const Best& x, int64_t dim, const std::vector<Dims>& table) {
  const int64_t out = table.size(), count = table.empty() ? 0 : table[0].size(),
                in = x.value.dim(dim);
  hlo::Builder& b = x.value.builder();
  Dims positions;
  for (const Dims& row : table) {
    for (int64_t p : row) positions.push_back(p < 0 ? in : p);  // one past the end is padding
  }
  Value at = hlo::literal(b, DType::s32, positions);
  Dims split = x.value.dims();
  split[dim] = out;
  split.insert(split.begin() + dim + 1, count);
  auto windows = [&](Value v, Value nothing) {
    return reshape(hlo::index_select(pad_dim(v, nothing, dim, 0, 1), dim, at), split);
  };
  const Value none = scalar(x.place, -1);
  auto combine = [](const Values& l, const Values& r) {
    Best m = better_in_any_order({l[0], l[1]}, {r[0], r[1]});
    return Values{m.value, m.place};
  };
  Values m = hlo::reduce({windows(x.value, lowest_of(x.value)), windows(x.place, none)},
                         {lowest_of(x.value), none}, {dim + 1}, combine);
  return {m[0], m[1]};
}

constexpr int64_t kManyCandidates = 16;

Best best_of_windows(Best x, int64_t dim, const Pool& pool, int64_t i) {
  const int64_t in = x.value.dim(dim), out = pool.size(i, in), s = pool.stride[i],
                d = pool.dilation[i];
  if (pool.kernel[i] > kManyCandidates) {
    std::vector<Dims> table(out);
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t k = 0; k < pool.kernel[i]; ++k) {
        const int64_t p = o * s - pool.padding[i] + k * d;
        table[o].push_back(p < in ? p : -1);
      }
    }
    for (Dims& row : table)
      std::replace_if(row.begin(), row.end(), [](int64_t p) { return p < 0; }, -1);
    return best_of_table(x, dim, table);
  }
  const int64_t high = pool.high(i, in, out);
  x = {pad_dim(x.value, lowest_of(x.value), dim, pool.padding[i], high),
       pad_dim(x.place, scalar(x.place, -1), dim, pool.padding[i], high)};
  Best best;
  for (int64_t k = 0; k < pool.kernel[i]; ++k) {
    auto nth = [&](Value v) {
      return hlo::slice_in_dim(v, dim, k * d, k * d + (out - 1) * s + 1, s);
    };
    const Best next{nth(x.value), nth(x.place)};
    best = k == 0 ? next : better(best, next);
  }
  return best;
}

Values results(const Best& best) { return {best.value, convert(best.place, DType::s64)}; }

Values empty_results(Value x, const Dims& dims) {
  return {hlo::full(x.builder(), {x.dtype(), dims}, 0),
          hlo::full(x.builder(), {DType::s64, dims}, 0)};
}

// (maxima, indices), [..., *out]
template <int N>
Values max_pool_with_indices(Value x, const Dims& kernel, const Dims& stride, const Dims& padding,
                             const Dims& dilation, bool ceil_mode) {
  require_real_number(N == 2 ? "max_pool2d" : "max_pool3d", x);
  const Pool pool(N, kernel, stride, padding, dilation, ceil_mode);
  const int64_t first = x.rank() - N;
  if (x.numel() == 0) {
    Dims dims = x.dims();
    for (int64_t i = 0; i < N; ++i) dims[first + i] = pool.size(i, dims[first + i]);
    return empty_results(x, dims);
  }
  Best best = candidates(x, N);
  for (int64_t i = N - 1; i >= 0; --i) best = best_of_windows(best, first + i, pool, i);
  return results(best);
}

// grad added at `indices` of planes of zeros, in the accumulating dtype.
Value add_at(Value grad, Value indices, const Dims& dims, int64_t n) {
  const int64_t plane = hlo::numel(last_dims(dims, n)), total = hlo::numel(dims);
  const int64_t each_plane = hlo::numel(last_dims(grad, n));
  if (total == 0 || grad.numel() == 0) return hlo::full(grad.builder(), {grad.dtype(), dims}, 0);
  Value at = reshape(indices, {total / plane, each_plane});
  at = at + hlo::iota(at.builder(), at.type(), 0) * static_cast<double>(plane);
  auto add = [](const Values& a, const Values& b) { return Values{a[0] + b[0]}; };
  Value zeros = hlo::full(grad.builder(), {grad.dtype(), {total}}, 0);
  const hlo::ScatterDims flat{{}, {0}, {}, {}, {0}, 1};
  return reshape(
      hlo::scatter({zeros}, reshape(at, {grad.numel(), 1}), {hlo::flatten(grad)}, flat, add)[0],
      dims);
}

// Windows of at most this many places have their gradients gathered place by place, which fuses
// into one pass; a scatter of single elements is serial on both CPU and TPU.
constexpr int64_t kGatheredPlaces = 32;

// dx[p] = sum of grad over the windows whose index is p
template <int N>
Value max_pool_with_indices_backward(Value grad, Value x, const Dims& kernel, const Dims& stride,
                                     const Dims& padding, const Dims& dilation, bool ceil_mode,
                                     Value indices) {
  const Pool pool(N, kernel, stride, padding, dilation, ceil_mode);
  const int64_t first = x.rank() - N;
  Value g = convert(grad, hlo::accumulate_type(grad.dtype()));
  if (hlo::numel(pool.kernel) > kGatheredPlaces || grad.numel() == 0)
    return convert(add_at(g, indices, x.dims(), N), x.dtype());

  // Each window's index as one coordinate a dimension, relative to the window's first place.
  Values offset(N);
  Value rest = indices;
  for (int64_t i = N - 1; i >= 0; --i) {
    Value size = scalar(rest, static_cast<double>(x.dim(first + i)));
    Value start =
        hlo::iota(rest.builder(), rest.type(), first + i) * static_cast<double>(pool.stride[i]) -
        static_cast<double>(pool.padding[i]);
    offset[i] = hlo::remainder(rest, size) - start;
    rest = rest / size;
  }
  Value dx;
  for (int64_t k = 0; k < hlo::numel(pool.kernel); ++k) {
    Value hit, part = g;
    for (int64_t i = N - 1, left = k; i >= 0; left /= pool.kernel[i], --i) {
      Value here = offset[i] == static_cast<double>(left % pool.kernel[i] * pool.dilation[i]);
      hit = hit ? hit & here : here;
    }
    part = select(hit, g, scalar(g, 0));
    for (int64_t i = N - 1, left = k; i >= 0; left /= pool.kernel[i], --i) {
      const int64_t low = left % pool.kernel[i] * pool.dilation[i] - pool.padding[i];
      const int64_t span = (grad.dim(first + i) - 1) * pool.stride[i] + 1;
      part = pad_dim(part, scalar(g, 0), first + i, low, x.dim(first + i) - low - span,
                     pool.stride[i] - 1);
    }
    dx = dx ? dx + part : part;
  }
  return convert(dx, x.dtype());
}

// Maxima over input ranges shared out among `output_size` outputs.
template <int N>
Values adaptive_max_pool(Value x, const Dims& output_size) {
  require_floating(N == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d_cpu", x);
  const int64_t first = x.rank() - N;
  if (x.numel() == 0 || hlo::numel(output_size) == 0) {
    Dims dims = x.dims();
    std::copy(output_size.begin(), output_size.end(), dims.begin() + first);
    return empty_results(x, dims);
  }
  Best best = candidates(x, N);
  for (int64_t i = N - 1; i >= 0; --i) {
    const int64_t in = x.dim(first + i), out = output_size[i];
    std::vector<Dims> table(out);
    size_t longest = 0;
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t p = adaptive_start(o, in, out); p < adaptive_end(o, in, out); ++p)
        table[o].push_back(p);
      longest = std::max(longest, table[o].size());
    }
    for (Dims& row : table) row.resize(longest, -1);
    best = best_of_table(best, first + i, table);
  }
  return results(best);
}

template <int N>
Value adaptive_max_pool_backward(Value grad, Value x, Value indices) {
  Value g = convert(grad, hlo::accumulate_type(grad.dtype()));
  return convert(add_at(g, indices, x.dims(), N), x.dtype());
}

// Planes of zeros of `output_size` with x's elements put at `indices`; of several at one place any
// may stay. An index outside the plane is reported.
template <int N>
Value max_unpool(Context& ctx, Value x, Value indices, const Dims& output_size) {
  Dims dims(x.dims().begin(), x.dims().end() - N);
  dims.insert(dims.end(), output_size.begin(), output_size.end());
  const int64_t plane = hlo::numel(output_size), total = hlo::numel(dims);
  if (x.numel() == 0 || total == 0) return hlo::full(ctx.builder, {x.dtype(), dims}, 0);
  Value at = reshape(indices, {total / plane, x.numel() / (total / plane)});
  std::string volume;
  for (int64_t size : output_size) volume += (volume.empty() ? "" : "x") + std::to_string(size);
  ctx.builder.check(
      first_wrong((at < 0) | (at >= static_cast<double>(plane)), at),
      "RuntimeError: Found an invalid max index: {0} (output volumes are of size " + volume + ")");
  at = at + hlo::iota(ctx.builder, at.type(), 0) * static_cast<double>(plane);
  auto put = [](const Values&, const Values& b) { return b; };
  Value zeros = hlo::full(ctx.builder, {x.dtype(), {total}}, 0);
  const hlo::ScatterDims flat{{}, {0}, {}, {}, {0}, 1};
  return reshape(
      hlo::scatter({zeros}, reshape(at, {x.numel(), 1}), {hlo::flatten(x)}, flat, put)[0], dims);
}

}  // namespace

void register_max_pool(Registry& r) {
  r.add("aten::max_pool2d_with_indices", max_pool_with_indices<2>);
  r.add("aten::max_pool2d_with_indices_backward", max_pool_with_indices_backward<2>);
  r.add("aten::max_pool3d_with_indices", max_pool_with_indices<3>);
  r.add("aten::max_pool3d_with_indices_backward", max_pool_with_indices_backward<3>);
  r.add("aten::adaptive_max_pool2d", adaptive_max_pool<2>);
  r.add("aten::adaptive_max_pool2d_backward", adaptive_max_pool_backward<2>);
  r.add("aten::adaptive_max_pool3d", adaptive_max_pool<3>);
  r.add("aten::adaptive_max_pool3d_backward", adaptive_max_pool_backward<3>);
  r.add("aten::max_unpool2d", max_unpool<2>);
  r.add("aten::max_unpool3d",
        [](Context& ctx, Value x, Value indices, const Dims& output_size, Ignored, Ignored) {
          return max_unpool<3>(ctx, x, indices, output_size);
        });
}

}  // namespace torch_tpu::lower
