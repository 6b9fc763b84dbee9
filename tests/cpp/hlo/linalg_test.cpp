// SPDX-License-Identifier: Apache-2.0
#include <complex>

#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

class Linalg : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Linalg);

template <typename T>
void expect_near(const Array& got, const std::vector<T>& want) {
  const auto values = got.values<T>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(std::abs(values[i] - want[i]), 2e-5)
        << i << ": " << values[i] << ", want " << want[i];
}

// The triangle that is not asked for holds anything: masked away here.
Value lower_triangle(Value x) {
  const Type places{DType::s32, x.dims()};
  return select(iota(x.builder(), places, -2) >= iota(x.builder(), places, -1), x, zeros_like(x));
}

TEST_P(Linalg, factors_and_solves) {
  Program p;
  Value spd = p.input<float>({2, 2}, {4, 2, 2, 10}), low = p.input<float>({2, 2}, {2, 0, 1, 3});
  Value b = p.input<float>({2, 1}, {2, 7}), row = p.input<float>({1, 2}, {4, 6});
  const Arrays out =
      p.run(client(), {
                          lower_triangle(cholesky(spd, true)),
                          triangular_solve(low, b, true, true, false, Transpose::no_transpose),
                          triangular_solve(low, b, true, true, false, Transpose::transpose),
                          triangular_solve(low, row, false, true, false, Transpose::no_transpose),
                          triangular_solve(low, b, true, true, true, Transpose::no_transpose),
                          lower_triangle(cholesky(broadcast_to(spd, {3, 2, 2}), true)),
                          lower_triangle(transpose(cholesky(spd, false), {1, 0})),
                      });
  expect_near<float>(out[0], {2, 0, 1, 3});
  expect_near<float>(out[1], {1, 2});
  expect_near<float>(out[2], {-1.0f / 6, 7.0f / 3});
  expect_near<float>(out[3], {1, 2});
  expect_near<float>(out[4], {2, 5});
  expect_near<float>(out[5], {2, 0, 1, 3, 2, 0, 1, 3, 2, 0, 1, 3});
  expect_near<float>(out[6], {2, 0, 1, 3});
}

TEST_P(Linalg, factors_complex_and_double) {
  using C = std::complex<float>;
  Program p;
  Value a = p.input<C>({2, 2}, {{4, 0}, {0, -2}, {0, 2}, {10, 0}});
  Value d = p.input<double>({1, 1}, {2});
  const Arrays out = p.run(client(), {lower_triangle(cholesky(a, true)), cholesky(d, true)});
  expect_near<C>(out[0], {{2, 0}, {0, 0}, {0, 1}, {3, 0}});
  expect_near<double>(out[1], {std::sqrt(2.0)});
}

TEST_P(Linalg, transforms) {
  using C = std::complex<float>;
  const Floats xs = {1, 2, 0, -1, 3, 5};
  std::vector<C> want;
  for (size_t k = 0; k < xs.size(); ++k) {
    C sum = 0;
    for (size_t i = 0; i < xs.size(); ++i)
      sum += std::polar(xs[i], static_cast<float>(-2 * M_PI * static_cast<double>(i * k) / 6));
    want.push_back(sum);
  }
  Program p;
  Value x = p.input<float>({6}, xs);
  Value c = convert(x, DType::c64);
  Value f = fft(x, FftType::rfft, {6});
  Value plane = fft(reshape(c, {2, 3}), FftType::fft, {2, 3});
  const Arrays out = p.run(
      client(), {f, fft(c, FftType::fft, {6}), fft(fft(c, FftType::fft, {6}), FftType::ifft, {6}),
                 fft(f, FftType::irfft, {6}), fft(plane, FftType::ifft, {2, 3}),
                 fft(convert(x, DType::f64), FftType::rfft, {6})});
  expect_near<C>(out[0], {want[0], want[1], want[2], want[3]});
  expect_near<C>(out[1], want);
  expect_near<C>(out[2], std::vector<C>(xs.begin(), xs.end()));
  expect_near<float>(out[3], xs);
  expect_near<C>(out[4], std::vector<C>(xs.begin(), xs.end()));
  EXPECT_EQ(out[5].type.str(), "c128[4]");
}

// The same bits from every plugin: these are fixed for ever, or seeds would change their meaning.
TEST_P(Linalg, draws_the_same_bits_everywhere) {
  Program p;
  Value state = p.input<uint64_t>({2}, {0x123456789ABCDEF0, 7});
  auto [next32, bits32] = rng_bit_generator(state, {DType::u32, {5}});
  auto [next64, bits64] = rng_bit_generator(state, {DType::u64, {2, 2}});
  auto [next8, bits8] = rng_bit_generator(state, {DType::u8, {6}});
  auto [next16, bits16] = rng_bit_generator(state, {DType::u16, {3}});
  const Arrays out =
      p.run(client(), {next32, bits32, next64, bits64, next8, bits8, next16, bits16});
  EXPECT_EQ(out[0].values<uint64_t>(), (std::vector<uint64_t>{0x123456789ABCDEF0, 10}));
  EXPECT_EQ(out[1].values<uint32_t>(),
            (std::vector<uint32_t>{1354277001, 2579920119, 2790650682, 1008500922, 2301495697}));
  EXPECT_EQ(out[2].values<uint64_t>(), (std::vector<uint64_t>{0x123456789ABCDEF0, 11}));
  EXPECT_EQ(out[3].values<uint64_t>(),
            (std::vector<uint64_t>{11080672538751705225u, 4331478480766497594u,
                                   6821761343824988561u, 16682754511523708815u}));
  EXPECT_EQ(out[5].values<uint8_t>(), (std::vector<uint8_t>{0x89, 0xF7, 0x3A, 0xBA, 0x91, 0xCC}));
  EXPECT_EQ(out[7].values<uint16_t>(), (std::vector<uint16_t>{41097, 29943, 62266}));
}

TEST(LinalgErrors, name_operation_and_shapes) {
  Builder b;
  Value x = b.parameter(0, {DType::f32, {2, 3}}), n = b.parameter(1, {DType::s32, {2, 2}}),
        c = b.parameter(2, {DType::c64, {4}});
  EXPECT_EQ(error_of([&] { cholesky(x, true); }),
            "cholesky of f32[2,3]: square matrices are needed");
  EXPECT_EQ(error_of([&] { cholesky(n, true); }), "cholesky of s32[2,2]: dtype is not supported");
  EXPECT_EQ(error_of([&] {
              triangular_solve(b.parameter(3, {DType::f32, {3, 3}}), x, true, true, false,
                               Transpose::no_transpose);
            }),
            "triangular_solve of f32[3,3], f32[2,3]: shapes do not fit");
  EXPECT_EQ(error_of([&] { fft(c, FftType::fft, {5}); }), "fft of c64[4]: lengths [5] do not fit");
  EXPECT_EQ(error_of([&] { fft(c, FftType::irfft, {8}); }),
            "fft of c64[4]: lengths [8] do not fit");
  EXPECT_EQ(error_of([&] { fft(x, FftType::fft, {3}); }),
            "fft of f32[2,3]: dtype is not supported");
  EXPECT_EQ(error_of([&] { rng_bit_generator(x, {DType::u32, {1}}); }),
            "rng_bit_generator of f32[2,3]: the state must be u64[2]");
  EXPECT_EQ(
      error_of([&] { rng_bit_generator(b.parameter(4, {DType::u64, {2}}), {DType::s32, {1}}); }),
      "rng_bit_generator of u64[2]: s32[1] is not unsigned");
}

}  // namespace
}  // namespace torch_tpu::hlo
