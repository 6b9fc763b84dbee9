// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

Values added(const Values& l, const Values& r) {
  Values out;
  for (size_t i = 0; i < l.size(); ++i) out.push_back(l[i] + r[i]);
  return out;
}
Values larger(const Values& l, const Values& r) { return {maximum(l[0], r[0])}; }
Values larger_with_place(const Values& l, const Values& r) {
  Value left = l[0] >= r[0];
  return {select(left, l[0], r[0]), select(left, l[1], r[1])};
}

class Windows : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Windows);

TEST_P(Windows, sum_with_every_field_matches_a_loop) {
  constexpr int64_t kRows = 4, kColumns = 5;
  Program p;
  Value x = p.count<int32_t>({kRows, kColumns});
  Window w = Window::of_rank(2);
  w.sizes = {2, 3};
  w.strides = {2, 1};
  w.base_dilations = {1, 2};
  w.window_dilations = {2, 1};
  w.padding = {{1, 2}, {0, 1}};
  const Arrays out = p.run(client(), reduce_window({x}, {constant(p.b, DType::s32, 0)}, w, added));
  Ints want;
  for (int64_t i = 0; i + 3 <= kRows + 3; i += 2) {
    for (int64_t j = 0; j + 3 <= 2 * kColumns - 1 + 1; ++j) {
      int32_t sum = 0;
      for (int64_t a = 0; a < 2; ++a) {
        for (int64_t c = 0; c < 3; ++c) {
          const int64_t row = i + 2 * a - 1, column = j + c;
          if (row >= 0 && row < kRows && column % 2 == 0 && column / 2 < kColumns)
            sum += static_cast<int32_t>(row * kColumns + column / 2);
        }
      }
      want.push_back(sum);
    }
  }
  EXPECT_EQ(out[0].values<int32_t>(), want);
}

TEST_P(Windows, pool_with_places) {
  Program p;
  Value x = p.input<float>({4, 4}, {1, 5, 2, 0, 3, 4, 9, 8, 0, 0, 7, 7, 0, -1, 7, 7});
  Value place = reshape(iota(p.b, {DType::s32, {16}}, 0), {4, 4});
  Window w = Window::of_rank(2);
  w.sizes = w.strides = {2, 2};
  const Arrays out = p.run(
      client(), reduce_window({x, place}, {lowest(p.b, DType::f32), constant(p.b, DType::s32, -1)},
                              w, larger_with_place));
  EXPECT_EQ(out[0].values<float>(), (Floats{5, 9, 0, 7}));
  EXPECT_EQ(out[1].values<int32_t>(), (Ints{1, 6, 8, 10}));
}

// A window as long as the row turns into a scan inside XLA.
TEST_P(Windows, scan_one_array_of_any_length) {
  for (const int64_t n : {5, 17, 300}) {
    Program p;
    Value x = p.count<int32_t>({2, n});
    Window w = Window::of_rank(2);
    w.sizes[1] = n;
    w.padding[1] = {n - 1, 0};
    Value sums = reduce_window({x}, {constant(p.b, DType::s32, 0)}, w, added)[0];
    Value highest_so_far = reduce_window({negate(x)}, {lowest(p.b, DType::s32)}, w, larger)[0];
    const Arrays out = p.run(client(), {sums, highest_so_far});
    for (int64_t i = 0; i < 2 * n; ++i) {
      const int64_t first = i / n * n, count = i - first + 1;
      EXPECT_EQ(out[0].values<int32_t>()[i], count * first + count * (count - 1) / 2)
          << n << ' ' << i;
      EXPECT_EQ(out[1].values<int32_t>()[i], -first) << n << ' ' << i;
    }
  }
}

