// SPDX-License-Identifier: Apache-2.0
#include "view/reinterpret.h"

#include <gtest/gtest.h>

#include "testing/run.h"

namespace torch_tpu::view {
namespace {

using hlo::Dims;
using hlo::DType;
using hlo::Type;
using hlo::Value;
using C64 = std::complex<float>;

test::Array run_reinterpret(const test::Array& x, DType t) {
  hlo::Builder b;
  const Value y = reinterpret(b.parameter(0, x.type), t);
  return test::run(b.finish({y}), {x}).at(0);
}

TEST(reinterpret, dims_stand_as_far_as_rows_hold_whole_elements) {
  EXPECT_EQ(reinterpreted_dims({DType::f32, {3, 4}}, DType::s32), (Dims{3, 4}));
  EXPECT_EQ(reinterpreted_dims({DType::f32, {3, 4}}, DType::u8), (Dims{3, 4, 4}));
  EXPECT_EQ(reinterpreted_dims({DType::f32, {3, 4}}, DType::c64), (Dims{3, 2}));
  EXPECT_EQ(reinterpreted_dims({DType::f32, {3, 5}}, DType::f64), (Dims{7}));
  EXPECT_EQ(reinterpreted_dims({DType::f32, {}}, DType::u8), (Dims{4}));
  EXPECT_EQ(reinterpreted_dims({DType::u8, {}}, DType::f32), (Dims{0}));
}

TEST(reinterpret, complex_is_its_real_then_its_imaginary_part) {
  const test::Array z = test::array<C64>({2}, {{1, 2}, {3, 4}});
  const test::Array parts = run_reinterpret(z, DType::f32);
  EXPECT_EQ(parts.type.str(), "f32[2,2]");
  EXPECT_EQ(parts.values<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(run_reinterpret(parts, DType::c64).values<C64>(), z.values<C64>());
}

TEST(reinterpret, bytes_are_little_endian_and_the_tail_is_left_out) {
  const test::Array bytes = test::array<uint8_t>({7}, {1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(run_reinterpret(bytes, DType::s32).values<int32_t>(),
            (std::vector<int32_t>{0x04030201}));
  EXPECT_EQ(run_reinterpret(bytes, DType::s16).values<int16_t>(),
            (std::vector<int16_t>{0x0201, 0x0403, 0x0605}));
}

TEST(reinterpret, every_byte_but_zero_is_true) {
  const test::Array bytes = test::array<uint8_t>({3}, {0, 1, 200});
  EXPECT_EQ(run_reinterpret(bytes, DType::pred).values<bool>(),
            (std::vector<bool>{false, true, true}));
  const test::Array preds = test::array<bool>({4}, {true, false, false, true});
  EXPECT_EQ(run_reinterpret(preds, DType::s32).values<int32_t>(),
            (std::vector<int32_t>{0x01000001}));
}

TEST(reinterpret, back_keeps_the_tail) {
  const test::Array base = test::array<uint8_t>({7}, {1, 2, 3, 4, 5, 6, 7});
  hlo::Builder b;
  const Value x = b.parameter(0, base.type), y = b.parameter(1, {DType::s32, {1}});
  const hlo::Module m = b.finish({reinterpret_back(x, y)});
  const test::Arrays out = test::run(m, {base, test::array<int32_t>({1}, {0x0c0b0a09})});
  EXPECT_EQ(out[0].values<uint8_t>(), (std::vector<uint8_t>{9, 10, 11, 12, 5, 6, 7}));
}

}  // namespace
}  // namespace torch_tpu::view
