// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "view/bytes.h"

namespace torch_tpu::view {
namespace {

void expect_writes(const model::Case& c, model::Rng& rng) {
  const test::Array base = model::random_array(rng, c.base);
  const test::Array data = model::random_array(rng, {c.view.dtype, c.view.sizes});
  const test::Array got = model::run_write(base, c.view, data);
  EXPECT_EQ(got.type, base.type);
  EXPECT_EQ(model::numbers(got), model::numbers(model::written(base, c.view, data)));
}

TEST(write, random_views_on_the_plugin) {
  int written = 0;
  for (uint64_t seed = 0; seed < 250; ++seed) {
    model::Rng rng(seed);
    const model::Case c = model::random_case(rng);
    if (!is_non_overlapping(c.view)) continue;  // the order of their writes is open
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + str(c));
    expect_writes(c, rng);
    ++written;
  }
  EXPECT_GE(written, 120);
}

TEST(write, random_views_of_another_dtype_on_the_plugin) {
  const DType dtypes[] = {DType::pred, DType::u8,  DType::s16, DType::bf16, DType::f16, DType::f32,
                          DType::s64,  DType::f64, DType::c64, DType::c128, DType::s8,  DType::u32};
  for (uint64_t seed = 0; seed < 144; ++seed) {
    model::Rng rng(seed);
    const model::Case c = model::random_case(rng, dtypes[seed % 12], dtypes[seed / 12]);
    if (!is_non_overlapping(c.view)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + str(c));
    expect_writes(c, rng);
  }
}

TEST(write, every_class_on_the_plugin) {
  model::Rng rng(1);
  const Type base{DType::s32, {4, 10}};
  const auto writes = [&](Dims sizes, Dims strides, int64_t offset) {
    SCOPED_TRACE(hlo::str(sizes) + " " + hlo::str(strides));
    expect_writes({base, {DType::s32, std::move(sizes), std::move(strides), offset}}, rng);
  };
  writes({4, 10}, {10, 1}, 0);
  writes({10, 4}, {1, 10}, 0);
  writes({2, 5}, {10, 2}, 11);
  writes({2, 3}, {10, 3}, 12);
  writes({2, 4}, {20, 3}, 10);
  writes({3}, {1}, 8);
  writes({2, 3}, {10, 1}, 8);
  writes({3, 4}, {10, 3}, 5);
  writes({3, 3}, {7, 4}, 2);
  writes({0, 3}, {10, 1}, 40);
  writes({}, {}, 39);
}

TEST(write, of_an_expanded_dim_takes_its_first_element) {
  model::Rng rng(1);
  const test::Array base = test::array<int32_t>({4}, {1, 2, 3, 4});
  const View v{DType::s32, {3, 2}, {0, 1}, 1};
  const test::Array data = test::array<int32_t>({3, 2}, {10, 20, 30, 40, 50, 60});
  EXPECT_EQ(model::run_write(base, v, data).values<int32_t>(),
            (std::vector<int32_t>{1, 10, 20, 4}));
}

TEST(write, of_overlapping_windows_leaves_one_of_the_written_values) {
  const test::Array base = test::array<int32_t>({6}, {1, 2, 3, 4, 5, 6});
  const View v{DType::s32, {2, 3}, {2, 1}, 0};
  const test::Array data = test::array<int32_t>({2, 3}, {10, 20, 30, 40, 50, 60});
  const auto got = model::run_write(base, v, data).values<int32_t>();
  EXPECT_TRUE(got[2] == 30 || got[2] == 40) << got[2];
  EXPECT_EQ(got, (std::vector<int32_t>{10, 20, got[2], 50, 60, 6}));
}

// Steps that skip most of the base, at a start that the program does not know.
TEST(write, of_a_diagonal) {
  model::Rng rng(1);
  expect_writes({{DType::s32, {90, 90}}, {DType::s32, {90}, {91}, 0}}, rng);
  expect_writes({{DType::s32, {90, 90}}, {DType::s32, {87}, {91}, 3}}, rng);
  expect_writes({{DType::s32, {3, 90, 90}}, {DType::s32, {87, 2}, {91, 8100}, 8103}}, rng);
}

TEST(write, through_a_pred_view_leaves_the_bytes_beside_it) {
  const test::Array base = test::array<uint8_t>({4}, {5, 6, 7, 8});
  const View v{DType::pred, {2}, {1}, 1};
  const test::Array data = test::array<bool>({2}, {true, false});
  EXPECT_EQ(model::run_write(base, v, data).values<uint8_t>(), (std::vector<uint8_t>{5, 1, 0, 8}));
}

}  // namespace
}  // namespace torch_tpu::view
