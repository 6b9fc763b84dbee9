// SPDX-License-Identifier: Apache-2.0
#include "lower/random.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

namespace torch_tpu::lower {
namespace {

// x >> n for unsigned x
Value shifted(Value x, int n) {
  return shift_right_logical(x,
                             hlo::broadcast_to(hlo::constant(x.builder(), x.dtype(), n), x.dims()));
}

// 2 k + 1 - 2^bits as a float, times 2^-bits: k of `bits` bits gives odd multiples of 2^-bits in
// (-1, 1), exactly.
Value centred(Value k, int bits, DType t) {
  Value i = convert(k, t == DType::f64 ? DType::s64 : DType::s32);
  i = i + i + hlo::constant(k.builder(), i.dtype(), 1 - (int64_t{1} << bits));
  return convert(i, t) * std::ldexp(1.0, -bits);
}

DType bits_for(DType t) { return t == DType::f64 ? DType::u64 : DType::u32; }
int width_of(DType t) { return t == DType::f64 ? 64 : 32; }

Value open_unit_of(Value bits, DType t) {
  const int digits = t == DType::f64 ? 52 : 23;
  Value k = shifted(bits, width_of(t) - digits);
  k = k + k + hlo::constant(bits.builder(), k.dtype(), 1);
  return convert(k, t) * std::ldexp(1.0, -digits - 1);
}

Value standard_normal_of(Value bits, DType t) {
  const int digits = t == DType::f64 ? 53 : 24;
  return hlo::erf_inv(centred(shifted(bits, width_of(t) - digits), digits, t)) *
         std::numbers::sqrt2;
}

Value next_bits(Value& stream, DType t, const Dims& dims) {
  const hlo::Type type{bits_for(t), dims};
  if (type.numel() == 0) return hlo::full(stream.builder(), type, 0);
  auto [next, bits] = hlo::rng_bit_generator(stream, type);
  stream = next;
  return bits;
}

}  // namespace

Value random_bits(Context& ctx, DType t, const Dims& dims) {
  const hlo::Type type{t, dims};
  if (type.numel() == 0) return hlo::full(ctx.builder, type, 0);
  return hlo::rng_bit_generator(ctx.draw(type.nbytes() / 4), type).second;
}

Value random_unit(Context& ctx, DType t, const Dims& dims, int digits) {
  const int width = t == DType::f64 ? 64 : 32;
  if (digits == 0) digits = t == DType::f64 ? 53 : 24;
  Value k = shifted(random_bits(ctx, width == 64 ? DType::u64 : DType::u32, dims), width - digits);
  return convert(k, t) * std::ldexp(1.0, -digits);
}

Value random_open_unit(Context& ctx, DType t, const Dims& dims) {
  return open_unit_of(random_bits(ctx, bits_for(t), dims), t);
}

Value random_normal(Context& ctx, DType t, const Dims& dims) {
  return standard_normal_of(random_bits(ctx, bits_for(t), dims), t);
}

Value fresh_stream(Context& ctx) { return random_bits(ctx, DType::u64, {2}); }
Value next_open_unit(Value& stream, DType t, const Dims& dims) {
  return open_unit_of(next_bits(stream, t, dims), t);
}
Value next_normal(Value& stream, DType t, const Dims& dims) {
  return standard_normal_of(next_bits(stream, t, dims), t);
}

Value random_below(Context& ctx, Value range, const Dims& dims) {
  Value bits = random_bits(ctx, DType::u64, dims);
  Value zero = hlo::constant(ctx.builder, DType::u64, 0),
        one = hlo::constant(ctx.builder, DType::u64, 1);
  Value reduced = hlo::remainder(bits, hlo::broadcast_to(hlo::maximum(range, one), dims));
  return select(compare(range, zero, hlo::Compare::eq), bits, reduced);
}

namespace {

using hlo::Compare;

Value number(Context& ctx, DType t, double v) { return hlo::constant(ctx.builder, t, v); }

// Reports a rank-0 number that PyTorch refuses. Its kernels say which number; the program only
// knows that it is wrong.
void expect(Context& ctx, Value holds, const std::string& message) {
  ctx.builder.check(not_(holds), "RuntimeError: " + message);
}

void require_random_float(const char* op, DType t) {
  if (!hlo::is_floating(t) && !hlo::is_complex(t)) refuse(op, t);
}

// ---- floating
// --------------------------------------------------------------------------------------------------

int digits_of(DType t) {
  return t == DType::bf16                      ? 8
         : t == DType::f16                     ? 11
         : t == DType::f64 || t == DType::c128 ? 53
                                               : 24;
}

Value uniform_of(Context& ctx, DType t, const Dims& dims, Value from, Value to) {
  const DType c = random_type(t);
  auto draw = [&] {
    Value low = convert(from, c), high = convert(to, c);
    Value x =
        convert(random_unit(ctx, c, dims, digits_of(t)) * (high - low) + low, hlo::real_type(t));
    // Rounding may reach the end that the interval leaves out.
    Value end = convert(high, x.dtype()), start = convert(low, x.dtype());
    return select(compare(x, hlo::broadcast_to(end, dims), Compare::lt), x,
                  hlo::broadcast_to(start, dims));
  };
  if (!hlo::is_complex(t)) return draw();
  Value re = draw();
  return hlo::complex(re, draw());
}

// mean + std * z; for complex t both parts have variance std^2 / 2.
Value normal_of(Context& ctx, DType t, const Dims& dims, Value mean, Value std) {
  const DType c = random_type(t);
  if (!hlo::is_complex(t))
    return convert(random_normal(ctx, c, dims) * convert(std, c) + convert(mean, c), t);
  Value s = convert(std, c) * (std::numbers::sqrt2 / 2);
  Value re = random_normal(ctx, c, dims) * s, im = random_normal(ctx, c, dims) * s;
  return hlo::complex(re, im) + hlo::broadcast_to(convert(mean, t), dims);
}

// self's shape and dtype, uniform in [from, to).
Value uniform(Context& ctx, Value self, Value from, Value to, Ignored) {
  require_random_float("check_uniform_bounds", self.dtype());
  expect(ctx, compare(from, to, Compare::le),
         "uniform_ expects to return a [from, to) range, but found from > to");
  return uniform_of(ctx, self.dtype(), self.dims(), from, to);
}

// self's shape and dtype, normal.
Value normal_functional(Context& ctx, Value self, Value mean, Value std, Ignored) {
  require_random_float("normal_kernel_cpu", self.dtype());
  expect(ctx, compare(std, number(ctx, DType::f64, 0), Compare::ge), "normal expects std >= 0.0");
  return normal_of(ctx, self.dtype(), self.dims(), mean, std);
}

// Element-wise mean and standard deviation, of which either may be a number; they broadcast
// together.
Value normal_elementwise(Context& ctx, Value mean, Value std, DType t) {
  const Dims dims = hlo::broadcast_dims(mean.dims(), std.dims());
  Value low = compare(std, hlo::zeros_like(std), Compare::lt);
  ctx.builder.check(hlo::any(low, all_dims(low)),
                    "RuntimeError: normal expects all elements of std >= 0.0");
  return normal_of(ctx, t, dims, mean, std);
}
Value normal_Tensor_Tensor(Context& ctx, Value mean, Value std, Ignored) {
  return normal_elementwise(ctx, mean, std, promote_types(mean.dtype(), std.dtype()));
}
Value normal_Tensor_float(Context& ctx, Value mean, Value std, Ignored) {
  return normal_elementwise(ctx, mean, std, mean.dtype());
}
Value normal_float_Tensor(Context& ctx, Value mean, Value std, Ignored) {
  return normal_elementwise(ctx, mean, std, std.dtype());
}
Value normal_float_float(Context& ctx, Value mean, Value std, Dims size, Ignored,
                         std::optional<DType> dtype, Ignored, Ignored, Ignored) {
  expect(ctx, compare(std, number(ctx, DType::f64, 0), Compare::ge), "normal expects std >= 0.0");
  return normal_of(ctx, dtype.value_or(ctx.default_dtype), size, mean, std);
}

Value rand_of(Context& ctx, DType t, const Dims& size) {
  return uniform_of(ctx, t, size, number(ctx, DType::f64, 0), number(ctx, DType::f64, 1));
}
Value randn_of(Context& ctx, DType t, const Dims& size) {
  return normal_of(ctx, t, size, number(ctx, DType::f64, 0), number(ctx, DType::f64, 1));
}
Value rand(Context& ctx, Dims size, std::optional<DType> dtype, Ignored, Ignored, Ignored) {
  return rand_of(ctx, dtype.value_or(ctx.default_dtype), size);
}
Value rand_generator(Context& ctx, Dims size, Ignored, std::optional<DType> dtype, Ignored, Ignored,
                     Ignored) {
  return rand_of(ctx, dtype.value_or(ctx.default_dtype), size);
}
Value randn(Context& ctx, Dims size, std::optional<DType> dtype, Ignored, Ignored, Ignored) {
  return randn_of(ctx, dtype.value_or(ctx.default_dtype), size);
}
Value randn_generator(Context& ctx, Dims size, Ignored, std::optional<DType> dtype, Ignored,
                      Ignored, Ignored) {
  return randn_of(ctx, dtype.value_or(ctx.default_dtype), size);
}
Value rand_like(Context& ctx, Value self, std::optional<DType> dtype, Ignored, Ignored, Ignored,
                Ignored) {
  return rand_of(ctx, dtype.value_or(self.dtype()), self.dims());
}
Value randn_like(Context& ctx, Value self, std::optional<DType> dtype, Ignored, Ignored, Ignored,
                 Ignored) {
  return randn_of(ctx, dtype.value_or(self.dtype()), self.dims());
}

// Density lambd exp(-lambd x), x > 0.
Value exponential(Context& ctx, Value self, Value lambd, Ignored) {
  require_floating("exponential_", self);
  expect(ctx, compare(lambd, number(ctx, DType::f64, 0), Compare::gt),
         "exponential_ expects lambda > 0.0");
  const DType c = random_type(self.dtype());
  return convert(-hlo::log(random_open_unit(ctx, c, self.dims())) / convert(lambd, c),
                 self.dtype());
}

// The number of trials up to the first success: 1, 2, .. Any real dtype but bool.
Value geometric(Context& ctx, Value self, Value p, Ignored) {
  require_real_number("geometric_cpu", self);
  expect(ctx,
         and_(compare(p, number(ctx, DType::f64, 0), Compare::gt),
              compare(p, number(ctx, DType::f64, 1), Compare::lt)),
         "geometric_ expects p to be in (0, 1)");
  const DType c = random_type(self.dtype());
  Value trials =
      hlo::ceil(hlo::log(random_open_unit(ctx, c, self.dims())) / convert(log_plus_one(-p), c));
  return convert(maximum(trials, 1), self.dtype());
}

Value cauchy(Context& ctx, Value self, Value median, Value sigma, Ignored) {
  require_floating("cauchy_cpu", self);
  expect(ctx, compare(sigma, number(ctx, DType::f64, 0), Compare::gt),
         "cauchy_ expects sigma > 0.0");
  const DType c = random_type(self.dtype());
  Value turn = hlo::tan((random_open_unit(ctx, c, self.dims()) - 0.5) * std::numbers::pi);
  return convert(turn * convert(sigma, c) + convert(median, c), self.dtype());
}

Value log_normal(Context& ctx, Value self, Value mean, Value std, Ignored) {
  require_floating("log_normal_cpu", self);
  expect(ctx, compare(std, number(ctx, DType::f64, 0), Compare::gt),
         "log_normal_ expects std > 0.0");
  const DType c = random_type(self.dtype());
  return convert(hlo::exp(random_normal(ctx, c, self.dims()) * convert(std, c) + convert(mean, c)),
                 self.dtype());
}

// ---- integers
// --------------------------------------------------------------------------------------------------

// low, low + 1, .., high - 1, each equally likely, in any real dtype. low, high: rank-0 s64.
Value randint_of(Context& ctx, DType t, const Dims& size, Value low, Value high) {
  Value from = convert(low, DType::s64), to = convert(high, DType::s64);
  expect(ctx, compare(from, to, Compare::lt), "random_ expects 'from' to be less than 'to'");
  Value range = bitcast_convert(to - from, DType::u64);
  return convert(
      bitcast_convert(random_below(ctx, range, size), DType::s64) + hlo::broadcast_to(from, size),
      t);
}

// The largest integer that random_() and random_(from, None) give: the dtype's own, or 2^digits for
// a floating dtype.
int64_t random_max(DType t) {
  if (t == DType::pred) return 1;
  if (hlo::is_floating(t)) return int64_t{1} << digits_of(t);
  const int bits = static_cast<int>(hlo::itemsize(t)) * 8 - (hlo::is_unsigned(t) ? 0 : 1);
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
}

// Integers from 0 to random_max, both included.
Value random(Context& ctx, Value self, Ignored) {
  require_not_complex("random_", self);
  const DType t = self.dtype();
  if (t == DType::u64) return random_bits(ctx, t, self.dims());
  const auto range = static_cast<int64_t>(static_cast<uint64_t>(random_max(t)) +
                                          1);  // 2^63 for int64: wraps to its bits
  Value r = bitcast_convert(hlo::constant(ctx.builder, DType::s64, range), DType::u64);
  return convert(bitcast_convert(random_below(ctx, r, self.dims()), DType::s64), t);
}
Value random_from(Context& ctx, Value self, Value from, std::optional<Value> to, Ignored) {
  require_not_complex("random_", self);
  if (to) return randint_of(ctx, self.dtype(), self.dims(), from, *to);
  Value low = convert(from, DType::s64);
  Value range = hlo::constant(ctx.builder, DType::s64, random_max(self.dtype())) - low +
                hlo::constant(ctx.builder, DType::s64, 1);
  Value k = random_below(ctx, bitcast_convert(range, DType::u64), self.dims());
  return convert(bitcast_convert(k, DType::s64) + hlo::broadcast_to(low, self.dims()),
                 self.dtype());
}
Value random_to(Context& ctx, Value self, Value to, Ignored) {
  require_not_complex("random_", self);
  return randint_of(ctx, self.dtype(), self.dims(), hlo::constant(ctx.builder, DType::s64, 0), to);
}

Value randint(Context& ctx, Value high, Dims size, std::optional<DType> dtype, Ignored, Ignored,
              Ignored) {
  return randint_of(ctx, dtype.value_or(DType::s64), size,
                    hlo::constant(ctx.builder, DType::s64, 0), high);
}
Value randint_generator(Context& ctx, Value high, Dims size, Ignored, std::optional<DType> dtype,
                        Ignored, Ignored, Ignored) {
  return randint_of(ctx, dtype.value_or(DType::s64), size,
                    hlo::constant(ctx.builder, DType::s64, 0), high);
}
Value randint_low(Context& ctx, Value low, Value high, Dims size, std::optional<DType> dtype,
                  Ignored, Ignored, Ignored) {
  return randint_of(ctx, dtype.value_or(DType::s64), size, low, high);
}
Value randint_low_generator(Context& ctx, Value low, Value high, Dims size, Ignored,
                            std::optional<DType> dtype, Ignored, Ignored, Ignored) {
  return randint_of(ctx, dtype.value_or(DType::s64), size, low, high);
}
Value randint_like(Context& ctx, Value self, Value high, std::optional<DType> dtype, Ignored,
                   Ignored, Ignored, Ignored) {
  return randint_of(ctx, dtype.value_or(self.dtype()), self.dims(),
                    hlo::constant(ctx.builder, DType::s64, 0), high);
}
Value randint_like_low(Context& ctx, Value self, Value low, Value high, std::optional<DType> dtype,
                       Ignored, Ignored, Ignored, Ignored) {
  return randint_of(ctx, dtype.value_or(self.dtype()), self.dims(), low, high);
}

// ---- coins
// -----------------------------------------------------------------------------------------------------

// true with probability p, which broadcasts to dims.
Value coins(Context& ctx, Value p, const Dims& dims) {
  const DType c = random_type(p.dtype());
  return compare(random_unit(ctx, c, dims), hlo::broadcast_to(convert(p, c), dims), Compare::lt);
}

// Each element 1 with its own probability self[i]. Floating.
Value bernoulli(Context& ctx, Value self, Ignored) {
  require_floating("bernoulli_tensor_cpu_self_", self);
  Value p = convert(self, hlo::accumulate_type(self.dtype()));
  Value inside =
      and_(compare(p, hlo::zeros_like(p), Compare::ge), compare(p, hlo::ones_like(p), Compare::le));
  ctx.builder.check(not_(hlo::all(inside, all_dims(inside))),
                    "RuntimeError: Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
                    "(Could this error message be improved?  If so, "
                    "please report an enhancement request to PyTorch.)");
  return convert(coins(ctx, p, self.dims()), self.dtype());
}
// self's shape and dtype; p a number, or a tensor that broadcasts.
Value bernoulli_p(Context& ctx, Value self, Value p, Ignored) {
  expect(ctx,
         and_(compare(p, number(ctx, DType::f64, 0), Compare::ge),
              compare(p, number(ctx, DType::f64, 1), Compare::le)),
         "bernoulli_ expects p to be in [0, 1]");
  return convert(coins(ctx, convert(p, random_type(self.dtype())), self.dims()), self.dtype());
}
Value bernoulli_Tensor(Context& ctx, Value self, Value p, Ignored) {
  return convert(coins(ctx, p, self.dims()), self.dtype());
}

// (self * mask / (1 - p), mask): mask true with probability 1 - p; p = 1 gives zeros. Without
// `train`: self and all true.
std::pair<Value, Value> native_dropout(Context& ctx, Value input, Value p,
                                       std::optional<bool> train) {
  if (train && !*train) return {input, hlo::full(ctx.builder, {DType::pred, input.dims()}, 1)};
  const DType c = hlo::accumulate_type(input.dtype());
  Value keep = number(ctx, p.dtype(), 1) - p;
  Value mask = coins(ctx, convert(keep, random_type(input.dtype())), input.dims());
  Value scale =
      convert(select(compare(keep, number(ctx, p.dtype(), 0), Compare::eq), keep, 1.0 / keep), c);
  return {convert(convert(input, c) * convert(mask, c) * scale, input.dtype()), mask};
}
Value native_dropout_backward(Value grad_output, Value mask, Value scale) {
  // A gradient of integers counts as float32, as PyTorch's product with the scale does.
  const DType t = to_floating(grad_output.dtype(), DType::f32), c = hlo::accumulate_type(t);
  return convert(convert(grad_output, c) * convert(mask, c) * convert(scale, c), t);
}

// (out, noise): training scales each x <= 0 by its own noise, uniform in [lower, upper), and noise
// is 1 elsewhere; otherwise all x <= 0 are scaled by the middle and noise stays.
std::pair<Value, Value> rrelu_with_noise(Context& ctx, Value self, Value noise, Value lower,
                                         Value upper, bool training, Ignored) {
  const DType c = hlo::accumulate_type(self.dtype());
  Value x = convert(self, c), negative = compare(x, hlo::zeros_like(x), Compare::le);
  Value low = convert(lower, c), high = convert(upper, c);
  if (!training)
    return {convert(select(negative, x * ((low + high) * 0.5), x), self.dtype()), noise};
  Value slope = select(negative, uniform_of(ctx, c, self.dims(), low, high), hlo::ones_like(x));
  return {convert(x * slope, self.dtype()), convert(slope, noise.dtype())};
}

// What the generator's next draw in this program starts from, u64[2]: for a graph that draws the
// same again (Graph::Node::random_state).
Value rng_state(Context& ctx) { return ctx.draw(0); }

}  // namespace

void register_random(Registry& r) {
  r.add_random("tpu::rng_state", rng_state);
  r.add_random("aten::uniform", uniform);
  r.add_random("aten::normal_functional", normal_functional);
  r.add_random("aten::normal.Tensor_Tensor", normal_Tensor_Tensor);
  r.add_random("aten::normal.Tensor_float", normal_Tensor_float);
  r.add_random("aten::normal.float_Tensor", normal_float_Tensor);
  r.add_random("aten::normal.float_float", normal_float_float);
  r.add_random("aten::rand", rand);
  r.add_random("aten::rand.generator", rand_generator);
  r.add_random("aten::randn", randn);
  r.add_random("aten::randn.generator", randn_generator);
  r.add_random("aten::rand_like", rand_like);
  r.add_random("aten::randn_like", randn_like);
  r.add_random("aten::exponential", exponential);
  r.add_random("aten::geometric", geometric);
  r.add_random("aten::cauchy", cauchy);
  r.add_random("aten::log_normal", log_normal);
  r.add_random("aten::random", random);
  r.add_random("aten::random.from", random_from);
  r.add_random("aten::random.to", random_to);
  r.add_random("aten::randint", randint);
  r.add_random("aten::randint.generator", randint_generator);
  r.add_random("aten::randint.low", randint_low);
  r.add_random("aten::randint.low_generator", randint_low_generator);
  r.add_random("aten::randint_like", randint_like);
  r.add_random("aten::randint_like.low_dtype", randint_like_low);
  r.add_random("aten::bernoulli", bernoulli);
  r.add_random("aten::bernoulli.p", bernoulli_p);
  r.add_random("aten::bernoulli.Tensor", bernoulli_Tensor);
  r.add_random("aten::native_dropout", native_dropout);
  r.add("aten::native_dropout_backward", native_dropout_backward);
  r.add_random("aten::rrelu_with_noise_functional", rrelu_with_noise);
}

}  // namespace torch_tpu::lower
