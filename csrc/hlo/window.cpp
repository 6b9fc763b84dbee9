// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/attribute.h"
#include "hlo/ops.h"

namespace torch_tpu::hlo {
namespace {

int64_t dilated(int64_t n, int64_t dilation) { return n == 0 ? 0 : (n - 1) * dilation + 1; }

// Shape of the array of window positions over x.
Dims window_dims(std::string_view op, Value x, const Window& w) {
  const size_t rank = x.dims().size();
  if (w.sizes.size() != rank || w.strides.size() != rank || w.base_dilations.size() != rank ||
      w.window_dilations.size() != rank || w.padding.size() != rank) {
    fail(op, {x}, "the window has not the operand's rank");
  }
  Dims dims;
  for (size_t i = 0; i < rank; ++i) {
    if (w.sizes[i] < 1 || w.strides[i] < 1 || w.base_dilations[i] < 1 ||
        w.window_dilations[i] < 1) {
      fail(op, {x}, "window sizes, strides and dilations must be positive");
    }
    const int64_t n =
        dilated(x.dims()[i], w.base_dilations[i]) + w.padding[i].first + w.padding[i].second;
    const int64_t size = dilated(w.sizes[i], w.window_dilations[i]);
    dims.push_back(n < size ? 0 : (n - size) / w.strides[i] + 1);
  }
  return dims;
}

// XLA (both CPU plugins) turns a window as long as its dimension and padded on one side by all of
// it but one into a scan by blocks, and for several arrays longer than 256 that rewrite corrupts
// memory. One more place, always padding, keeps the window and its values out of it.
Window kept_from_the_scan_rewrite(Value x, Window w) {
  for (size_t i = 0; i < w.sizes.size(); ++i) {
    const int64_t n = x.dims()[i];
    if (n <= 256 || w.sizes[i] != n || w.strides[i] != 1) continue;
    auto& [low, high] = w.padding[i];
    if (low == n - 1 && high == 0) {
      ++low;
      ++w.sizes[i];
    } else if (low == 0 && high == n - 1) {
      ++high;
      ++w.sizes[i];
    }
  }
  return w;
}

}  // namespace

Window Window::of_rank(int64_t rank) {
  const Dims ones(rank, 1);
  return {ones, ones, ones, ones, std::vector<std::pair<int64_t, int64_t>>(rank, {0, 0})};
}

Values reduce_window(const Values& xs, const Values& inits, const Window& given,
                     const Combine& combine) {
  if (xs.empty() || xs.size() != inits.size())
    throw Error("reduce_window: as many arrays as initial values are needed");
  const Dims dims = window_dims("reduce_window", xs[0], given);
  const Window window = xs.size() > 1 ? kept_from_the_scan_rewrite(xs[0], given) : given;
  std::vector<Type> results, scalars;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].dims() != xs[0].dims()) fail("reduce_window", xs, "shapes differ");
    require_same_dtype("reduce_window", {xs[i], inits[i]});
    require_scalar("reduce_window", inits[i]);
    results.push_back({xs[i].dtype(), dims});
    scalars.push_back({xs[i].dtype(), {}});
  }
  Values operands = xs;
  operands.insert(operands.end(), inits.begin(), inits.end());
  return xs[0].builder().emit(
      "stablehlo.reduce_window", operands,
      "base_dilations = " + i64_array(window.base_dilations) +
          ", padding = " + pair_matrix(window.padding) + ", window_dilations = " +
          i64_array(window.window_dilations) + ", window_dimensions = " + i64_array(window.sizes) +
          ", window_strides = " + i64_array(window.strides),
      results, {combine_region("reduce_window", xs[0].builder(), scalars, combine)});
}

Value select_and_scatter(Value x, Value source, Value init, const Window& window, Compare select) {
  const std::string_view op = "select_and_scatter";
  require_same_dtype(op, {x, source, init});
  require_scalar(op, init);
  for (size_t i = 0; i < window.base_dilations.size(); ++i) {
    if (window.base_dilations[i] != 1 || window.window_dilations[i] != 1)
      fail(op, {x, source}, "windows cannot be dilated");
  }
  if (window_dims(op, x, window) != source.dims())
    fail(op, {x, source}, "source has not the windows' shape");
  Builder& b = x.builder();
  const Type scalar{x.dtype(), {}};
  const std::string choose = b.region(
      {scalar, scalar}, [&](const Values& v) { return Values{compare(v[0], v[1], select)}; });
  const std::string accumulate =
      b.region({scalar, scalar}, [](const Values& v) { return Values{add(v[0], v[1])}; });
  return emit1("stablehlo.select_and_scatter", {x, source, init},
               "padding = " + pair_matrix(window.padding) + ", window_dimensions = " +
                   i64_array(window.sizes) + ", window_strides = " + i64_array(window.strides),
               x.type(), {choose, accumulate});
}

}  // namespace torch_tpu::hlo
