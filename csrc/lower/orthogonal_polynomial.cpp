// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"

// Orthogonal polynomials of degree n at x, n an operand of its own for every element (its fraction
// is dropped): the three-term recurrence, run until the largest degree. A negative degree gives 0,
// degree 0 gives 1.
namespace torch_tpu::lower {
namespace {

// r = next(k, q, p): the polynomial of degree k + 1 from those of degree k and k - 1.
using Next = std::function<Value(Value k, Value q, Value p)>;

Value recurrence(Value n, Value first, const Next& next) {
  const Value one = ones_like(first), k0 = scalar(n, 1);
  // An element that became NaN is done: no degree brings it back.
  const auto active = [&](Value k, Value q) { return (n > k) & ~is_nan(q); };
  const Values last = hlo::while_(
      {k0, first, one}, [&](const Values& v) { return any(flatten(active(v[0], v[1])), {0}); },
      [&](const Values& v) -> Values {
        const Value go = active(v[0], v[1]);
        return {v[0] + 1, select(go, next(v[0], v[1], v[2]), v[1]), select(go, v[1], v[2])};
      });
  const Value low = select(n == 0, one, zeros_like(n));
  return select(n >= 1, last[1], low);
}

// Degrees as whole numbers; NaN, and for safety what no loop could reach, is none.
Value degree(Value n) {
  n = trunc(n);
  return select(is_finite(n), n, full_like(n, -1));
}

using Angle = std::function<Value(Value n, Value theta)>;

// A Chebyshev polynomial: p_1 given, p_{k+1} = 2x p_k - p_{k-1}; inside (-1, 1) from degree 9 on
// its trigonometric form, which needs no loop; at 1 and -1 its known values.
Value chebyshev(Value x0, Value n0, const std::function<Value(Value x)>& first, const Angle& inside,
                const Angle& at_one, const Angle& at_minus_one) {
  auto [x, n] = broadcast(x0, degree(n0));
  const Value is_end = abs(x) == 1, by_angle = (abs(x) < 1) & (n > 8);
  const Value looped = recurrence(select(is_end | by_angle, zeros_like(n), n), first(x),
                                  [x = x](Value, Value q, Value p) { return 2.0 * x * q - p; });
  const Value safe = select(by_angle, x, zeros_like(x));
  const Value even = remainder(n, scalar(n, 2)) == 0;
  const Value sign = select(even, ones_like(n), full_like(n, -1));
  const Value ends = select(x > 0, at_one(n, sign), at_minus_one(n, sign));
  const Value y = select(is_end, ends, select(by_angle, inside(n, acos(safe)), looped));
  return select(n < 0, zeros_like(y), y);
}

// T: cos(n t).  U: sin((n + 1) t) / sin t.  V: cos((n + 1/2) t) / cos(t / 2).  W: sin((n + 1/2) t)
// / sin(t / 2).
Value chebyshev_t(Value x, Value n) {
  return chebyshev(
      x, n, [](Value x) { return x; }, [](Value n, Value t) { return cosine(n * t); },
      [](Value n, Value) { return ones_like(n); }, [](Value, Value sign) { return sign; });
}
Value chebyshev_u(Value x, Value n) {
  return chebyshev(
      x, n, [](Value x) { return 2.0 * x; },
      [](Value n, Value t) { return sine((n + 1) * t) / sine(t); },
      [](Value n, Value) { return n + 1; }, [](Value n, Value sign) { return sign * (n + 1); });
}
Value chebyshev_v(Value x, Value n) {
  return chebyshev(
      x, n, [](Value x) { return 2.0 * x - 1; },
      [](Value n, Value t) { return cosine((n + 0.5) * t) / cosine(t / 2); },
      [](Value n, Value) { return ones_like(n); },
      [](Value n, Value sign) { return sign * (2.0 * n + 1); });
}
Value chebyshev_w(Value x, Value n) {
  return chebyshev(
      x, n, [](Value x) { return 2.0 * x + 1; },
      [](Value n, Value t) { return sine((n + 0.5) * t) / sine(t / 2); },
      [](Value n, Value) { return 2.0 * n + 1; }, [](Value, Value sign) { return sign; });
}

// Shifted: of 2x - 1.
template <Value (*f)(Value, Value)>
Value shifted(Value x, Value n) {
  return f(2.0 * x - 1, n);
}

// The degree above which CPU gives NaN: the values no longer fit the dtype.
Value hermite_limit(Value n, Value y) {
  return select(n > (n.dtype() == DType::f64 ? 512.0 : 128.0), full_like(y, NAN), y);
}
// H_{k+1} = 2x H_k - 2k H_{k-1}
Value hermite_h(Value x0, Value n0) {
  auto [x, n] = broadcast(x0, degree(n0));
  return hermite_limit(n, recurrence(minimum(n, 512), 2.0 * x, [x = x](Value k, Value q, Value p) {
                         return 2.0 * x * q - 2.0 * k * p;
                       }));
}
// He_{k+1} = x He_k - k He_{k-1}
Value hermite_he(Value x0, Value n0) {
  auto [x, n] = broadcast(x0, degree(n0));
  return hermite_limit(n, recurrence(minimum(n, 512), x,
                                     [x = x](Value k, Value q, Value p) { return x * q - k * p; }));
}
// (k + 1) L_{k+1} = (2k + 1 - x) L_k - k L_{k-1}
Value laguerre_l(Value x0, Value n0) {
  auto [x, n] = broadcast(x0, degree(n0));
  return recurrence(
      select((x == 0) & (n > 0), zeros_like(n), n), 1.0 - x,
      [x = x](Value k, Value q, Value p) { return ((2.0 * k + 1 - x) * q - k * p) / (k + 1); });
}
// (k + 1) P_{k+1} = (2k + 1) x P_k - k P_{k-1};  1 or (-1)^n at the ends.
Value legendre_p(Value x0, Value n0) {
  auto [x, n] = broadcast(x0, degree(n0));
  const Value is_end = abs(x) == 1;
  const Value inner = recurrence(
      select(is_end & (n > 0), zeros_like(n), n), x,
      [x = x](Value k, Value q, Value p) { return ((2.0 * k + 1) * x * q - k * p) / (k + 1); });
  const Value odd = remainder(n, scalar(n, 2)) == 1;
  return select(is_end & odd & (x < 0), -inner, inner);
}

}  // namespace

void register_orthogonal_polynomial(Registry& r) {
  const auto add = [&](const std::string& name, Value (*f)(Value, Value)) {
    for (const char* overload : {"", ".x_scalar", ".n_scalar"}) {
      r.pointwise("aten::special_" + name + overload, Promote::to_floating, 2, f);
    }
  };
  add("chebyshev_polynomial_t", chebyshev_t);
  add("chebyshev_polynomial_u", chebyshev_u);
  add("chebyshev_polynomial_v", chebyshev_v);
  add("chebyshev_polynomial_w", chebyshev_w);
  add("shifted_chebyshev_polynomial_t", shifted<chebyshev_t>);
  add("shifted_chebyshev_polynomial_u", shifted<chebyshev_u>);
  add("shifted_chebyshev_polynomial_v", shifted<chebyshev_v>);
  add("shifted_chebyshev_polynomial_w", shifted<chebyshev_w>);
  add("hermite_polynomial_h", hermite_h);
  add("hermite_polynomial_he", hermite_he);
  add("laguerre_polynomial_l", laguerre_l);
  add("legendre_polynomial_p", legendre_p);
}

}  // namespace torch_tpu::lower
