// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include "lower/families.h"
#include "lower/ranges.h"
#include "lower/registry.h"
#include "lower/require.h"

// Resizing of the last 1 to 3 dimensions of x [n, c, *in] to output_size, and its gradients. Every
// method is separable: along a dimension, output o is a sum of a few inputs ("taps") at positions
// that do not fall as o grows, with weights that depend only on sizes: so they are worked out here,
// in the dtype CPU uses for them (f32, f64 for f64 x), and printed in the program. The gradient is
// the transposed sum. Sums in f32 for 16-bit x.
namespace torch_tpu::lower {
namespace {

using hlo::convert;

struct Tap {
  Dims positions;               // one an output, ascending
  std::vector<double> weights;  // one an output; empty: all 1
};
using Taps = std::vector<Tap>;

// What a method needs to know of one dimension.
struct Axis {
  int64_t in, out;
  bool align_corners;
  std::optional<double> scale;  // the user's factor
};

// Input positions that one output covers. `Real` is the dtype of positions.
template <class Real>
Real covered(const Axis& a) {
  if (a.align_corners)
    return a.out > 1 ? static_cast<Real>(a.in - 1) / static_cast<Real>(a.out - 1) : Real(0);
  if (a.scale && *a.scale > 0) return static_cast<Real>(1.0 / *a.scale);
  return static_cast<Real>(a.in) / static_cast<Real>(a.out);
}

// Where output o falls among inputs. Cubic may lie before the first.
template <class Real>
Real source(const Axis& a, Real step, int64_t o, bool cubic) {
  if (a.align_corners) return step * static_cast<Real>(o);
  const Real at = step * (static_cast<Real>(o) + Real(0.5)) - Real(0.5);
  return at < 0 && !cubic ? Real(0) : at;
}

// Nearest: floor(o step), or (exact) floor((o + 1/2) step), in f32 for every dtype.
Taps nearest_taps(const Axis& a, bool exact) {
  const auto step = covered<float>(a);
  Tap tap;
  for (int64_t o = 0; o < a.out; ++o) {
    const float at = exact ? (static_cast<float>(o) + 0.5F) * step : static_cast<float>(o) * step;
    tap.positions.push_back(std::min(static_cast<int64_t>(std::floor(at)), a.in - 1));
  }
  return {tap};
}

// Linear: the two neighbours of the source, by distance.
template <class Real>
Taps linear_taps(const Axis& a) {
  const Real step = covered<Real>(a);
  Taps taps(2);
  for (int64_t o = 0; o < a.out; ++o) {
    const Real at = a.in == a.out ? static_cast<Real>(o) : source(a, step, o, false);
    const int64_t first = std::min(static_cast<int64_t>(at), a.in - 1);
    const Real right = std::min(std::max(at - static_cast<Real>(first), Real(0)), Real(1));
    taps[0].positions.push_back(first);
    taps[1].positions.push_back(std::min(first + 1, a.in - 1));
    taps[0].weights.push_back(Real(1) - right);
    taps[1].weights.push_back(right);
  }
  return taps;
}

// Keys' cubic convolution kernel.
template <class Real>
Real cubic_near(Real x, Real a) {
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <class Real>
Real cubic_far(Real x, Real a) {
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// Cubic: the four neighbours, positions kept inside the input, a = -3/4.
template <class Real>
Taps cubic_taps(const Axis& axis) {
  const Real step = covered<Real>(axis), a = Real(-0.75);
  Taps taps(4);
  for (int64_t o = 0; o < axis.out; ++o) {
    const Real at = source(axis, step, o, true);
    const int64_t first = std::min(static_cast<int64_t>(std::floor(at)), axis.in - 1);
    const Real t = std::min(std::max(at - static_cast<Real>(first), Real(0)), Real(1));
    const Real weights[4] = {cubic_far(t + 1, a), cubic_near(t, a), cubic_near(1 - t, a),
                             cubic_far(2 - t, a)};
    for (int64_t k = 0; k < 4; ++k) {
      taps[k].positions.push_back(std::clamp<int64_t>(first - 1 + k, 0, axis.in - 1));
      taps[k].weights.push_back(weights[k]);
    }
  }
  return taps;
}

// Antialiased: a filter as wide as what an output covers, its weights made to sum to 1. Outputs of
// fewer taps have 0 for the rest. A dimension that keeps its size is copied, whatever the user's
// scale, as on CPU.
template <class Real, class Filter>
Taps antialiased_taps(const Axis& axis, int64_t size, Filter filter) {
  if (axis.in == axis.out) {
    Dims same(axis.in);
    std::iota(same.begin(), same.end(), 0);
    return {{same, {}}};
  }
  const Real step = covered<Real>(axis), shrink = step >= 1 ? 1 / step : Real(1);
  const Real support = step >= 1 ? size * Real(0.5) * step : size * Real(0.5);
  std::vector<std::vector<Real>> rows(axis.out);
  Dims start(axis.out);
  size_t longest = 1;
  for (int64_t o = 0; o < axis.out; ++o) {
    const Real centre = step * (static_cast<Real>(o) + Real(0.5));
    start[o] = std::max(static_cast<int64_t>(centre - support + Real(0.5)), int64_t{0});
    const int64_t end = std::min(static_cast<int64_t>(centre + support + Real(0.5)), axis.in);
    Real total = 0;
    for (int64_t p = start[o]; p < end; ++p) {
      rows[o].push_back(filter(
          (static_cast<Real>(p - start[o]) + static_cast<Real>(start[o]) - centre + Real(0.5)) *
          shrink));
      total += rows[o].back();
    }
    if (total != 0) {
      for (Real& w : rows[o]) w /= total;
    }
    longest = std::max(longest, rows[o].size());
  }
  Taps taps(longest);
  for (int64_t o = 0; o < axis.out; ++o) {
    for (size_t k = 0; k < longest; ++k) {
      taps[k].positions.push_back(
          std::min<int64_t>(start[o] + static_cast<int64_t>(k), axis.in - 1));
      taps[k].weights.push_back(k < rows[o].size() ? rows[o][k] : 0);
    }
  }
  return taps;
}

enum class Method { nearest, nearest_exact, linear, cubic, linear_antialiased, cubic_antialiased };

template <class Real>
Taps taps_of(Method method, const Axis& axis) {
  switch (method) {
    case Method::nearest:
      return nearest_taps(axis, false);
    case Method::nearest_exact:
      return nearest_taps(axis, true);
    case Method::linear:
      return linear_taps<Real>(axis);
    case Method::cubic:
      return cubic_taps<Real>(axis);
    case Method::linear_antialiased:
      return antialiased_taps<Real>(axis, 2,
                                    [](Real x) { return std::max(1 - std::abs(x), Real(0)); });
    case Method::cubic_antialiased:
      return antialiased_taps<Real>(axis, 4, [](Real x) {
        x = std::abs(x);
        return x < 1 ? cubic_near(x, Real(-0.5)) : x < 2 ? cubic_far(x, Real(-0.5)) : Real(0);
      });
  }
  return {};
}

// x's element type decides the dtype of positions and weights.
Taps taps_of(Method method, const Axis& axis, DType t) {
  return t == DType::f64 ? taps_of<double>(method, axis) : taps_of<float>(method, axis);
}

Value along(Value like, int64_t dim, const std::vector<double>& weights) {
  Dims dims(like.rank(), 1);
  dims[dim] = weights.size();
  return reshape(hlo::literal(like.builder(), like.dtype(), weights), dims);
}

Value weighted(Value x, int64_t dim, const Tap& tap) {
  return tap.weights.empty() ? x : x * along(x, dim, tap.weights);
}

// out[o] = sum over taps of weight x[position]
Value apply(Value x, int64_t dim, const Taps& taps) {
  Value out;
  for (const Tap& tap : taps) {
    Value picked = hlo::index_select(x, dim, hlo::literal(x.builder(), DType::s32, tap.positions));
    Value term = weighted(picked, dim, tap);
    out = out ? out + term : term;
  }
  return out;
}

// dx[p] = sum over taps, over the outputs whose position is p, of weight g
Value apply_transposed(Value g, int64_t dim, const Taps& taps, int64_t in) {
  Value dx;
  for (const Tap& tap : taps) {
    Value term = sum_ranges(weighted(g, dim, tap), dim, places_of(tap.positions, in));
    dx = dx ? dx + term : term;
  }
  return dx;
}

using Scales = std::vector<std::optional<double>>;

void require_dtype(Method method, Value x) {
  if (method == Method::nearest || method == Method::nearest_exact) return;
  require_floating(
      "compute_indices_weights_" + std::string(method == Method::cubic ? "cubic" : "linear"), x);
}

Value upsample(Method method, Value x, const Dims& output_size, bool align_corners,
               const Scales& scales) {
  require_dtype(method, x);
  const bool copies = method == Method::nearest || method == Method::nearest_exact;
  Value y = copies ? x : convert(x, hlo::accumulate_type(x.dtype()));
  const auto n = static_cast<int64_t>(output_size.size());
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t dim = x.rank() - n + i;
    y = apply(y, dim,
              taps_of(method, {x.dim(dim), output_size[i], align_corners, scales[i]}, x.dtype()));
  }
  return convert(y, x.dtype());
}

Value upsample_backward(Method method, Value grad, const Dims& output_size, const Dims& input_size,
                        bool align_corners, const Scales& scales) {
  Value g = convert(grad, hlo::accumulate_type(grad.dtype()));
  const auto n = static_cast<int64_t>(output_size.size());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t dim = grad.rank() - n + i, in = input_size[dim];
    g = apply_transposed(
        g, dim, taps_of(method, {in, output_size[i], align_corners, scales[i]}, grad.dtype()), in);
  }
  return convert(g, grad.dtype());
}

// ---- the operators: a scale a dimension, and align_corners where the method has it
// ----------------------------------------

using Scale = std::optional<double>;

template <Method M>
void add_without_corners(Registry& r, const std::string& name) {
  r.add(name + "1d",
        [](Value x, const Dims& out, Scale s) { return upsample(M, x, out, false, {s}); });
  r.add(name + "2d", [](Value x, const Dims& out, Scale h, Scale w) {
    return upsample(M, x, out, false, {h, w});
  });
  r.add(name + "3d", [](Value x, const Dims& out, Scale d, Scale h, Scale w) {
    return upsample(M, x, out, false, {d, h, w});
  });
  r.add(name + "1d_backward", [](Value g, const Dims& out, const Dims& in, Scale s) {
    return upsample_backward(M, g, out, in, false, {s});
  });
  r.add(name + "2d_backward", [](Value g, const Dims& out, const Dims& in, Scale h, Scale w) {
    return upsample_backward(M, g, out, in, false, {h, w});
  });
  r.add(name + "3d_backward",
        [](Value g, const Dims& out, const Dims& in, Scale d, Scale h, Scale w) {
          return upsample_backward(M, g, out, in, false, {d, h, w});
        });
}

template <Method M>
void add_2d(Registry& r, const std::string& name) {
  r.add(name, [](Value x, const Dims& out, bool align, Scale h, Scale w) {
    return upsample(M, x, out, align, {h, w});
  });
  r.add(name + "_backward",
        [](Value g, const Dims& out, const Dims& in, bool align, Scale h, Scale w) {
          return upsample_backward(M, g, out, in, align, {h, w});
        });
}

}  // namespace

void register_upsample(Registry& r) {
  add_without_corners<Method::nearest>(r, "aten::upsample_nearest");
  add_without_corners<Method::nearest_exact>(r, "aten::_upsample_nearest_exact");
  r.add("aten::upsample_linear1d", [](Value x, const Dims& out, bool align, Scale s) {
    return upsample(Method::linear, x, out, align, {s});
  });
  r.add("aten::upsample_linear1d_backward",
        [](Value g, const Dims& out, const Dims& in, bool align, Scale s) {
          return upsample_backward(Method::linear, g, out, in, align, {s});
        });
  add_2d<Method::linear>(r, "aten::upsample_bilinear2d");
  add_2d<Method::cubic>(r, "aten::upsample_bicubic2d");
  add_2d<Method::linear_antialiased>(r, "aten::_upsample_bilinear2d_aa");
  add_2d<Method::cubic_antialiased>(r, "aten::_upsample_bicubic2d_aa");
  r.add("aten::upsample_trilinear3d",
        [](Value x, const Dims& out, bool align, Scale d, Scale h, Scale w) {
          return upsample(Method::linear, x, out, align, {d, h, w});
        });
  r.add("aten::upsample_trilinear3d_backward",
        [](Value g, const Dims& out, const Dims& in, bool align, Scale d, Scale h, Scale w) {
          return upsample_backward(Method::linear, g, out, in, align, {d, h, w});
        });
}

}  // namespace torch_tpu::lower
