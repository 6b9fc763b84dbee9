// SPDX-License-Identifier: Apache-2.0
#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/pool.h"
#include "lower/ranges.h"
#include "lower/registry.h"
#include "lower/require.h"

// Average pooling over the last dimensions, with windows of one size or (adaptive) of shared-out
// sizes, and its gradients. Sums in f32 for 16-bit x; integers divide towards zero. NaN and inf
// stay inside their windows.
namespace torch_tpu::lower {
namespace {

using hlo::accumulate_type;
using hlo::convert;
using hlo::reshape;

Value widen(Value x) { return convert(x, accumulate_type(x.dtype())); }

// The numbers `v` along dimension `dim` of arrays of x's rank; one number where all are equal.
Value along(Value x, int64_t dim, const Dims& v) {
  if (std::all_of(v.begin(), v.end(), [&](int64_t e) { return e == v[0]; })) {
    return hlo::constant(x.builder(), x.dtype(), v.empty() ? int64_t{1} : v[0]);
  }
  Dims dims(x.rank(), 1);
  dims[dim] = v.size();
  return reshape(convert(hlo::literal(x.builder(), DType::s64, v), x.dtype()), dims);
}

// ---- windows of one size
// ------------------------------------------------------------------------------------------

// What each window's sum is divided by: `divisor_override`, or how many positions it covers: with
// count_include_pad those of the padding that the caller asked for too, not those that only
// ceil_mode adds. Broadcasts to the output.
Value divisor(Value like, const Pool& pool, const Dims& in, const Dims& out, bool count_include_pad,
              const std::optional<int64_t>& divisor_override) {
  if (divisor_override) return hlo::constant(like.builder(), like.dtype(), *divisor_override);
  Value all;
  for (int64_t i = 0; i < pool.n(); ++i) {
    Dims counts;
    for (int64_t o = 0; o < out[i]; ++o) {
      const int64_t start = o * pool.stride[i] - pool.padding[i];
      const int64_t end = std::min(start + pool.kernel[i], in[i] + pool.padding[i]);
      counts.push_back(count_include_pad ? end - start
                                         : std::min(end, in[i]) - std::max<int64_t>(start, 0));
    }
    Value n = along(like, like.rank() - pool.n() + i, counts);
    all = all ? all * n : n;
  }
  return all;
}

void require_divisor(const std::optional<int64_t>& divisor_override) {
  if (divisor_override && *divisor_override == 0) throw UserError("divisor must be not zero");
}

Value sum_windows(Value x, const hlo::Window& window) {
  auto add = [](const Values& a, const Values& b) { return Values{a[0] + b[0]}; };
  return hlo::reduce_window({x}, {scalar(x, 0)}, window, add)[0];
}

// out[o] = sum of x over window o / divisor
template <int N>
Value avg_pool(Value x, const Dims& kernel, const Dims& stride, const Dims& padding, bool ceil_mode,
               bool count_include_pad, std::optional<int64_t> divisor_override) {
  require_real_number(N == 2 ? "avg_pool2d" : "avg_pool3d_out_frame", x);
  require_divisor(divisor_override);
  const Pool pool(N, kernel, stride, padding, {1}, ceil_mode);
  const int64_t first = x.rank() - N;
  const Dims in = last_dims(x, N);
  hlo::Window window = hlo::Window::of_rank(x.rank());
  Dims out;
  for (int64_t i = 0; i < N; ++i) {
    out.push_back(pool.size(i, in[i]));
    window.sizes[first + i] = pool.kernel[i];
    window.strides[first + i] = pool.stride[i];
    window.padding[first + i] = {pool.padding[i], pool.high(i, in[i], out[i])};
  }
  Value total = sum_windows(widen(x), window);
  for (int64_t i = 0; i < N; ++i) total = hlo::slice_in_dim(total, first + i, 0, out[i]);
  return convert(total / divisor(total, pool, in, out, count_include_pad, divisor_override),
                 x.dtype());
}

// dx[p] = sum of grad / divisor over the windows that hold p: the windows' grads, spread by the
// stride, summed over windows of the same kernel.
template <int N>
Value avg_pool_backward(Value grad, Value x, const Dims& kernel, const Dims& stride,
                        const Dims& padding, bool ceil_mode, bool count_include_pad,
                        std::optional<int64_t> divisor_override) {
  require_divisor(divisor_override);
  const Pool pool(N, kernel, stride, padding, {1}, ceil_mode);
  const int64_t first = x.rank() - N;
  const Dims in = last_dims(x, N), out = last_dims(grad, N);
  Value g = widen(grad);
  g = g / divisor(g, pool, in, out, count_include_pad, divisor_override);
  hlo::Window window = hlo::Window::of_rank(x.rank());
  for (int64_t i = 0; i < N; ++i) {
    const int64_t k = pool.kernel[i], s = pool.stride[i], low = k - 1 - pool.padding[i];
    g = pad_dim(g, scalar(g, 0), first + i, low, in[i] + k - 1 - low - ((out[i] - 1) * s + 1),
                s - 1);
    window.sizes[first + i] = k;
  }
  return convert(sum_windows(g, window), x.dtype());
}

// ---- adaptive windows
// ----------------------------------------------------------------------------------------------

Dims lengths(const Ranges& ranges) {
  Dims n;
  for (const Range& r : ranges) n.push_back(r.end - r.start);
  return n;
}

Ranges inputs_of_outputs(int64_t in, int64_t out) {
  Ranges ranges;
  for (int64_t o = 0; o < out; ++o)
    ranges.push_back({adaptive_start(o, in, out), adaptive_end(o, in, out)});
  return ranges;
}

// For each input position the outputs whose range holds it: neighbours, as both ends grow with o.
Ranges outputs_of_inputs(int64_t in, int64_t out) {
  Ranges ranges;
  for (int64_t p = 0, first = 0, past = 0; p < in; ++p) {
    while (first < out && adaptive_end(first, in, out) <= p) ++first;
    while (past < out && adaptive_start(past, in, out) <= p) ++past;
    ranges.push_back({first, past});
  }
  return ranges;
}

// out[o] = mean of x over input range o of each pooled dimension
template <int N>
Value adaptive_avg_pool(Value x, const Dims& output_size) {
  require_floating(N == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d_cpu", x);
  Value y = widen(x);
  Value n;
  for (int64_t i = 0; i < N; ++i) {
    const int64_t dim = x.rank() - N + i;
    const Ranges ranges = inputs_of_outputs(x.dim(dim), output_size[i]);
    if (ranges.empty()) {
      Dims dims = y.dims();
      dims[dim] = 0;
      y = hlo::full(y.builder(), {y.dtype(), dims}, 0);
      continue;
    }
    y = sum_ranges(y, dim, ranges);
    Value m = along(y, dim, lengths(ranges));
    n = n ? n * m : m;
  }
  return convert(n ? y / n : y, x.dtype());
}

template <int N>
Value adaptive_avg_pool_backward(Value grad, Value x) {
  Value g = widen(grad);
  if (g.numel() == 0) return hlo::zeros_like(x);
  for (int64_t i = 0; i < N; ++i) {
    const int64_t dim = x.rank() - N + i, in = x.dim(dim), out = grad.dim(dim);
    g = g / along(g, dim, lengths(inputs_of_outputs(in, out)));
    g = sum_ranges(g, dim, outputs_of_inputs(in, out));
  }
  return convert(g, x.dtype());
}

}  // namespace

void register_avg_pool(Registry& r) {
  r.add("aten::avg_pool2d", avg_pool<2>);
  r.add("aten::avg_pool2d_backward", avg_pool_backward<2>);
  r.add("aten::avg_pool3d", avg_pool<3>);
  r.add("aten::avg_pool3d_backward", avg_pool_backward<3>);
  r.add("aten::_adaptive_avg_pool2d", adaptive_avg_pool<2>);
  r.add("aten::_adaptive_avg_pool2d_backward", adaptive_avg_pool_backward<2>);
  r.add("aten::_adaptive_avg_pool3d", adaptive_avg_pool<3>);
  r.add("aten::_adaptive_avg_pool3d_backward", adaptive_avg_pool_backward<3>);
}

}  // namespace torch_tpu::lower
