// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>

#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

// The text between dense< and > of a constant.
template <typename F>
std::string elements(F&& make) {
  Builder b;
  const std::string text = b.finish({make(b)}).text;
  const size_t begin = text.find("dense<") + 6;
  return text.substr(begin, text.find("> : ") - begin);
}
template <typename T>
std::string scalar(DType t, T v) {
  return elements([&](Builder& b) { return constant(b, t, v); });
}

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Constant, prints_f32_and_f64_in_exact_decimals) {
  EXPECT_EQ(scalar(DType::f32, 2.0), "2.0");
  EXPECT_EQ(scalar(DType::f32, -0.0), "-0.0");
  EXPECT_EQ(scalar(DType::f32, 1e-5), "9.999999747378752e-06");
  EXPECT_EQ(scalar(DType::f64, 1e-5), "1.0e-05");
  EXPECT_EQ(scalar(DType::f32, 1e9), "1.0e+09");
  EXPECT_EQ(scalar(DType::f64, 0.1), "1.0e-01");
  EXPECT_EQ(scalar(DType::f32, 1e300), "0x7F800000");
  EXPECT_EQ(scalar(DType::f32, kNaN), "0x7FC00000");
  EXPECT_EQ(scalar(DType::f64, -kInf), "0xFFF0000000000000");
  EXPECT_EQ(scalar(DType::f32, int64_t{16777217}), "1.6777216e+07");
}

TEST(Constant, prints_small_floats_by_bits) {
  EXPECT_EQ(scalar(DType::bf16, 1.0), "0x3F80");
  EXPECT_EQ(scalar(DType::bf16, 1.00390625), "0x3F80");  // half way: to even
  EXPECT_EQ(scalar(DType::bf16, 1.01171875), "0x3F82");
  EXPECT_EQ(scalar(DType::f16, 65519.0), "0x7BFF");
  EXPECT_EQ(scalar(DType::f16, 65520.0), "0x7C00");
  EXPECT_EQ(scalar(DType::f16, 0x1p-24), "0x0001");
  EXPECT_EQ(scalar(DType::f16, 0x1p-25), "0x0000");
  EXPECT_EQ(scalar(DType::f16, -kNaN), "0x7E00");
  EXPECT_EQ(scalar(DType::f8e4m3fn, 448.0), "0x7E");
  EXPECT_EQ(scalar(DType::f8e4m3fn, -kInf), "0xFF");
  EXPECT_EQ(scalar(DType::f8e4m3fnuz, -0.0), "0x00");
  EXPECT_EQ(scalar(DType::f8e5m2fnuz, kInf), "0x80");
  EXPECT_EQ(scalar(DType::f8e8m0fnu, 4.0), "0x81");
}

TEST(Constant, rounds_large_integers_once) {
  // The nearest bf16 is above the middle of its neighbours by one part in 2^61; rounding to double
  // first would lose that.
  EXPECT_EQ(scalar(DType::bf16, (int64_t{1} << 61) + (int64_t{1} << 53) + 1), "0x5E01");
  EXPECT_EQ(scalar(DType::bf16, (int64_t{1} << 61) + (int64_t{1} << 53)), "0x5E00");
  EXPECT_EQ(scalar(DType::f32, std::numeric_limits<int64_t>::min()), "-9.223372036854776e+18");
}

TEST(Constant, prints_integers_pred_and_complex) {
  EXPECT_EQ(scalar(DType::s8, 300), "44");  // wraps as in C
  EXPECT_EQ(scalar(DType::u8, -1), "255");
  EXPECT_EQ(scalar(DType::u64, -1), "18446744073709551615");
  EXPECT_EQ(scalar(DType::u64, 0x1.8p63), "13835058055282163712");
  EXPECT_EQ(scalar(DType::s32, -2.9), "-2");
  EXPECT_EQ(scalar(DType::pred, 0.5), "true");
  EXPECT_EQ(scalar(DType::pred, false), "false");
  EXPECT_EQ(scalar(DType::c64, std::complex<double>(1, -kInf)), "(1.0, 0xFF800000)");
  EXPECT_EQ(scalar(DType::f32, std::complex<double>(3, 0)), "3.0");
  EXPECT_EQ(error_of([] { scalar(DType::s32, kNaN); }),
            "constant of s32: nan is no integer of 64 bits");
  EXPECT_EQ(error_of([] { scalar(DType::f32, std::complex<double>(0, 1)); }),
            "constant of f32: the value is complex");
}

TEST(Constant, prints_literals_and_splats) {
  EXPECT_EQ(elements([](Builder& b) { return literal(b, DType::s64, Longs{1, -2}); }), "[1, -2]");
  EXPECT_EQ(elements([](Builder& b) { return literal(b, DType::f32, Longs{}); }), "");
  EXPECT_EQ(elements([](Builder& b) { return full(b, {DType::f32, {100, 100}}, 0.5); }), "5.0e-01");
}

