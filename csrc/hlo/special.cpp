// SPDX-License-Identifier: Apache-2.0
#include "hlo/attribute.h"
#include "hlo/ops.h"

// chlo's operations: the plugin expands them into StableHLO.
namespace torch_tpu::hlo {
namespace {

// 8-bit floats are computed in f32: no plugin expands erfc and bessel_i1e for them, and one hangs
// on asinh.
Value unary(std::string_view op, Value x, bool complex_too) {
  const DType t = x.dtype();
  if (!is_floating(t) && !(complex_too && is_complex(t))) dtype_not_supported(op, {x});
  if (itemsize(t) == 1) return convert(unary(op, convert(x, DType::f32), false), t);
  return emit1(op, {x}, "", x.type());
}

Value binary(std::string_view op, Value a, Value b) {
  require_same_dtype(op, {a, b});
  if (!is_floating(a.dtype())) dtype_not_supported(op, {a, b});
  auto [x, y] = broadcast(a, b);
  return emit1(op, {x, y}, "", x.type());
}

}  // namespace

Value erf(Value x) { return unary("chlo.erf", x, false); }
Value erfc(Value x) { return unary("chlo.erfc", x, false); }
Value erf_inv(Value x) { return unary("chlo.erf_inv", x, false); }
Value lgamma(Value x) { return unary("chlo.lgamma", x, false); }
Value digamma(Value x) { return unary("chlo.digamma", x, false); }
Value polygamma(Value n, Value x) { return binary("chlo.polygamma", n, x); }
Value zeta(Value x, Value q) { return binary("chlo.zeta", x, q); }
Value sinh(Value x) { return unary("chlo.sinh", x, true); }
Value cosh(Value x) { return unary("chlo.cosh", x, true); }
Value asin(Value x) { return unary("chlo.asin", x, true); }
Value acos(Value x) { return unary("chlo.acos", x, true); }
// lammps-jax-pjrt-cpu 0.11.2 gets chlo.atan, which is atan2 of a constant one, wrong for arrays of
// some 50 elements (2.5 off, any dtype); with a one that it cannot see it is right.
Value atan(Value x) {
  if (is_complex(x.dtype())) return unary("chlo.atan", x, true);
  return atan2(
      x, broadcast_to(optimization_barrier({constant(x.builder(), x.dtype(), 1.0)})[0], x.dims()));
}
Value asinh(Value x) { return unary("chlo.asinh", x, true); }
Value acosh(Value x) { return unary("chlo.acosh", x, true); }
Value atanh(Value x) { return unary("chlo.atanh", x, true); }
Value bessel_i1e(Value x) { return unary("chlo.bessel_i1e", x, false); }
Value next_after(Value a, Value b) { return binary("chlo.next_after", a, b); }

std::pair<Value, Value> top_k(Value x, int64_t k) {
  if (x.rank() == 0 || k < 0 || k > x.dim(-1))
    fail("chlo.top_k", {x}, "k = " + std::to_string(k) + " is out of range");
  Dims dims = x.dims();
  dims.back() = k;
  Values out = x.builder().emit("chlo.top_k", {x}, "k = " + std::to_string(k) + " : i64",
                                {{x.dtype(), dims}, {DType::s32, dims}});
  return {out[0], out[1]};
}

}  // namespace torch_tpu::hlo
