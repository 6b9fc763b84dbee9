// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "view/model.h"

namespace torch_tpu::view {
namespace {

using Kind = Plan::Kind;
using Cut = Plan::Cut;

View strided(Dims sizes, Dims strides, int64_t offset = 0) {
  return {DType::f32, std::move(sizes), std::move(strides), offset};
}
Type f32(Dims dims) { return {DType::f32, std::move(dims)}; }

// Everything of a plan that a program is made from.
auto program_of(const Plan& p) {
  std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t, bool>> factors;
  for (const Factor& f : p.factors)
    factors.emplace_back(f.size, f.length, f.step, f.view_dim, f.is_partial());
  return std::tuple(p.kind, p.cut, p.window, factors, p.num_operands());
}

TEST(plan, agrees_with_strided_indexing_on_random_views) {
  std::map<std::pair<Kind, Cut>, int> met;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    model::Rng rng(seed);
    const model::Case c = model::random_case(rng);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + str(c));
    const Plan p = plan(c.base, c.view);
    Dims got;
    ASSERT_NO_THROW(got = model::planned_indices(c.base, c.view, p));
    ASSERT_EQ(got, model::indices(c.view));
    if (c.view.numel() > 0) ++met[{p.kind, p.cut}];
  }
  // The cases must reach every branch to mean anything.
  EXPECT_GE((met[{Kind::whole, Cut::aligned}]), 200);
  EXPECT_GE((met[{Kind::chain, Cut::aligned}]), 5000);
  EXPECT_GE((met[{Kind::chain, Cut::flat}]), 20);
  EXPECT_GE((met[{Kind::chain, Cut::window}]), 20);
  EXPECT_GE((met[{Kind::gather, Cut::aligned}]), 200);
}

TEST(plan, of_another_dtype_agrees_with_strided_indexing) {
  const DType dtypes[] = {DType::u8, DType::bf16, DType::f32, DType::s64, DType::c64, DType::c128};
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    model::Rng rng(seed);
    const model::Case c = model::random_case(rng, dtypes[seed % 6], dtypes[seed / 6 % 6]);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + str(c));
    ASSERT_EQ(model::planned_indices(c.base, c.view, plan(c.base, c.view)), model::indices(c.view));
  }
}

TEST(plan, equal_keys_mean_equal_programs_at_every_offset) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    model::Rng rng(seed);
    model::Case c = model::random_case(rng);
    if (c.view.numel() == 0) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + str(c));
    std::map<uint64_t, decltype(program_of(Plan{}))> programs;
    const Kind kind = plan(c.base, c.view).kind;
    c.view.offset = 0;
    for (const int64_t last = c.base.numel() - extent(c.view); c.view.offset <= last;
         ++c.view.offset) {
      const Plan p = plan(c.base, c.view);
      ASSERT_EQ(model::planned_indices(c.base, c.view, p), model::indices(c.view)) << c.view.offset;
      // A view is a gather at every offset or at none: reading in pieces relies on it.
      ASSERT_EQ(p.kind == Kind::gather, kind == Kind::gather) << c.view.offset;
      const auto program = program_of(p);
      const auto first = programs.emplace(p.key(), program).first;
      ASSERT_EQ(first->second, program) << c.view.offset;
    }
  }
}

// The views that programs are full of, by how they are read.
struct Common {
  const char* what;
  Type base;
  View view;
  int64_t num_operands;
};

class CommonView : public ::testing::TestWithParam<Common> {};

TEST_P(CommonView, is_an_aligned_chain) {
  const Common& c = GetParam();
  const Plan p = plan(c.base, c.view);
  EXPECT_EQ(p.kind, Kind::chain);
  EXPECT_EQ(p.cut, Cut::aligned);
  EXPECT_EQ(p.num_operands(), c.num_operands);
  EXPECT_EQ(model::planned_indices(c.base, c.view, p), model::indices(c.view));
}