// Longer than 256 the plugins' own rewrite of such a window would corrupt memory.
TEST_P(Windows, scan_two_arrays_of_any_length_either_way) {
  for (const int64_t n : {5, 300}) {
    Program p;
    Value x = p.count<int32_t>({2, n});
    Value zero = constant(p.b, DType::s32, 0);
    Window forward = Window::of_rank(2), backward = forward;
    forward.sizes[1] = backward.sizes[1] = n;
    forward.padding[1] = {n - 1, 0};
    backward.padding[1] = {0, n - 1};
    const Values before = reduce_window({x, x * 2}, {zero, zero}, forward, added);
    const Values after = reduce_window({x, x * 2}, {zero, zero}, backward, added);
    const Arrays out = p.run(client(), {before[0], before[1], after[0], after[1]});
    for (int64_t i = 0; i < 2 * n; ++i) {
      const int64_t first = i / n * n, last = first + n - 1;
      const int64_t head = (i - first + 1) * (first + i) / 2,
                    tail = (last - i + 1) * (i + last) / 2;
      EXPECT_EQ(out[0].values<int32_t>()[i], head) << n << ' ' << i;
      EXPECT_EQ(out[1].values<int32_t>()[i], 2 * head) << n << ' ' << i;
      EXPECT_EQ(out[2].values<int32_t>()[i], tail) << n << ' ' << i;
      EXPECT_EQ(out[3].values<int32_t>()[i], 2 * tail) << n << ' ' << i;
    }
  }
}

TEST_P(Windows, may_be_empty_or_trivial) {
  Program p;
  Value x = p.count<float>({1, 3});
  Value zero = constant(p.b, DType::f32, 0);
  Window tall = Window::of_rank(2);
  tall.sizes = {2, 1};
  Window padded = tall;
  padded.padding = {{1, 1}, {0, 0}};
  Value none = slice_in_dim(x, 0, 0, 0);
  const Arrays out = p.run(
      client(),
      {reduce_window({x}, {zero}, tall, added)[0], reduce_window({none}, {zero}, padded, added)[0],
       reduce_window({x}, {zero}, Window::of_rank(2), added)[0],
       reduce_window({flatten(slice_in_dim(x, 1, 1, 2))}, {zero}, Window::of_rank(1), added)[0],
       reduce_window({constant(p.b, DType::f32, 5)}, {zero}, Window::of_rank(0), added)[0]});
  EXPECT_EQ(out[0].type.dims, (Dims{0, 3}));
  EXPECT_EQ(out[1].values<float>(), (Floats{0, 0, 0}));
  EXPECT_EQ(out[2].values<float>(), (Floats{0, 1, 2}));
  EXPECT_EQ(out[3].values<float>(), (Floats{1}));
  EXPECT_EQ(out[4].values<float>(), (Floats{5}));
}

TEST_P(Windows, select_and_scatter_adds_where_the_largest_is) {
  Program p;
  Value x = p.input<float>({1, 1, 4, 4}, {1, 5, 2, 0, 3, 4, 9, 8, 0, 0, 7, 7, 0, -1, 7, 7});
  Value source = p.input<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  Window w = Window::of_rank(4);
  w.sizes = w.strides = {1, 1, 2, 2};
  const Arrays out = p.run(
      client(), {select_and_scatter(x, source, constant(p.b, DType::f32, 0), w, Compare::ge)});
  EXPECT_EQ(out[0].values<float>(), (Floats{0, 1, 0, 0, 0, 0, 2, 0, 3, 0, 4, 0, 0, 0, 0, 0}));
}

TEST(WindowErrors, name_operation_and_shapes) {
  Builder b;
  Value x = b.parameter(0, {DType::f32, {4, 4}}), zero = constant(b, DType::f32, 0);
  EXPECT_EQ(error_of([&] { reduce_window({x}, {zero}, Window::of_rank(1), added); }),
            "reduce_window of f32[4,4]: the window has not the operand's rank");
  Window w = Window::of_rank(2);
  w.strides = {0, 1};
  EXPECT_EQ(error_of([&] { reduce_window({x}, {zero}, w, added); }),
            "reduce_window of f32[4,4]: window sizes, strides and dilations must be positive");
  EXPECT_EQ(error_of([&] { select_and_scatter(x, zero, zero, Window::of_rank(2), Compare::ge); }),
            "select_and_scatter of f32[4,4], f32[]: source has not the windows' shape");
}

}  // namespace
}  // namespace torch_tpu::hlo
