// SPDX-License-Identifier: Apache-2.0
#include "lower/promote.h"

#include "lower/call.h"

namespace torch_tpu::lower {
namespace {

using D = DType;

TEST(Promote, types_are_torch_promote_types) {
  EXPECT_EQ(promote_types(D::u8, D::s8), D::s16);
  EXPECT_EQ(promote_types(D::pred, D::u8), D::u8);
  EXPECT_EQ(promote_types(D::s64, D::f16), D::f16);
  EXPECT_EQ(promote_types(D::f16, D::bf16), D::f32);
  EXPECT_EQ(promote_types(D::f32, D::f64), D::f64);
  EXPECT_EQ(promote_types(D::f64, D::c64), D::c128);
  EXPECT_EQ(promote_types(D::bf16, D::c64), D::c64);
  for (D a : {D::pred, D::u8, D::s8, D::s16, D::s32, D::s64, D::f16, D::bf16, D::f32, D::f64}) {
    EXPECT_EQ(promote_types(a, a), a);
    for (D b : {D::pred, D::s32, D::f16, D::f32})
      EXPECT_EQ(promote_types(a, b), promote_types(b, a));
  }
}

TEST(Promote, rank_and_kind_decide_the_result) {
  Call c;
  Value bytes = c.p.count<uint8_t>({3}), halves = hlo::full(c.p.b, {D::f16, {3}}, 1);
  Value wide = hlo::full(c.p.b, {D::s64, {}}, 1), real = hlo::full(c.p.b, {D::f64, {}}, 1);
  const auto result = [](const Args& args) { return result_type(args, D::f32); };
  EXPECT_EQ(result({bytes, wide}), D::u8);   // a 0-dim tensor of the same kind is weaker
  EXPECT_EQ(result({bytes, real}), D::f64);  // of a higher kind it decides
  EXPECT_EQ(result({halves, real}), D::f16);
  EXPECT_EQ(result({bytes, c.number(int64_t{2})}), D::u8);
  EXPECT_EQ(result({bytes, c.number(2.0)}), D::f32);  // a number of a higher kind: the default
  EXPECT_EQ(result({halves, c.number(2.0)}), D::f16);
  EXPECT_EQ(result({bytes, c.boolean(true)}), D::u8);
  EXPECT_EQ(result_type({bytes, c.number(2.0)}, D::f64), D::f64);
  EXPECT_EQ(to_floating(D::s32, D::f32), D::f32);
  EXPECT_EQ(to_floating(D::bf16, D::f32), D::bf16);
}

class Pointwise : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Pointwise);

TEST_P(Pointwise, computes_and_returns_the_promoted_dtype) {
  Call c;
  Value i = c.p.input<int32_t>({3}, {1, -7, 9}), f = c.p.input<float>({3}, {0.5, 2, -3});
  Value b = c.p.input<bool>({3}, {true, false, true});
  const Values out = {
      c("aten::add.Tensor", {i, f, c.number(int64_t{2})})[0],
      c("aten::div.Tensor", {i, c.number(int64_t{2})})[0],
      c("aten::mul.Tensor", {b, c.number(int64_t{3})})[0],
      c("aten::gt.Tensor", {i, f})[0],
      c("aten::logical_and", {i, b})[0],
  };
  const auto got = c.p.run(client(), out);
  EXPECT_EQ(got[0].values<float>(), (Floats{2, -3, 3}));
  EXPECT_EQ(got[1].values<float>(), (Floats{0.5, -3.5, 4.5}));
  EXPECT_EQ(got[2].values<int64_t>(), (Longs{3, 0, 3}));
  EXPECT_EQ(got[3].values<bool>(), (hlo::Bools{true, false, true}));
  EXPECT_EQ(got[4].values<bool>(), (hlo::Bools{true, false, true}));
}

}  // namespace
}  // namespace torch_tpu::lower
