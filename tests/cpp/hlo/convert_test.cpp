// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <complex>
#include <limits>

#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(),
                kNaN = std::numeric_limits<float>::quiet_NaN();

class Convert : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Convert);

// 0, 1 and 2 survive every conversion but that to pred (and 0 is not in f8e8m0fnu).
TEST_P(Convert, keeps_small_numbers_between_all_dtypes) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType from = static_cast<DType>(i);
    Program p;
    Value x = convert(p.input<float>({3}, {1, 2, 0}), from);
    Values results;
    for (int j = 0; j < kNumDTypes; ++j)
      results.push_back(convert(convert(x, static_cast<DType>(j)), DType::f32));
    const Arrays out = p.run(client(), results);
    for (int j = 0; j < kNumDTypes; ++j) {
      const DType to = static_cast<DType>(j);
      const auto got = out[j].values<float>();
      const bool truth = from == DType::pred || to == DType::pred;
      EXPECT_EQ(got[0], 1) << name(from) << " to " << name(to);
      EXPECT_EQ(got[1], truth ? 1 : 2) << name(from) << " to " << name(to);
      if (from != DType::f8e8m0fnu && to != DType::f8e8m0fnu) {
        EXPECT_EQ(got[2], 0) << name(from) << " to " << name(to);
      }
    }
  }
}

TEST_P(Convert, truncates_floats_to_integers) {
  Program p;
  Value x = p.input<float>({5}, {2.9f, -2.9f, 0.5f, -0.5f, 1e9f});
  const Arrays out = p.run(client(), {convert(x, DType::s32), convert(x, DType::s64)});
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{2, -2, 0, 0, 1000000000}));
  EXPECT_EQ(out[1].values<int64_t>(), (Longs{2, -2, 0, 0, 1000000000}));
}

// Not what StableHLO promises, but what both plugins do: saturate, NaN to 0.
TEST_P(Convert, saturates_out_of_range_floats) {
  Program p;
  Value x = p.input<float>({5}, {kNaN, kInf, -kInf, 3e9f, -3e9f});
  const Arrays out =
      p.run(client(), {convert(x, DType::s32), convert(x, DType::s64), convert(x, DType::u32)});
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min(),
                    kMax = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{0, kMax, kMin, kMax, kMin}));
  EXPECT_EQ(out[1].values<int64_t>(),
            (Longs{0, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(),
                   3000000000, -3000000000}));
  EXPECT_EQ(out[2].values<uint32_t>(), (std::vector<uint32_t>{0, 4294967295u, 0, 3000000000u, 0}));
}

TEST_P(Convert, to_pred_asks_whether_it_is_not_zero) {
  Program p;
  Value f = p.input<float>({6}, {0, -0.0f, 0.1f, kNaN, kInf, 1e-45f});
  Value n = p.input<int32_t>({3}, {0, 256, -1});
  Value c = p.input<std::complex<float>>({3}, {{0, 0}, {0, 1}, {kNaN, 0}});
  const Arrays out =
      p.run(client(), {convert(f, DType::pred), convert(n, DType::pred), convert(c, DType::pred)});
  const auto got = out[0].values<bool>();
  // The last one, a subnormal, is flushed to zero by TPUs: not promised.
  EXPECT_EQ(Bools(got.begin(), got.begin() + 5), (Bools{false, false, true, true, true}));
  EXPECT_EQ(out[1].values<bool>(), (Bools{false, true, true}));
  EXPECT_EQ(out[2].values<bool>(), (Bools{false, true, true}));
}

TEST_P(Convert, complex_to_real_drops_the_imaginary_part) {
  Program p;
  Value c = p.input<std::complex<double>>({2}, {{1.5, 7}, {-2, 1}});
  const Arrays out =
      p.run(client(), {convert(c, DType::f32), convert(c, DType::s8), convert(c, DType::c64),
                       convert(p.input<bool>({1}, {true}), DType::c128)});
  EXPECT_EQ(out[0].values<float>(), (Floats{1.5f, -2}));
  EXPECT_EQ(out[1].values<int8_t>(), (std::vector<int8_t>{1, -2}));
  EXPECT_EQ(out[2].values<std::complex<float>>()[0], std::complex<float>(1.5f, 7));
  EXPECT_EQ(out[3].values<std::complex<double>>()[0], std::complex<double>(1, 0));
}

// A bitcast to any dtype and back gives the same bytes, and between them lie the bytes of the
// original.
TEST_P(Convert, bitcasts_keep_the_bytes) {
  std::string bytes(64, '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 5 + 1) & 0x3f;  // no NaNs, which may be made quiet
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType from = static_cast<DType>(i);
    if (from == DType::pred) continue;
    Program p;
    const int64_t n = 64 / itemsize(from);
    Values results;
    std::vector<DType> kinds;
    for (int j = 0; j < kNumDTypes; ++j) {
      const DType to = static_cast<DType>(j);
      if (to == DType::pred) continue;
      const int64_t ratio = std::max<int64_t>(1, itemsize(to) / itemsize(from));
      if (kinds.empty()) p.input(Array{{from, {n}}, bytes});
      Value x = reshape(Value(&p.b, 0), ratio > 1 ? Dims{n / ratio, ratio} : Dims{n});
      Value y = bitcast_convert(x, to);
      const int64_t pieces = itemsize(from) / itemsize(to);
      EXPECT_EQ(y.dims(), pieces > 1 ? (Dims{n, pieces}) : Dims{n / ratio})
          << name(from) << " to " << name(to);
      results.push_back(y);
      results.push_back(bitcast_convert(y, from));
      kinds.push_back(to);
    }
    const Arrays out = p.run(client(), results);
    for (size_t k = 0; k < kinds.size(); ++k) {
      EXPECT_EQ(out[2 * k].bytes, bytes) << name(from) << " to " << name(kinds[k]);
      EXPECT_EQ(out[2 * k + 1].bytes, bytes)
          << name(from) << " to " << name(kinds[k]) << " and back";
    }
  }
}

TEST_P(Convert, bitcasts_pred_as_a_byte) {
  Program p;
  Value x = p.input<bool>({2}, {false, true});
  const Arrays out = p.run(client(), {bitcast_convert(x, DType::u8),
                                      bitcast_convert(p.input<int8_t>({2}, {0, 1}), DType::pred),
                                      bitcast_convert(x, DType::s16)});
  EXPECT_EQ(out[0].values<uint8_t>(), (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(out[1].values<bool>(), (Bools{false, true}));
  EXPECT_EQ(out[2].values<int16_t>(), (std::vector<int16_t>{256}));
}

TEST(ConvertErrors, name_shapes) {
  Builder b;
  Value x = b.parameter(0, {DType::u8, {3}}), f = b.parameter(1, {DType::f32, {3}});
  EXPECT_EQ(error_of([&] { bitcast_convert(x, DType::f32); }),
            "bitcast_convert of u8[3]: to f32: last dimension must be 4");
  EXPECT_EQ(error_of([&] { bitcast_convert(x, DType::c64); }),
            "bitcast_convert of u8[3]: to c64: last dimension must be 8");
  EXPECT_EQ(error_of([&] { bitcast_convert(f, DType::c64); }),
            "bitcast_convert of f32[3]: to c64: last dimension must be 2");
  EXPECT_EQ(convert(f, DType::f32).id(), f.id());
}

}  // namespace
}  // namespace torch_tpu::hlo
