// SPDX-License-Identifier: Apache-2.0
// One operator of a kind: what it gives is PyTorch's business and tested there; that it gives it
// with no torch in the process is tested here.
#include <cmath>
#include <limits>

#include "lower/call.h"

namespace torch_tpu::lower {
namespace {

class Families : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Families);

Arg integer(int64_t v) { return Number::of(v); }
Arg flag(bool v) { return Number::of(v); }

void expect_close(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(hlo::close(got[i], want[i], 1e-5, 1e-6)) << i;
}

TEST_P(Families, softmax_of_a_masked_row_is_nan) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  Call c;
  Value x = c.p.input<float>({2, 2}, {0, std::log(3.0f), -inf, -inf});
  const auto got = c.p.run(client(), c("aten::_softmax", {x, integer(1), flag(false)}));
  const Floats y = got[0].values<float>();
  expect_close({y[0], y[1]}, {0.25f, 0.75f});
  EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
}

TEST_P(Families, sum_of_integers_is_wide) {
  Call c;
  Value x = c.p.input<int8_t>({2, 2}, {100, 100, -1, 2});
  const auto got = c.p.run(client(), c("aten::sum.dim_IntList", {x, Dims{1}, flag(true), kNone}));
  EXPECT_EQ(got[0].values<int64_t>(), (Longs{200, 1}));
  EXPECT_EQ(got[0].type.dims, (Dims{2, 1}));
}

TEST_P(Families, addmm_ignores_nan_when_beta_is_zero) {
  Call c;
  Value nan = hlo::full(c.p.b, {DType::f32, {2, 2}}, std::nan("")), a = c.p.count<float>({2, 2});
  const auto got =
      c.p.run(client(), c("aten::addmm", {nan, a, a, c.number(int64_t{0}), c.number(int64_t{1})}));
  EXPECT_EQ(got[0].values<float>(), (Floats{2, 3, 6, 11}));
}

TEST_P(Families, sort_gives_two_results) {
  Call c;
  Value x = c.p.input<float>({4}, {3, 1, 2, 1});
  const auto got =
      c.p.run(client(), c("aten::sort.stable", {x, flag(true), integer(0), flag(false)}));
  EXPECT_EQ(got[0].values<float>(), (Floats{1, 1, 2, 3}));
  EXPECT_EQ(got[1].values<int64_t>(), (Longs{1, 3, 2, 0}));
}

TEST_P(Families, embedding_bag_has_four_results) {
  Call c;
  Value w = c.p.count<float>({3, 2});
  Value i = c.p.input<int64_t>({3}, {2, 0, 2}), o = c.p.input<int64_t>({2}, {0, 1});
  const Values out = c("aten::_embedding_bag", {w, i, o, flag(false), integer(1), flag(false),
                                                kNone, flag(false), integer(-1)});
  ASSERT_EQ(out.size(), 4u);
  const auto got = c.p.run(client(), {out[0], out[1], out[2]});
  expect_close(got[0].values<float>(), {4, 5, 2, 3});
  EXPECT_EQ(got[1].values<int64_t>(), (Longs{0, 1, 1}));
  EXPECT_EQ(got[2].values<int64_t>(), (Longs{1, 2}));
}

TEST_P(Families, what_cpu_refuses_is_refused_in_its_words) {
  Call c;
  Value x = c.p.input<int64_t>({2}, {1, 2});
  try {
    c("aten::_softmax", {x, integer(0), flag(false)});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'");
  }
}

}  // namespace
}  // namespace torch_tpu::lower