INSTANTIATE_TEST_SUITE_P(
    , CommonView,
    ::testing::Values(
        Common{"slice", f32({6, 5, 4}), strided({3, 5, 4}, {20, 4, 1}, 20), 1},
        Common{"slice_inner", f32({6, 5, 4}), strided({6, 5, 2}, {20, 4, 1}, 1), 1},
        Common{"slice_two_dims", f32({6, 5, 4}), strided({2, 3, 4}, {20, 4, 1}, 48), 2},
        Common{"narrow_of_vector", f32({100}), strided({10}, {1}, 37), 1},
        Common{"select_first", f32({6, 5, 4}), strided({5, 4}, {4, 1}, 60), 1},
        Common{"select_middle", f32({6, 5, 4}), strided({6, 4}, {20, 1}, 12), 1},
        Common{"select_last", f32({6, 5, 4}), strided({6, 5}, {20, 4}, 3), 1},
        Common{"element", f32({6, 5, 4}), strided({}, {}, 77), 3},
        Common{"transpose", f32({6, 5}), strided({5, 6}, {1, 5}), 0},
        Common{"permute", f32({6, 5, 4}), strided({4, 6, 5}, {1, 20, 4}), 0},
        Common{"expand", f32({6, 1}), strided({6, 5}, {1, 0}), 0},
        Common{"expand_scalar", f32({}), strided({6, 5}, {0, 0}), 0},
        Common{"expand_of_slice", f32({8, 4}), strided({3, 2, 4}, {0, 4, 1}, 8), 1},
        Common{"flatten", f32({6, 5, 4}), strided({120}, {1}), 0},
        Common{"reshape_across", f32({6, 4}), strided({4, 6}, {6, 1}), 0},
        Common{"reshape_up", f32({24}), strided({2, 3, 4}, {12, 4, 1}), 0},
        Common{"unsqueeze", f32({6, 5}), strided({6, 1, 5}, {5, 5, 1}), 0},
        Common{"squeeze", f32({6, 1, 5}), strided({6, 5}, {5, 1}), 0},
        Common{"flatten_of_slice", f32({6, 5, 4}), strided({6, 8}, {20, 1}, 4), 1},
        Common{"every_second_of_even", f32({6, 5}), strided({3, 5}, {10, 1}), 1},
        Common{"every_second_of_odd", f32({7, 5}), strided({4, 5}, {10, 1}), 0},
        Common{"every_second_from_one", f32({7, 5}), strided({3, 5}, {10, 1}, 5), 1},
        Common{"every_third_from_one", f32({100}), strided({33}, {3}, 1), 1},
        Common{"every_third_inner", f32({4, 7}), strided({4, 2}, {7, 3}, 1), 1},
        Common{"every_third_middle", f32({3, 7, 4}), strided({3, 2, 4}, {28, 12, 1}, 4), 1},
        Common{"chunk", f32({8, 12}), strided({8, 4}, {12, 1}, 8), 1},
        Common{"split_uneven", f32({8, 10}), strided({8, 2}, {10, 1}, 8), 1},
        Common{"heads", f32({2, 5, 12}), strided({2, 3, 5, 4}, {60, 4, 12, 1}), 0},
        Common{"heads_of_qkv", f32({2, 5, 36}), strided({2, 3, 5, 4}, {180, 4, 36, 1}, 12), 1},
        Common{"heads_transposed", f32({2, 5, 12}), strided({2, 3, 4, 5}, {60, 4, 1, 12}), 0},
        Common{"rotary_half", f32({2, 3, 5, 8}), strided({2, 3, 5, 4}, {120, 40, 8, 1}, 4), 1},
        Common{"rotary_interleaved", f32({2, 5, 8}), strided({2, 5, 4}, {40, 8, 2}, 1), 1},
        Common{"causal_mask", f32({1, 1, 64, 64}), strided({1, 1, 5, 7}, {4096, 4096, 64, 1}), 2},
        Common{"last_token", f32({2, 5, 9}), strided({2, 9}, {45, 1}, 36), 1},
        Common{"channels_last", f32({2, 4, 5, 3}), strided({2, 3, 4, 5}, {60, 1, 15, 3}), 0},
        Common{"diagonal", f32({5, 5}), strided({5}, {6}), 0},
        Common{"batch_diagonal", f32({3, 5, 5}), strided({3, 5}, {25, 6}), 0},
        Common{"odd_strides_of_ones", f32({6, 5}), strided({1, 6, 1, 5}, {7, 5, 99, 1}), 0}),
    [](const auto& info) { return info.param.what; });

