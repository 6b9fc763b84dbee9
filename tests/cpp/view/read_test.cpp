// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "view/bytes.h"

namespace torch_tpu::view {
namespace {

void expect_reads(const model::Case& c, model::Rng& rng) {
  const test::Array base = model::random_array(rng, c.base);
  const test::Array got = model::run_read(base, c.view), expected = model::read(base, c.view);
  EXPECT_EQ(got.type, expected.type);
  EXPECT_EQ(model::numbers(got), model::numbers(expected));
}

TEST(read, random_views_on_the_plugin) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    model::Rng rng(seed);
    const model::Case c = model::random_case(rng);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + str(c));
    expect_reads(c, rng);
  }
}

TEST(read, random_views_of_another_dtype_on_the_plugin) {
  const DType dtypes[] = {DType::pred, DType::u8,  DType::s16, DType::bf16, DType::f16, DType::f32,
                          DType::s64,  DType::f64, DType::c64, DType::c128, DType::s8,  DType::u32};
  for (uint64_t seed = 0; seed < 144; ++seed) {
    model::Rng rng(seed);
    const model::Case c = model::random_case(rng, dtypes[seed % 12], dtypes[seed / 12]);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + str(c));
    expect_reads(c, rng);
  }
}

// One view of each class: aligned with and without steps, flat, window (with steps), gather.
TEST(read, every_class_on_the_plugin) {
  model::Rng rng(1);
  const Type base{DType::s32, {4, 10}};
  const auto reads = [&](Dims sizes, Dims strides, int64_t offset) {
    SCOPED_TRACE(hlo::str(sizes) + " " + hlo::str(strides));
    expect_reads({base, {DType::s32, std::move(sizes), std::move(strides), offset}}, rng);
  };
  reads({4, 10}, {10, 1}, 0);
  reads({10, 4}, {1, 10}, 0);
  reads({2, 5}, {10, 2}, 11);
  reads({2, 3}, {10, 3}, 12);
  reads({3}, {1}, 8);
  reads({2, 3}, {10, 1}, 8);
  reads({3, 4}, {10, 3}, 5);
  reads({4, 3}, {2, 1}, 3);
  reads({2, 4, 3, 2}, {0, 2, 1, 0}, 3);
  reads({0, 3}, {10, 1}, 40);
  reads({}, {}, 39);
}

// How often an operation stands in the program that reads the view.
int count_ops(const Type& base, const View& v, const std::string& name) {
  const std::string text = model::read_program(base, v).text;
  int count = 0;
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) ++count;
  return count;
}

TEST(read, overlapping_windows_are_joined_from_slices) {
  model::Rng rng(1);
  const model::Case cases[] = {
      {{DType::s32, {21}}, {DType::s32, {9, 4}, {2, 1}, 1}},
      {{DType::s32, {20}}, {DType::s32, {18, 3}, {1, 1}, 0}},
      {{DType::s32, {3, 20}}, {DType::s32, {3, 3, 12}, {20, 4, 1}, 0}},
      {{DType::s32, {2, 6, 7}}, {DType::s32, {2, 3, 3, 4, 5}, {42, 7, 1, 7, 1}, 0}},
      {{DType::s32, {100}}, {DType::s32, {9, 20}, {10, 1}, 0}},
      {{DType::s32, {40}}, {DType::s32, {2, 2, 2}, {15, 10, 6}, 3}},
  };
  for (const model::Case& c : cases) {
    SCOPED_TRACE(str(c));
    EXPECT_EQ(plan(c.base, c.view).kind, Plan::Kind::gather);
    EXPECT_EQ(count_ops(c.base, c.view, "\"stablehlo.gather\""), 0);
    expect_reads(c, rng);
  }
}

TEST(read, windows_of_many_pieces_are_a_gather) {
  model::Rng rng(1);
  const model::Case c = {{DType::s32, {100}}, {DType::s32, {50, 50}, {1, 1}, 1}};
  EXPECT_EQ(count_ops(c.base, c.view, "\"stablehlo.gather\""), 1);
  expect_reads(c, rng);
}

TEST(read, takes_as_many_starts_as_the_plan_has) {
  hlo::Builder b;
  const Value x = b.parameter(0, {DType::f32, {4, 10}});
  const View v{DType::f32, {2, 3}, {10, 1}, 12};
  EXPECT_THROW(read(x, v, plan(x.type(), v), {}), hlo::Error);
}

}  // namespace
}  // namespace torch_tpu::view
