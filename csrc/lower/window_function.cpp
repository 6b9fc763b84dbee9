// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "lower/bessel.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"

// Window functions: n numbers that rise and fall, w(x) of places x = 0 .. m with m = n - 1, or the
// first n of the symmetric window of n + 1 if `periodic`. One element is 1. 16-bit dtypes are
// computed in f32. Eager code uses PyTorch's composition, which the device runs as it is, but for
// kaiser_window, whose composition calls a kernel of the device.
namespace torch_tpu::lower {
namespace {

using std::numbers::pi;
using MaybeDType = std::optional<DType>;

// `w` maps places (floating, [n]) and the last place m to the window.
template <class F>
Value window(Context& ctx, int64_t n, bool periodic, MaybeDType dtype, const F& w) {
  const DType t = dtype.value_or(ctx.default_dtype), acc = hlo::accumulate_type(t);
  if (n <= 1) return hlo::full(ctx.builder, {t, {n}}, 1);
  const Value place = hlo::iota(ctx.builder, {acc, {n}}, 0);
  return convert(w(place, static_cast<double>(periodic ? n : n - 1)), t);
}

// alpha - beta cos(2 pi x / m)
Value cosine_window(Context& ctx, int64_t n, bool periodic, Value alpha, Value beta, MaybeDType t) {
  return window(ctx, n, periodic, t, [&](Value x, double m) {
    const auto weight = [&](Value v) { return broadcast_to(convert(v, x.dtype()), x.dims()); };
    return weight(alpha) - weight(beta) * cosine(x * (2 * pi / m));
  });
}
Value cosine_window(Context& ctx, int64_t n, bool periodic, double alpha, MaybeDType t) {
  const auto number = [&](double v) { return hlo::constant(ctx.builder, DType::f64, v); };
  return cosine_window(ctx, n, periodic, number(alpha), number(1 - alpha), t);
}

Value hann(Context& ctx, int64_t n, bool periodic, MaybeDType t) {
  return cosine_window(ctx, n, periodic, 0.5, t);
}
Value hamming(Context& ctx, int64_t n, bool periodic, MaybeDType t) {
  return cosine_window(ctx, n, periodic, 0.54, t);
}

// 0.42 - 0.5 cos(2 pi x / m) + 0.08 cos(4 pi x / m)
Value blackman(Context& ctx, int64_t n, bool periodic, MaybeDType t) {
  return window(ctx, n, periodic, t, [](Value x, double m) {
    const Value turn = x * (2 * pi / m);
    return 0.42 - 0.5 * cosine(turn) + 0.08 * cosine(2.0 * turn);
  });
}

// 1 - |2 x / m - 1|
Value bartlett(Context& ctx, int64_t n, bool periodic, MaybeDType t) {
  return window(ctx, n, periodic, t, [](Value x, double m) {
    const Value rise = x * (2 / m);
    return select(rise <= 1, rise, 2.0 - rise);
  });
}

// I0(beta sqrt(1 - (2 x / m - 1)^2)) / I0(beta); NaN where I0(beta) overflows, as on CPU.
Value kaiser(Context& ctx, int64_t n, bool periodic, Value beta, MaybeDType t) {
  return window(ctx, n, periodic, t, [&](Value x, double m) {
    const Value b = convert(beta, x.dtype()), off = (x - m / 2) / (m / 2);
    const Value arc = sqrt(maximum(1.0 - off * off, 0));
    return bessel_i0(broadcast_to(b, x.dims()) * arc) / broadcast_to(bessel_i0(b), x.dims());
  });
}
Value kaiser_12(Context& ctx, int64_t n, bool periodic, MaybeDType t) {
  return kaiser(ctx, n, periodic, hlo::constant(ctx.builder, DType::f64, 12.0), t);
}

}  // namespace

void register_window_function(Registry& r) {
  using Window = Value (*)(Context&, int64_t, bool, MaybeDType);
  const auto add = [&](const std::string& op, Window w) {
    r.add("aten::" + op, [w](Context& ctx, int64_t n, MaybeDType t, Ignored, Ignored, Ignored) {
      return w(ctx, n, true, t);
    });
    r.add("aten::" + op + ".periodic",
          [w](Context& ctx, int64_t n, bool periodic, MaybeDType t, Ignored, Ignored, Ignored) {
            return w(ctx, n, periodic, t);
          });
  };
  add("hann_window", hann);
  add("hamming_window", hamming);
  add("blackman_window", blackman);
  add("bartlett_window", bartlett);
  add("kaiser_window", kaiser_12);
  r.add("aten::hamming_window.periodic_alpha", [](Context& ctx, int64_t n, bool periodic,
                                                  Value alpha, MaybeDType t, Ignored, Ignored,
                                                  Ignored) {
    return cosine_window(ctx, n, periodic, alpha, hlo::constant(ctx.builder, DType::f64, 0.46), t);
  });
  r.add("aten::hamming_window.periodic_alpha_beta",
        [](Context& ctx, int64_t n, bool periodic, Value alpha, Value beta, MaybeDType t, Ignored,
           Ignored, Ignored) { return cosine_window(ctx, n, periodic, alpha, beta, t); });
  r.add("aten::kaiser_window.beta",
        [](Context& ctx, int64_t n, bool periodic, Value beta, MaybeDType t, Ignored, Ignored,
           Ignored) { return kaiser(ctx, n, periodic, beta, t); });
}

}  // namespace torch_tpu::lower
