// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/attribute.h"
#include "hlo/ops.h"

// Linear algebra, Fourier transforms and random bits.
namespace torch_tpu::hlo {
namespace {

std::string_view text(bool b) { return b ? "true" : "false"; }

void require_square(std::string_view op, Value a) {
  if (a.rank() < 2 || a.dim(-1) != a.dim(-2)) fail(op, {a}, "square matrices are needed");
  if (!is_floating(a.dtype()) && !is_complex(a.dtype())) dtype_not_supported(op, {a});
}

}  // namespace

Value cholesky(Value x, bool lower) {
  require_square("cholesky", x);
  return emit1("stablehlo.cholesky", {x}, "lower = " + std::string(text(lower)), x.type());
}

Value triangular_solve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal,
                       Transpose transpose_a) {
  const std::string_view op = "triangular_solve";
  require_same_dtype(op, {a, b});
  require_square(op, a);
  if (a.rank() != b.rank() || a.dim(-1) != b.dim(left_side ? -2 : -1) ||
      !std::equal(a.dims().begin(), a.dims().end() - 2, b.dims().begin())) {
    fail(op, {a, b}, "shapes do not fit");
  }
  constexpr std::string_view kNames[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  return emit1("stablehlo.triangular_solve", {a, b},
               "left_side = " + std::string(text(left_side)) + ", lower = " +
                   std::string(text(lower)) + ", transpose_a = #stablehlo<transpose " +
                   std::string(kNames[static_cast<int>(transpose_a)]) +
                   ">, unit_diagonal = " + std::string(text(unit_diagonal)),
               b.type());
}

Value fft(Value x, FftType type, const Dims& fft_length) {
  const std::string_view op = "fft";
  const int64_t n = static_cast<int64_t>(fft_length.size());
  if (n < 1 || n > 3 || n > x.rank())
    fail(op, {x}, "lengths " + str(fft_length) + ": one to three are needed");
  Type result{x.dtype(), x.dims()};
  const bool takes_real = type == FftType::rfft;
  if (takes_real ? x.dtype() != DType::f32 && x.dtype() != DType::f64 : !is_complex(x.dtype())) {
    dtype_not_supported(op, {x});
  }
  if (takes_real) result.dtype = complex_type(x.dtype());
  if (type == FftType::irfft) result.dtype = real_type(x.dtype());
  for (int64_t i = 0; i < n; ++i) {
    const bool halved = type == FftType::irfft && i == n - 1;
    const int64_t want = halved ? fft_length[i] / 2 + 1 : fft_length[i];
    if (x.dim(i - n) != want) fail(op, {x}, "lengths " + str(fft_length) + " do not fit");
  }
  if (type == FftType::rfft) result.dims.back() = fft_length.back() / 2 + 1;
  if (type == FftType::irfft) result.dims.back() = fft_length.back();
  constexpr std::string_view kNames[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  return emit1("stablehlo.fft", {x},
               "fft_length = " + i64_array(fft_length) + ", fft_type = #stablehlo<fft_type " +
                   std::string(kNames[static_cast<int>(type)]) + ">",
               result);
}

std::pair<Value, Value> rng_bit_generator(Value state, const Type& type) {
  if (state.type() != Type{DType::u64, {2}})
    fail("rng_bit_generator", {state}, "the state must be u64[2]");
  if (!is_unsigned(type.dtype)) fail("rng_bit_generator", {state}, type.str() + " is not unsigned");
  Values out = state.builder().emit("stablehlo.rng_bit_generator", {state},
                                    "rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>",
                                    {state.type(), type});
  return {out[0], out[1]};
}

}  // namespace torch_tpu::hlo
