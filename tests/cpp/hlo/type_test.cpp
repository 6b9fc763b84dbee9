// SPDX-License-Identifier: Apache-2.0
#include "hlo/type.h"

#include <gtest/gtest.h>

namespace torch_tpu::hlo {
namespace {

TEST(Type, prints_shape_and_dtype) {
  const Type matrix{DType::bf16, {2, 3}}, scalar{DType::u8, {}}, empty{DType::c64, {0, 4}};
  EXPECT_EQ(matrix.str(), "bf16[2,3]");
  EXPECT_EQ(matrix.mlir(), "tensor<2x3xbf16>");
  EXPECT_EQ(scalar.str(), "u8[]");
  EXPECT_EQ(scalar.mlir(), "tensor<ui8>");
  EXPECT_EQ(empty.mlir(), "tensor<0x4xcomplex<f32>>");
  EXPECT_EQ((Type{DType::pred, {1}}.mlir()), "tensor<1xi1>");
  EXPECT_EQ(str(Dims{2, 3}), "[2, 3]");
}

TEST(Type, counts_elements_and_bytes) {
  EXPECT_EQ((Type{DType::c128, {2, 3}}.nbytes()), 96);
  EXPECT_EQ((Type{DType::f8e4m3fn, {}}.nbytes()), 1);
  EXPECT_EQ((Type{DType::f32, {5, 0}}.numel()), 0);
}

TEST(Type, has_one_kind) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType t = static_cast<DType>(i);
    EXPECT_EQ(is_floating(t) + is_complex(t) + is_signed_integral(t) + is_unsigned(t) +
                  (t == DType::pred),
              1)
        << name(t);
    EXPECT_EQ(is_integral(t), is_signed_integral(t) || is_unsigned(t)) << name(t);
  }
}

TEST(Type, relates_real_complex_and_accumulate_types) {
  EXPECT_EQ(real_type(DType::c128), DType::f64);
  EXPECT_EQ(real_type(DType::s32), DType::s32);
  EXPECT_EQ(complex_type(DType::f16), DType::c64);
  EXPECT_EQ(complex_type(DType::f64), DType::c128);
  EXPECT_EQ(accumulate_type(DType::bf16), DType::f32);
  EXPECT_EQ(accumulate_type(DType::f8e5m2), DType::f32);
  EXPECT_EQ(accumulate_type(DType::f64), DType::f64);
  EXPECT_EQ(accumulate_type(DType::s8), DType::s8);
}

TEST(Dims, refuses_what_is_past_its_end) {
  const Dims none, one{5};
  EXPECT_EQ(one[0] + one.back(), 10);
  EXPECT_THROW(one[1], Error);
  EXPECT_THROW(one[static_cast<size_t>(-1)], Error);
  EXPECT_THROW(none.front(), Error);
  EXPECT_THROW(none.back(), Error);
}

}  // namespace
}  // namespace torch_tpu::hlo
