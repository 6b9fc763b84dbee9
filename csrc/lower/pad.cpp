// SPDX-License-Identifier: Apache-2.0
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/pool.h"
#include "lower/registry.h"

// Padding by reflection (without the edge) or by repeating the edge, of the last dimensions, and
// its gradients.
//   padding  (low, high) a dimension, the last dimension first; negative numbers crop
// Constant padding is a graph function of its own (shape).
namespace torch_tpu::lower {
namespace {

using hlo::convert;
using hlo::reverse;
using hlo::slice_in_dim;

enum class Mode { reflection, replication };

// The four amounts of one dimension.
struct Sides {
  int64_t low, high, crop_low, crop_high;
  Sides(int64_t l, int64_t h)
      : low(std::max<int64_t>(l, 0)),
        high(std::max<int64_t>(h, 0)),
        crop_low(std::max<int64_t>(-l, 0)),
        crop_high(std::max<int64_t>(-h, 0)) {}
};

// `n` copies of x's one position along `dim`.
Value repeated(Value x, int64_t dim, int64_t n) {
  Dims dims = x.dims();
  dims[dim] = n;
  return hlo::broadcast_to(x, dims);
}

Value padded(Value x, int64_t dim, Mode mode, const Sides& s) {
  const int64_t n = x.dim(dim);
  Values parts;
  if (s.low > 0) {
    parts.push_back(mode == Mode::reflection ? reverse(slice_in_dim(x, dim, 1, s.low + 1), {dim})
                                             : repeated(slice_in_dim(x, dim, 0, 1), dim, s.low));
  }
  parts.push_back(slice_in_dim(x, dim, s.crop_low, n - s.crop_high));
  if (s.high > 0) {
    parts.push_back(mode == Mode::reflection
                        ? reverse(slice_in_dim(x, dim, n - 1 - s.high, n - 1), {dim})
                        : repeated(slice_in_dim(x, dim, n - 1, n), dim, s.high));
  }
  return parts.size() == 1 ? parts[0] : hlo::concatenate(parts, dim);
}

// The transpose of `padded`: each part of g is added where it came from, in an array of n positions
// along `dim`.
Value folded(Value g, int64_t dim, int64_t n, Mode mode, const Sides& s) {
  const int64_t size = g.dim(dim);
  const Value zero = scalar(g, 0);
  auto at = [&](Value part, int64_t start) {
    return pad_dim(part, zero, dim, start, n - start - part.dim(dim));
  };
  Value dx = at(slice_in_dim(g, dim, s.low, size - s.high), s.crop_low);
  if (s.low > 0) {
    Value part = slice_in_dim(g, dim, 0, s.low);
    dx = dx + (mode == Mode::reflection ? at(reverse(part, {dim}), 1)
                                        : at(hlo::sum(part, {dim}, hlo::keep_dims), 0));
  }
  if (s.high > 0) {
    Value part = slice_in_dim(g, dim, size - s.high, size);
    dx = dx + (mode == Mode::reflection ? at(reverse(part, {dim}), n - 1 - s.high)
                                        : at(hlo::sum(part, {dim}, hlo::keep_dims), n - 1));
  }
  return dx;
}

template <Mode M>
Value pad(Value x, const Dims& padding) {
  const auto n = static_cast<int64_t>(padding.size() / 2);
  for (int64_t i = 0; i < n; ++i) {
    x = padded(x, x.rank() - 1 - i, M, Sides(padding[2 * i], padding[2 * i + 1]));
  }
  return x;
}

template <Mode M>
Value pad_backward(Value grad, Value x, const Dims& padding) {
  Value g = convert(grad, hlo::accumulate_type(grad.dtype()));
  for (int64_t i = static_cast<int64_t>(padding.size() / 2) - 1; i >= 0; --i) {
    const int64_t dim = x.rank() - 1 - i;
    g = folded(g, dim, x.dim(dim), M, Sides(padding[2 * i], padding[2 * i + 1]));
  }
  return convert(g, x.dtype());
}

}  // namespace

void register_pad(Registry& r) {
  r.add("aten::reflection_pad1d", pad<Mode::reflection>);
  r.add("aten::reflection_pad2d", pad<Mode::reflection>);
  r.add("aten::reflection_pad3d", pad<Mode::reflection>);
  r.add("aten::reflection_pad1d_backward", pad_backward<Mode::reflection>);
  r.add("aten::reflection_pad2d_backward", pad_backward<Mode::reflection>);
  r.add("aten::reflection_pad3d_backward", pad_backward<Mode::reflection>);
  r.add("aten::replication_pad1d", pad<Mode::replication>);
  r.add("aten::replication_pad2d", pad<Mode::replication>);
  r.add("aten::replication_pad3d", pad<Mode::replication>);
  r.add("aten::replication_pad1d_backward", pad_backward<Mode::replication>);
  r.add("aten::replication_pad2d_backward", pad_backward<Mode::replication>);
  r.add("aten::replication_pad3d_backward", pad_backward<Mode::replication>);
}

}  // namespace torch_tpu::lower