TEST(plan, starts_do_not_change_the_key) {
  const Type base = f32({6, 5, 4});
  const auto key = [&](Dims sizes, Dims strides, int64_t offset) {
    return plan(base, strided(std::move(sizes), std::move(strides), offset)).key();
  };
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(key({5, 4}, {4, 1}, i * 20), key({5, 4}, {4, 1}, 0));
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(key({6, 4}, {20, 1}, i * 4), key({6, 4}, {20, 1}, 0));
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(key({6, 5}, {20, 4}, i), key({6, 5}, {20, 4}, 0));
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(key({4, 5, 4}, {20, 4, 1}, i * 20), key({4, 5, 4}, {20, 4, 1}, 0));
  for (int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(key({3, 5, 4}, {40, 4, 1}, i * 20), key({3, 5, 4}, {40, 4, 1}, 0));
}

TEST(plan, of_a_view_over_a_row_edge_is_another_class) {
  const Type base = f32({4, 10});
  const Plan inside = plan(base, strided({3}, {1}, 5)), over = plan(base, strided({3}, {1}, 8));
  EXPECT_EQ(inside.cut, Cut::aligned);
  EXPECT_EQ(over.cut, Cut::flat);
  EXPECT_NE(inside.key(), over.key());
  const Plan rows_over = plan(base, strided({2, 3}, {10, 1}, 8));
  EXPECT_EQ(rows_over.cut, Cut::window);
  EXPECT_EQ(rows_over.window, 13);
  EXPECT_EQ(rows_over.operands(), Dims{8});
}

TEST(plan, small_steps_leave_a_dim_in_one_piece_and_large_ones_cut_it) {
  const auto sizes = [](const Plan& p) {
    Dims out;
    for (const Factor& f : p.factors) out.push_back(f.size);
    return out;
  };
  const Type base = f32({64, 5});
  EXPECT_EQ(sizes(plan(base, strided({32, 5}, {10, 1}))), (Dims{64, 5}));
  EXPECT_EQ(sizes(plan(base, strided({4, 5}, {80, 1}))), (Dims{64, 5}));
  EXPECT_EQ(sizes(plan(base, strided({2, 5}, {160, 1}))), (Dims{2, 32, 5}));
}

TEST(plan, of_overlapping_windows_is_a_gather) {
  const Plan p = plan(f32({10}), strided({4, 3}, {2, 1}, 1));
  EXPECT_EQ(p.kind, Kind::gather);
  EXPECT_EQ(p.operands(), Dims{1});
  EXPECT_EQ(plan(f32({10}), strided({4, 3}, {1, 1})).kind, Kind::gather);
}

TEST(plan, of_the_base_itself_is_whole) {
  EXPECT_EQ(plan(f32({6, 5}), strided({6, 5}, {5, 1})).kind, Kind::whole);
  EXPECT_EQ(plan(f32({6, 1, 5}), strided({6, 1, 5}, {5, 77, 1})).kind, Kind::whole);
  EXPECT_EQ(plan(f32({}), strided({}, {})).kind, Kind::whole);
  EXPECT_EQ(plan(f32({0, 3}), strided({0, 3}, {3, 1})).kind, Kind::whole);
  EXPECT_EQ(plan({DType::s32, {6}}, strided({6}, {1})).kind, Kind::chain);
}

TEST(plan, of_an_empty_view_takes_nothing) {
  EXPECT_EQ(plan(f32({0}), strided({0, 3}, {3, 1})).num_operands(), 0);
  EXPECT_EQ(plan(f32({6, 5}), strided({0, 5}, {5, 1}, 30)).num_operands(), 0);
}

std::string refusal(const Type& base, const View& v) {
  try {
    plan(base, v);
  } catch (const hlo::Error& e) {
    return e.what();
  }
  return "";
}

TEST(plan, outside_its_storage_is_refused) {
  EXPECT_EQ(
      refusal(f32({4, 10}), strided({3}, {1}, 38)),
      "view: reaches outside its storage: f32[3] with strides [1] and offset 38 of f32[4,10]");
  EXPECT_EQ(refusal(f32({0}), strided({}, {})),
            "view: reaches outside its storage: f32[] with strides [] and offset 0 of f32[0]");
  EXPECT_EQ(refusal({DType::u8, {11}}, strided({3}, {1})),
            "view: reaches outside its storage: f32[3] with strides [1] and offset 0 of u8[11]");
  EXPECT_EQ(refusal(f32({5}), strided({2}, {-1}, 3)),
            "view: negative stride: f32[2] with strides [-1] and offset 3 of f32[5]");
}

}  // namespace
}  // namespace torch_tpu::view
