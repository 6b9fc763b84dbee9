// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "lower/args.h"

// Where pooling windows lie. The pooled dimensions are the last `n` of the operand; what precedes
// them is batch.
namespace torch_tpu::lower {

// PyTorch allows one number for all dimensions.
inline Dims each(Dims v, int64_t n) { return v.size() == 1 ? Dims(n, v[0]) : v; }

struct Pool {
  Dims kernel, stride, padding, dilation;
  bool ceil_mode;

  Pool(int64_t n, const Dims& kernel_, const Dims& stride_, const Dims& padding_,
       const Dims& dilation_, bool ceil)
      : kernel(each(kernel_, n)),
        stride(stride_.empty() ? kernel : each(stride_, n)),
        padding(each(padding_, n)),
        dilation(each(dilation_, n)),
        ceil_mode(ceil) {}

  int64_t n() const { return static_cast<int64_t>(kernel.size()); }
  // Input positions from a window's first to its last.
  int64_t extent(int64_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
  // Windows along pooled dimension i of size `in`. With ceil_mode a last, partial window counts if
  // it starts inside the input or its left padding.
  int64_t size(int64_t i, int64_t in) const {
    const int64_t room = in + 2 * padding[i] - extent(i) + (ceil_mode ? stride[i] - 1 : 0);
    int64_t out = (room < 0 ? -1 : room / stride[i]) + 1;
    if (ceil_mode && (out - 1) * stride[i] >= in + padding[i]) --out;
    return out;
  }
  // How far the last window reaches past the input.
  int64_t high(int64_t i, int64_t in, int64_t out) const {
    return std::max<int64_t>((out - 1) * stride[i] + extent(i) - in - padding[i], 0);
  }
};

// The input range of output o when `in` positions are shared among `out` adaptively.
inline int64_t adaptive_start(int64_t o, int64_t in, int64_t out) { return o * in / out; }
inline int64_t adaptive_end(int64_t o, int64_t in, int64_t out) {
  return ((o + 1) * in + out - 1) / out;
}

// x padded along one dimension.
inline Value pad_dim(Value x, Value value, int64_t dim, int64_t low, int64_t high,
                     int64_t interior = 0) {
  Dims lows(x.rank(), 0), highs(x.rank(), 0), interiors(x.rank(), 0);
  lows[dim] = low;
  highs[dim] = high;
  interiors[dim] = interior;
  return hlo::pad(x, value, lows, highs, interiors);
}

}  // namespace torch_tpu::lower
