// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "testing/run.h"
#include "view/model.h"

namespace torch_tpu::view {
namespace {

View strided(Dims sizes, Dims strides, int64_t offset = 0) {
  return {DType::s32, std::move(sizes), std::move(strides), offset};
}

TEST(view, contiguous_strides_count_empty_dims_as_one) {
  EXPECT_EQ(contiguous_strides({}), Dims{});
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 1, 4}), (Dims{4, 4, 1}));
}

TEST(view, is_whole_needs_equal_dtype_sizes_and_row_major_strides) {
  const Type base{DType::s32, {6, 1, 5}};
  EXPECT_TRUE(is_whole(base, strided({6, 1, 5}, {5, 5, 1})));
  EXPECT_TRUE(is_whole(base, strided({6, 1, 5}, {5, 77, 1})));
  EXPECT_FALSE(is_whole(base, strided({6, 5}, {5, 1})));
  EXPECT_FALSE(is_whole(base, strided({6, 1, 5}, {1, 1, 6})));
  EXPECT_FALSE(is_whole(base, {DType::f32, {6, 1, 5}, {5, 5, 1}}));
  EXPECT_FALSE(is_whole({DType::s32, {7}}, strided({6}, {1})));
  EXPECT_FALSE(is_whole({DType::s32, {1}}, strided({1}, {1}, 3)));
}

TEST(view, covers_is_dense_in_any_order_and_fills_the_storage) {
  EXPECT_TRUE(covers(120, strided({6, 5}, {5, 1})));
  EXPECT_TRUE(covers(120, strided({5, 6}, {1, 5})));
  EXPECT_TRUE(covers(4, strided({}, {})));
  EXPECT_TRUE(covers(0, strided({0, 3}, {3, 1})));
  EXPECT_FALSE(covers(124, strided({6, 5}, {5, 1})));
  EXPECT_FALSE(covers(120, strided({6, 5}, {5, 0})));
  EXPECT_FALSE(covers(120, strided({30}, {1}, 1)));
  EXPECT_FALSE(covers(60, strided({15}, {2})));
}

TEST(view, memory_order_leaves_dims_of_one_in_place) {
  EXPECT_EQ(memory_order(strided({2, 3, 4}, {12, 4, 1})), (Dims{0, 1, 2}));
  EXPECT_EQ(memory_order(strided({2, 3, 4, 5}, {60, 1, 15, 3})), (Dims{0, 2, 3, 1}));
  EXPECT_EQ(memory_order(strided({2, 1, 4, 5}, {20, 1, 5, 1})), (Dims{0, 1, 2, 3}));
  EXPECT_EQ(memory_order(strided({1, 3, 4}, {1, 1, 3})), (Dims{0, 2, 1}));
  EXPECT_EQ(memory_order(strided({}, {})), Dims{});
}

TEST(view, is_non_overlapping_implies_distinct_indices) {
  int yes = 0, no = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    model::Rng rng(seed);
    const model::Case c = model::random_case(rng);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + str(c));
    const Dims indices = model::indices(c.view);
    const bool distinct =
        std::set<int64_t>(indices.begin(), indices.end()).size() == indices.size();
    const bool said = is_non_overlapping(c.view);
    ASSERT_TRUE(distinct || !said);
    ++(said ? yes : no);
  }
  EXPECT_GE(yes, 1000);
  EXPECT_GE(no, 100);
  EXPECT_FALSE(is_non_overlapping(strided({4, 3}, {2, 1})));
  EXPECT_FALSE(is_non_overlapping(strided({4, 3}, {1, 0})));
  EXPECT_TRUE(is_non_overlapping(strided({4, 1}, {1, 0})));
}

TEST(view, extent_is_one_past_the_largest_index) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    model::Rng rng(seed);
    const model::Case c = model::random_case(rng);
    const Dims indices = model::indices(c.view);
    const int64_t largest =
        indices.empty() ? -1 : *std::max_element(indices.begin(), indices.end());
    ASSERT_EQ(extent(c.view), largest + 1) << "seed " << seed << ": " << str(c);
  }
}

TEST(view, natural_base_of_a_dense_view_has_its_dims_in_memory_order) {
  EXPECT_EQ(natural_base(strided({2, 3, 4}, {12, 4, 1})).str(), "s32[2,3,4]");
  EXPECT_EQ(natural_base(strided({2, 3, 4, 5}, {60, 1, 15, 3})).str(), "s32[2,4,5,3]");
  EXPECT_EQ(natural_base(strided({4, 5}, {8, 1})).str(), "s32[29]");
  EXPECT_EQ(natural_base(strided({4, 5}, {0, 1})).str(), "s32[5]");
  EXPECT_EQ(natural_base(strided({4}, {1}, 3)).str(), "s32[7]");
  EXPECT_EQ(natural_base(strided({}, {})).str(), "s32[]");
  EXPECT_EQ(natural_base(strided({0, 5}, {5, 1})).str(), "s32[0,5]");
}

// to_base puts element i of the view's value where the view will read it; what it does not read is
// 0.
TEST(view, to_base_holds_the_value_and_zeros) {
  const View views[] = {
      strided({2, 3, 4}, {12, 4, 1}),
      strided({2, 3, 4, 5}, {60, 1, 15, 3}),
      strided({4, 5}, {8, 1}),
      strided({4, 5}, {1, 6}, 2),
      strided({}, {}),
      strided({}, {}, 3),
      strided({0, 5}, {5, 1}),
      strided({2, 1, 3}, {3, 9, 1}),
      strided({5}, {3}),
      strided({3, 3}, {4, 1}, 1),
  };
  for (const View& v : views) {
    SCOPED_TRACE(hlo::str(v.sizes) + " strides " + hlo::str(v.strides));
    std::vector<int32_t> data(v.numel());
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int32_t>(i) + 1;
    hlo::Builder b;
    const Value base = to_base(b.parameter(0, {v.dtype, v.sizes}), v);
    ASSERT_EQ(base.type(), natural_base(v));
    const test::Arrays out = test::run(b.finish({base}), {test::array(v.sizes, data)});
    std::vector<int32_t> expected(natural_base(v).numel(), 0);
    const Dims indices = model::indices(v);
    for (size_t i = 0; i < data.size(); ++i) expected[indices[i]] = data[i];
    EXPECT_EQ(out[0].values<int32_t>(), expected);
  }
}

}  // namespace
}  // namespace torch_tpu::view