TEST(Constant, knows_bounds) {
  EXPECT_EQ(elements([](Builder& b) { return lowest(b, DType::s64); }), "-9223372036854775808");
  EXPECT_EQ(elements([](Builder& b) { return highest(b, DType::u64); }), "18446744073709551615");
  EXPECT_EQ(elements([](Builder& b) { return lowest(b, DType::u16); }), "0");
  EXPECT_EQ(elements([](Builder& b) { return highest(b, DType::s8); }), "127");
  EXPECT_EQ(elements([](Builder& b) { return lowest(b, DType::bf16); }), "0xFF80");
  EXPECT_EQ(elements([](Builder& b) { return lowest(b, DType::f8e4m3fn); }), "0xFE");
  EXPECT_EQ(elements([](Builder& b) { return min_finite(b, DType::f16); }), "0xFBFF");
  EXPECT_EQ(elements([](Builder& b) { return max_finite(b, DType::s32); }), "2147483647");
  EXPECT_EQ(elements([](Builder& b) { return highest(b, DType::pred); }), "true");
  EXPECT_EQ(error_of([] {
              Builder b;
              lowest(b, DType::c64);
            }),
            "bound of c64: complex numbers have no order");
}

class ConstantRun : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(ConstantRun);

TEST_P(ConstantRun, reads_back_exactly) {
  const std::vector<double> values = {0.1,      -0.0, 1e-45, 1e-310, 3.4028234663852886e38,
                                      1e300,    kInf, -kInf, kNaN,   1.0 / 3,
                                      123456789};
  Program p;
  const Arrays out =
      p.run(client(), {literal(p.b, DType::f32, values), literal(p.b, DType::f64, values)});
  const auto f32 = out[0].values<float>();
  const auto f64 = out[1].values<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(close(f32[i], static_cast<float>(values[i]), 0));
    EXPECT_TRUE(close(f64[i], values[i], 0));
  }
}

// The plugin's own conversion must give the bits that we print.
TEST_P(ConstantRun, rounds_as_the_plugin_converts) {
  std::vector<float> values = {0,     -0.0f,  1,     -1.5f, 3.1415927f, 1e-3f, 1e-8f,
                               6e-8f, 1e-40f, 447,   448,   464,        465,   57344,
                               61440, 65504,  65519, 65520, 3.39e38f};
  for (int i = -300; i < 300; ++i)
    values.push_back(std::ldexp(1 + 0.0078125f * static_cast<float>((i * 37) & 127), i / 8));
  const std::vector<double> doubles(values.begin(), values.end());
  for (DType t : {DType::f16, DType::bf16, DType::f8e5m2, DType::f8e4m3fn, DType::f8e5m2fnuz,
                  DType::f8e4m3fnuz}) {
    Program p;
    Value x = p.input<float>({static_cast<int64_t>(values.size())}, values);
    const DType bits = itemsize(t) == 2 ? DType::u16 : DType::u8;
    const Arrays out =
        p.run(client(), {convert(bitcast_convert(convert(x, t), bits), DType::s32),
                         convert(bitcast_convert(literal(p.b, t, doubles), bits), DType::s32)});
    const auto converted = out[0].values<int32_t>(), printed = out[1].values<int32_t>();
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(printed[i], converted[i]) << values[i] << " as " << name(t);
  }
}

TEST_P(ConstantRun, gives_every_dtype) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType t = static_cast<DType>(i);
    Program p;
    Values results = {convert(constant(p.b, t, 1), DType::f32),
                      convert(full(p.b, {t, {2}}, 1.0), DType::f32),
                      convert(literal(p.b, t, Longs{1, 0}), DType::f32), full(p.b, {t, {0}}, 1)};
    if (!is_complex(t))
      results.push_back(convert(compare(lowest(p.b, t), highest(p.b, t), Compare::lt), DType::f32));
    const Arrays out = p.run(client(), results);
    EXPECT_EQ(out[0].values<float>(), (Floats{1})) << name(t);
    EXPECT_EQ(out[1].values<float>(), (Floats{1, 1})) << name(t);
    EXPECT_EQ(out[2].values<float>()[0], 1) << name(t);
    if (!is_complex(t)) {
      EXPECT_EQ(out[4].values<float>()[0], 1) << name(t);
    }
  }
}

TEST_P(ConstantRun, counts) {
  Program p;
  const Arrays out =
      p.run(client(), {iota(p.b, {DType::s32, {2, 3}}, 1), iota(p.b, {DType::f32, {2, 2}}, -2),
                       iota(p.b, {DType::s64, {}}, 0)});
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(out[1].values<float>(), (Floats{0, 0, 1, 1}));
  EXPECT_EQ(out[2].values<int64_t>(), (Longs{0}));
  EXPECT_EQ(error_of([&] {
              Builder b;
              iota(b, {DType::f32, {2}}, 1);
            }),
            "iota of f32[2]: dimension 1 is out of range");
  EXPECT_EQ(error_of([&] {
              Builder b;
              iota(b, {DType::pred, {2}}, 0);
            }),
            "iota of pred[2]: pred cannot count");
}

}  // namespace
}  // namespace torch_tpu::hlo
