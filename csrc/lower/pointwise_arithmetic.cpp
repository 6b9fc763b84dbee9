// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Arithmetic: sums, products, quotients, remainders, powers, rounding, bounds. bool + bool is "or",
// bool * bool is "and"; PyTorch's meta functions refuse bool - bool.
namespace torch_tpu::lower {
namespace {

bool is_bool(Value x) { return x.dtype() == DType::pred; }

// ---- sums and products
// -----------------------------------------------------------------------------------------
Value mul(Value a, Value b) { return is_bool(a) ? a & b : a * b; }

// b * alpha, where a complex alpha of 1 leaves infinities alone: (1 + 0i) * (inf + 0i) has a NaN.
Value scaled(Value b, Value alpha) {
  if (!hlo::is_complex(b.dtype())) return mul(b, alpha);
  return select(alpha == 1, b, b * alpha);
}

// out = a + alpha * b;  alpha  rank-0 operand
Value add(Value a, Value b, Value alpha) {
  return is_bool(a) ? a | scaled(b, alpha) : a + scaled(b, alpha);
}
Value sub(Value a, Value b, Value alpha) { return a - scaled(b, alpha); }
Value rsub(Value a, Value b, Value alpha) { return sub(b, a, alpha); }

// out = min(max(a + alpha * b, 0), the largest finite value of a's own dtype), promoted as add.
//   a  signed integers, f32, f64     alpha  rank-0 operand; its fraction is dropped for integers
// inf gives the bound, NaN stays (CPU's vectorized loop keeps it, its scalar one gives 0); an
// integer sum wraps around before it is clamped.
Value add_relu(Context& ctx, Value a, Arg b, Value alpha) {
  const DType own = a.dtype(), t = result_type({a, b}, ctx.default_dtype);
  if (!hlo::is_signed_integral(own) && own != DType::f32 && own != DType::f64)
    throw UserError("Unsupported datatype for add_relu:" + cpp_type_name(own));
  if (hlo::is_complex(t) || t == DType::f16 || t == DType::bf16) refuse("add_clamp_cpu", t);
  // CPU converts alpha and the bound to the result's dtype: a complex alpha, and a rank-0 `a` that
  // is wider than the result, do not fit.
  const bool same_kind = hlo::is_floating(own) == hlo::is_floating(t);
  if (hlo::is_complex(alpha.dtype()) || (same_kind && hlo::itemsize(own) > hlo::itemsize(t))) {
    refuse_overflow(t);
  }
  const Value bound = convert(max_finite(a.builder(), own), t);
  const Value y = convert(a, t) + convert(alpha, t) * convert(as_value(b), t);
  return hlo::minimum(maximum(y, 0), bound);
}

// out = self + value * a * b
Value addcmul(Value self, Value a, Value b, Value value) {
  require_not_bool("addcmul_cpu_out", self);
  return self + scaled(a, value) * b;
}
// out = self + value * a / b
Value addcdiv(Value self, Value a, Value b, Value value) { return self + scaled(a, value) / b; }

// out = beta * self + alpha * vec1 vec2^T;  vec1 [n], vec2 [m], self broadcasts to [n, m]. With
// beta = 0 self counts for nothing, NaN included. bool: "or" and "and". Empty vectors give an empty
// matrix.
Value addr(Value self, Value vec1, Value vec2, Value beta, Value alpha) {
  const Value product = mul(alpha, mul(unsqueeze(vec1, 1), unsqueeze(vec2, 0)));
  const Value s = broadcast_to(self, product.dims());
  const Value zero = hlo::constant(s.builder(), s.dtype(), int64_t{0});
  const Value term = select(is_bool(beta) ? ~beta : beta == zero, zero, mul(beta, s));
  return is_bool(term) ? term | product : term + product;
}

// out = a + w (b - a), written from the nearer end so that w = 0 and w = 1 give a and b exactly.
Value lerp(Value a, Value b, Value w) {
  const Value one = scalar(w, 1);
  return select(abs(w) < 0.5, a + w * (b - a), b - (b - a) * (one - w));
}

// ---- quotients
// -------------------------------------------------------------------------------------------------
// Integers: x / 0 is an error that CPU raises at once; here it is raised when the host next waits.
void check_divisor(Value b) {
  if (!hlo::is_floating(b.dtype())) {
    b.builder().check(any(flatten(b == 0), {0}), "RuntimeError: ZeroDivisionError");
  }
}

// C's remainder has the dividend's sign: whether a floor or modulus must be moved by one divisor.
Value differs_in_sign(Value r, Value b) { return (r != 0) & ((r < 0) ^ (b < 0)); }

// floor(a / b), as CPython computes it for floating: from the exact fmod, then snapped to the
// nearest integer.
//   b = 0 gives a / 0 (inf or NaN); an infinite a gives NaN; a zero has the sign of a / b.
Value floor_div(Value a, Value b) {
  require_real_number("div_floor_cpu", a);
  check_divisor(b);
  const Value r = remainder(a, b);
  if (!hlo::is_floating(a.dtype())) {
    const Value q = a / b;
    return hlo::is_unsigned(a.dtype()) ? q : select(differs_in_sign(r, b), q - 1, q);
  }
  Value q = (a - r) / b;
  q = select(differs_in_sign(r, b), q - 1, q);
  const Value f = hlo::floor(q);
  const Value snapped = select(q - f > 0.5, f + 1, f);
  const Value quotient = a / b;
  return select(b == 0, quotient, select(q != 0, snapped, copysign(zeros_like(q), quotient)));
}

Value trunc_div(Value a, Value b) {
  require_real_number("div_trunc_cpu", a);
  check_divisor(b);
  return trunc(a / b);
}

Value fmod(Value a, Value b) {
  require_real_number("fmod_cpu", a);
  check_divisor(b);
  return remainder(a, b);
}

// a - b * floor(a / b): the divisor's sign (Python's %).
Value modulus(Value a, Value b) {
  require_real_number("remainder_cpu", a);
  check_divisor(b);
  const Value r = remainder(a, b);
  return hlo::is_unsigned(a.dtype()) ? r : select(differs_in_sign(r, b), r + b, r);
}

// Both operands in the dtype in which `rule` computes; the result in the dtype that it returns.
Value promoting(Context& ctx, const Arg& a, const Arg& b, bool to_float, Value (*f)(Value, Value)) {
  DType t = result_type({a, b}, ctx.default_dtype);
  if (to_float) t = to_floating(t, ctx.default_dtype);
  const DType acc = hlo::accumulate_type(t);
  return convert(f(convert(as_value(a), acc), convert(as_value(b), acc)), t);
}

// rounding_mode: None divides truly (integers become floating); "trunc" and "floor" keep the dtype.
Value div_mode(Context& ctx, Arg a, Arg b, std::optional<std::string> rounding_mode) {
  if (!rounding_mode) return promoting(ctx, a, b, true, hlo::divide);
  return promoting(ctx, a, b, false, *rounding_mode == "floor" ? floor_div : trunc_div);
}

// ---- powers
// ----------------------------------------------------------------------------------------------------
// a ** b. Integers: a negative exponent gives 0 except for a = 1 and a = -1.
Value pow(Value a, Value b) {
  require_not_bool("pow", a);
  return power(a, b);
}

// x ** e for a rank-0 e. CPU computes some exponents by other means, for their speed and their
// values (x ** 0.5 is sqrt, so -inf gives NaN); here the branch is taken at run time, so that every
// exponent shares one program.
Value pow_scalar(Value x, Value e) {
  if (x.dtype() == DType::pred && e.dtype() == DType::pred) return x | ~e;
  const auto or_else = [&](double exponent, const std::function<Value()>& f,
                           const std::function<Value()>& otherwise) {
    return [=] {
      return hlo::if_(
          e == exponent, [&] { return Values{f()}; }, [&] { return Values{otherwise()}; })[0];
    };
  };
  std::function<Value()> y = [=] { return power(x, e); };
  if (hlo::is_floating(x.dtype())) {
    y = or_else(0.5, [=] { return sqrt(x); }, y);
    y = or_else(-0.5, [=] { return rsqrt(x); }, y);
  }
  y = or_else(3, [=] { return x * x * x; }, y);
  return or_else(2, [=] { return x * x; }, y)();
}

// ---- sign, rounding
// --------------------------------------------------------------------------------------------
Value absolute(Value x) {
  require_not_bool("abs_cpu", x);
  return hlo::is_unsigned(x.dtype()) ? x : abs(x);
}

Value sign(Value x) {
  require_not_complex_or(
      "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn "
      "instead.",
      x);
  return signum(x);
}

// A rounding by `f`; integers are whole already.
template <Value (*f)(Value)>
Value rounded(const std::string& name, Value x) {
  require_not_complex_or(name + " is not supported for complex inputs", x,
                         UserError::Kind::not_implemented);
  require_not_bool(name + "_vml_cpu", x);
  return hlo::is_floating(x.dtype()) ? f(x) : x;
}
Value floor(Value x) { return rounded<hlo::floor>("floor", x); }
Value ceil(Value x) { return rounded<hlo::ceil>("ceil", x); }
Value truncate(Value x) { return rounded<trunc>("trunc", x); }
Value round(Value x) {
  require_not_complex("round_vml_cpu", x);
  return rounded<hlo::round_nearest_even>("round", x);
}

// round(x 10^d) / 10^d in x's own dtype, each step rounded to it, as the CPU kernel does.
Value round_decimals(Value x, int64_t decimals) {
  require_floating(decimals == 0 ? "round_vml_cpu" : "round_cpu", x);
  const Value ten = scalar(x, std::pow(10.0, static_cast<double>(std::abs(decimals))));
  if (decimals == 0) return round_nearest_even(x);
  return decimals < 0 ? round_nearest_even(x / ten) * ten : round_nearest_even(x * ten) / ten;
}

Value frac(Value x) {
  require_floating("frac_cpu", x);
  return x - trunc(x);
}

// ---- bounds
// ----------------------------------------------------------------------------------------------------
Value larger(Value a, Value b) {
  require_not_complex_or("maximum not implemented for complex tensors.", a);
  return is_bool(a) ? a | b : maximum(a, b);
}
Value smaller(Value a, Value b) {
  require_not_complex_or("minimum not implemented for complex tensors.", a);
  return is_bool(a) ? a & b : minimum(a, b);
}

// The other operand where one is NaN.
Value fmax(Value a, Value b) {
  require_not_complex_or("fmax not implemented for complex tensors.", a);
  return select(is_nan(a), b, select(is_nan(b), a, larger(a, b)));
}
Value fmin(Value a, Value b) {
  require_not_complex_or("fmin not implemented for complex tensors.", a);
  return select(is_nan(a), b, select(is_nan(b), a, smaller(a, b)));
}

// min(max(x, lo), hi): NaN in any operand gives NaN; hi wins where lo > hi.
Value clamp(Value x, std::optional<Value> lo, std::optional<Value> hi) {
  require_not_complex_or("clamp is not supported for complex types", x,
                         UserError::Kind::not_implemented);
  require_not_bool("clamp_cpu", x);
  if (lo) x = maximum(x, *lo);
  if (hi) x = minimum(x, *hi);
  return x;
}
Value clamp_min(Value x, Value lo) { return clamp(x, lo, std::nullopt); }
Value clamp_max(Value x, Value hi) { return clamp(x, std::nullopt, hi); }

// NaN -> nan (default 0), +inf -> posinf, -inf -> neginf (default: the largest and smallest finite
// values of x's dtype). Works in x's own dtype, so that "largest" is that of bf16 and not of f32.
// Integers have nothing to replace.
Value nan_to_num(Value x, std::optional<Value> nan, std::optional<Value> posinf,
                 std::optional<Value> neginf) {
  if (hlo::is_complex(x.dtype())) {
    return complex(nan_to_num(real(x), nan, posinf, neginf),
                   nan_to_num(imag(x), nan, posinf, neginf));
  }
  if (!hlo::is_floating(x.dtype())) return x;
  const auto or_else = [&](std::optional<Value> v, Value other) {
    return v ? convert(*v, x.dtype()) : other;
  };
  const Value inf = scalar(x, INFINITY);
  const Value y = select(x == inf, or_else(posinf, max_finite(x.builder(), x.dtype())),
                         select(x == -inf, or_else(neginf, min_finite(x.builder(), x.dtype())), x));
  return select(is_nan(x), or_else(nan, scalar(x, 0)), y);
}

// ---- integers
// --------------------------------------------------------------------------------------------------
// Euclid's algorithm on all elements together, until every remainder is 0.
Value gcd(Value a, Value b) {
  require_integral("gcd_cpu", a);
  std::tie(a, b) = broadcast(absolute(a), absolute(b));
  const auto pending = [](const Values& v) { return any(flatten(v[1] != 0), {0}); };
  const auto step = [](const Values& v) -> Values {
    const Value go = v[1] != 0;
    return {select(go, v[1], v[0]), select(go, remainder(v[0], v[1]), v[1])};
  };
  return hlo::while_({a, b}, pending, step)[0];
}

// |a / gcd * b|, 0 where both are 0.
Value lcm(Value a, Value b) {
  require_integral("lcm_cpu", a);
  const Value g = gcd(a, b);
  return select(g == 0, zeros_like(g), absolute(a / maximum(g, 1) * b));
}

}  // namespace

void register_pointwise_arithmetic(Registry& r) {
  using enum Promote;
  for (const char* overload : {"Tensor", "Scalar"}) {
    const auto name = [&](const char* op) { return std::string("aten::") + op + "." + overload; };
    r.pointwise(name("add"), arithmetic, 2, add);
    r.pointwise(name("sub"), arithmetic, 2, sub);
    r.pointwise(name("rsub"), arithmetic, 2, rsub);
    r.pointwise(name("mul"), arithmetic, 2, mul);
    r.pointwise(name("div"), to_floating, 2, hlo::divide);
    r.pointwise(name("fmod"), arithmetic, 2, fmod);
    r.pointwise(name("remainder"), arithmetic, 2, modulus);
    r.pointwise(name("lerp"), arithmetic, overload[0] == 'T' ? 3 : 2,
                [](Value a, Value b, Value w) {
                  require_inexact("lerp_kernel_scalar", a);
                  return lerp(a, b, w);
                });
  }
  r.pointwise("aten::remainder.Scalar_Tensor", arithmetic, 2, modulus);
  r.add("aten::_add_relu.Tensor", add_relu);
  r.add("aten::_add_relu.Scalar", add_relu);
  r.add("aten::div.Tensor_mode", div_mode);
  r.add("aten::div.Scalar_mode", div_mode);
  r.pointwise("aten::floor_divide", arithmetic, 2, floor_div);
  r.pointwise("aten::floor_divide.Scalar", arithmetic, 2, floor_div);
  r.pointwise("aten::addcmul", arithmetic, 3, addcmul);
  r.pointwise("aten::addcdiv", arithmetic, 3, addcdiv);
  r.pointwise("aten::addr", arithmetic, 3, addr);

  r.pointwise("aten::pow.Tensor_Tensor", arithmetic, 2, pow);
  r.pointwise("aten::pow.Scalar", arithmetic, 2, pow);
  r.pointwise("aten::pow.Tensor_Scalar", arithmetic, 2, pow_scalar);
  r.pointwise("aten::reciprocal", to_floating, 1, [](Value x) { return ones_like(x) / x; });

  r.pointwise("aten::abs", to_real, 1, absolute);
  r.pointwise("aten::neg", arithmetic, 1, hlo::negate);
  r.pointwise("aten::sign", arithmetic, 1, sign);
  r.pointwise("aten::floor", arithmetic, 1, floor);
  r.pointwise("aten::ceil", arithmetic, 1, ceil);
  r.pointwise("aten::round", arithmetic, 1, round);
  r.add("aten::round.decimals", round_decimals);
  r.pointwise("aten::trunc", arithmetic, 1, truncate);
  r.pointwise("aten::frac", arithmetic, 1, frac);

  r.pointwise("aten::maximum", arithmetic, 2, larger);
  r.pointwise("aten::minimum", arithmetic, 2, smaller);
  r.pointwise("aten::fmax", arithmetic, 2, fmax);
  r.pointwise("aten::fmin", arithmetic, 2, fmin);
  r.pointwise("aten::clamp", arithmetic, 3, clamp);
  r.pointwise("aten::clamp.Tensor", arithmetic, 3, clamp);
  r.pointwise("aten::clamp_min", arithmetic, 2, clamp_min);
  r.pointwise("aten::clamp_min.Tensor", arithmetic, 2, larger);
  r.pointwise("aten::clamp_max", arithmetic, 2, clamp_max);
  r.pointwise("aten::clamp_max.Tensor", arithmetic, 2, smaller);
  r.add("aten::nan_to_num", nan_to_num);

  r.pointwise("aten::gcd", arithmetic, 2, gcd);
  r.pointwise("aten::lcm", arithmetic, 2, lcm);
}

}  // namespace torch_tpu::lower
