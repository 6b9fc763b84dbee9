// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(),
                kNaN = std::numeric_limits<float>::quiet_NaN();

class Reduce : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Reduce);

TEST_P(Reduce, reduces_along_dimensions) {
  Program p;
  Value x = p.count<int32_t>({2, 3});
  const Arrays out = p.run(client(), {sum(x, {1}), sum(x, {0}, keep_dims), prod(x + 1.0, {0, 1}),
                                      max(x, {-1}), min(x, {-2, -1}, keep_dims), sum(x, {})});
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{3, 12}));
  EXPECT_EQ(out[1].type.dims, (Dims{1, 3}));
  EXPECT_EQ(out[1].values<int32_t>(), (Ints{3, 5, 7}));
  EXPECT_EQ(out[2].values<int32_t>(), (Ints{720}));
  EXPECT_EQ(out[3].values<int32_t>(), (Ints{2, 5}));
  EXPECT_EQ(out[4].type.dims, (Dims{1, 1}));
  EXPECT_EQ(out[4].values<int32_t>(), (Ints{0}));
  EXPECT_EQ(out[5].values<int32_t>(), (Ints{0, 1, 2, 3, 4, 5}));
}

TEST_P(Reduce, reduces_every_ordered_dtype) {
  for (int k = 0; k < kNumDTypes; ++k) {
    const DType t = static_cast<DType>(k);
    if (is_complex(t) || t == DType::pred || t == DType::f8e8m0fnu) continue;
    Program p;
    Value x = convert(p.input<float>({2, 2}, {1, 2, 3, 1}), t);
    Value none = slice_in_dim(x, 0, 0, 0);
    const auto f = [](Value v) { return convert(v, DType::f32); };
    const Arrays out =
        p.run(client(), {f(sum(x, {0})), f(prod(x, {0})), f(max(x, {0})), f(min(x, {0, 1})),
                         f(sum(none, {0})), f(prod(none, {0})), max(none, {0}) == lowest(p.b, t),
                         min(none, {0}) == highest(p.b, t)});
    EXPECT_EQ(out[0].values<float>(), (Floats{4, 3})) << name(t);
    EXPECT_EQ(out[1].values<float>(), (Floats{3, 2})) << name(t);
    EXPECT_EQ(out[2].values<float>(), (Floats{3, 2})) << name(t);
    EXPECT_EQ(out[3].values<float>(), (Floats{1})) << name(t);
    EXPECT_EQ(out[4].values<float>(), (Floats{0, 0})) << name(t);
    EXPECT_EQ(out[5].values<float>(), (Floats{1, 1})) << name(t);
    EXPECT_EQ(out[6].values<bool>(), (Bools{true, true})) << name(t);
    EXPECT_EQ(out[7].values<bool>(), (Bools{true, true})) << name(t);
  }
}

TEST_P(Reduce, max_and_min_pass_nan_on) {
  for (const int64_t n : {3, 200}) {  // short rows and those that the compiler vectorises
    Program p;
    std::vector<float> values(static_cast<size_t>(3 * n), 1);
    values[n / 2] = kNaN;
    values[n + 1] = kInf;
    Value x = p.input<float>({3, n}, values);
    const Arrays out = p.run(client(), {max(x, {1}), min(x, {1}), max(x, {0, 1})});
    EXPECT_TRUE(std::isnan(out[0].values<float>()[0])) << n;
    EXPECT_EQ(out[0].values<float>()[1], kInf) << n;
    EXPECT_TRUE(std::isnan(out[1].values<float>()[0])) << n;
    EXPECT_EQ(out[1].values<float>()[2], 1) << n;
    EXPECT_TRUE(std::isnan(out[2].values<float>()[0])) << n;
  }
}

TEST_P(Reduce, max_unless_nan_is_the_maximum_of_rows_without_nan) {
  for (const int64_t n : {3, 40, 200}) {
    Program p;
    std::vector<float> values(static_cast<size_t>(4 * n));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) - 50;
    values[n / 2] = kInf;
    std::fill_n(values.begin() + n, n, -kInf);
    values[3 * n - 1] = 400;
    values[3 * n] = kNaN;
    Value x = p.input<float>({4, n}, values);
    const Arrays out = p.run(
        client(), {max_unless_nan(x, {1}), max_unless_nan(x, {0}, keep_dims),
                   max_unless_nan(convert(x, DType::s32), {1}), max(convert(x, DType::s32), {1})});
    const auto rows = out[0].values<float>();
    EXPECT_EQ(std::vector<float>(rows.begin(), rows.begin() + 3),
              (std::vector<float>{kInf, -kInf, 400}))
        << n;
    EXPECT_EQ(out[1].values<float>()[n / 2], kInf) << n;
    EXPECT_EQ(out[2].values<int32_t>(), out[3].values<int32_t>()) << n;
  }
}

TEST_P(Reduce, asks_any_and_all) {
  Program p;
  Value x = p.input<bool>({2, 2}, {true, false, true, true});
  Value none = slice_in_dim(x, 0, 0, 0);
  const Arrays out = p.run(
      client(), {any(x, {0}), all(x, {1}), any(none, {0, 1}), all(none, {0, 1}), all(none, {1})});
  EXPECT_EQ(out[0].values<bool>(), (Bools{true, true}));
  EXPECT_EQ(out[1].values<bool>(), (Bools{false, true}));
  EXPECT_EQ(out[2].values<bool>(), (Bools{false}));
  EXPECT_EQ(out[3].values<bool>(), (Bools{true}));
  EXPECT_EQ(out[4].type.dims, (Dims{0}));
}

Values larger_then_earlier(const Values& l, const Values& r) {
  Value left = (l[0] > r[0]) | ((l[0] == r[0]) & (l[1] < r[1]));
  return {select(left, l[0], r[0]), select(left, l[1], r[1])};
}

TEST_P(Reduce, reduces_several_arrays_at_once) {
  Program p;
  Value x = p.input<float>({2, 4}, {1, 5, 5, 2, 9, 8, 7, 9});
  Value i = iota(p.b, {DType::s64, {2, 4}}, 1);
  const Values start = {lowest(p.b, DType::f32), constant(p.b, DType::s64, 0)};
  const Values rows = reduce({x, i}, start, {1}, larger_then_earlier);
  const Values whole = reduce({x, i}, start, {0, 1}, larger_then_earlier);
  const Arrays out = p.run(client(), {rows[0], rows[1], whole[0], whole[1]});
  EXPECT_EQ(out[0].values<float>(), (Floats{5, 9}));
  EXPECT_EQ(out[1].values<int64_t>(), (Longs{1, 0}));
  EXPECT_EQ(out[2].values<float>(), (Floats{9}));
  EXPECT_EQ(out[3].values<int64_t>(), (Longs{0}));
}

TEST_P(Reduce, sorts) {
  Program p;
  Value x = p.input<float>({5}, {3, kNaN, -1, 3, -kInf}),
        m = p.input<int32_t>({2, 2}, {4, 1, 2, 3});
  const auto total = [](const Values& l, const Values& r) {
    return compare_total_order(l[0], r[0], Compare::lt);
  };
  const auto falling = [](const Values& l, const Values& r) { return l[0] > r[0]; };
  const Values up = sort({x, iota(p.b, {DType::s32, {5}}, 0)}, 0, true, total);
  const Arrays out =
      p.run(client(), {up[1], sort({m}, 0, false, falling)[0], sort({m}, -1, false, falling)[0],
                       sort({slice_in_dim(m, 1, 0, 0)}, 1, false, falling)[0],
                       sort({constant(p.b, DType::f32, 1)}, 0, true, falling)[0]});
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{4, 2, 0, 3, 1}));
  EXPECT_EQ(out[1].values<int32_t>(), (Ints{4, 3, 2, 1}));
  EXPECT_EQ(out[2].values<int32_t>(), (Ints{4, 1, 3, 2}));
  EXPECT_EQ(out[3].type.dims, (Dims{2, 0}));
  EXPECT_EQ(out[4].values<float>(), (Floats{1}));
}

TEST_P(Reduce, finds_the_largest_k) {
  Program p;
  Value x = p.input<float>({2, 4}, {1, kInf, kNaN, 2, 5, 5, -kInf, 5});
  auto [values, indices] = top_k(x, 2);
  auto [bytes, places] = top_k(p.input<uint8_t>({3}, {7, 255, 0}), 3);
  auto [none, nowhere] = top_k(x, 0);
  const Arrays out = p.run(client(), {values, indices, bytes, places, none, nowhere});
  EXPECT_TRUE(std::isnan(out[0].values<float>()[0]));
  EXPECT_EQ(out[0].values<float>()[1], kInf);
  EXPECT_EQ(out[1].values<int32_t>(), (Ints{2, 1, 0, 1}));
  EXPECT_EQ(out[2].values<uint8_t>(), (std::vector<uint8_t>{255, 7, 0}));
  EXPECT_EQ(out[3].values<int32_t>(), (Ints{1, 0, 2}));
  EXPECT_EQ(out[4].type.dims, (Dims{2, 0}));
}

TEST(ReduceErrors, name_operation_and_types) {
  Builder b;
  Value x = b.parameter(0, {DType::f32, {2, 3}}), zero = constant(b, DType::f32, 0);
  const auto keep = [](const Values& l, const Values&) { return l; };
  EXPECT_EQ(error_of([&] { sum(x, {2}); }), "sum of f32[2,3]: dimension 2 is out of range");
  EXPECT_EQ(error_of([&] { max(x, {0, -2}); }),
            "max of f32[2,3]: dimension -2 appears twice in [0, -2]");
  EXPECT_EQ(error_of([&] { any(x, {0}); }), "any of f32[2,3]: pred is needed");
  EXPECT_EQ(error_of([&] { reduce({x}, {constant(b, DType::s32, 0)}, {0}, keep); }),
            "reduce of f32[2,3], s32[]: dtypes differ");
  EXPECT_EQ(error_of([&] { reduce({x}, {}, {0}, keep); }),
            "reduce: as many arrays as initial values are needed");
  EXPECT_EQ(error_of([&] { reduce({x, slice_in_dim(x, 0, 0, 1)}, {zero, zero}, {0}, keep); }),
            "reduce of f32[2,3], f32[1,3]: shapes differ");
  EXPECT_EQ(
      error_of([&] { sort({x}, 0, true, [](const Values& l, const Values&) { return l[0]; }); }),
      "sort of f32[]: the comparator must give a rank-0 pred");
  EXPECT_EQ(error_of([&] { top_k(x, 4); }), "top_k of f32[2,3]: k = 4 is out of range");
}

}  // namespace
}  // namespace torch_tpu::hlo
