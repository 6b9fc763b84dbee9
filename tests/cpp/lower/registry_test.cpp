// SPDX-License-Identifier: Apache-2.0
#include "lower/registry.h"

#include "lower/call.h"

namespace torch_tpu::lower {
namespace {

Value twice(Value x) { return x + x; }
Value scaled(Value x, double by) { return x * by; }
std::pair<Value, Value> both(Value x, std::optional<Value> y) { return {x, y ? *y : x}; }
Value drawn(Context& ctx, Value x) { return hlo::convert(ctx.draw(4), x.dtype()); }

std::string error(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST(Registry, holds_every_family) {
  const auto& entries = Registry::global().entries();
  EXPECT_GE(entries.size(), 700u);
  for (const char* name : {"aten::add.Tensor", "aten::_softmax", "aten::mm", "aten::convolution"})
    EXPECT_NE(Registry::global().find(name), nullptr) << name;
  EXPECT_EQ(Registry::global().find("aten::nothing"), nullptr);
  for (const auto& [name, entry] : entries) {
    EXPECT_EQ(name, entry.name);
    EXPECT_NE(name.find("::"), std::string::npos) << name;
    EXPECT_TRUE(entry.call) << name;
  }
}

TEST(Registry, says_how_each_argument_is_prepared) {
  Registry r;
  r.add("tpu::scaled", scaled);
  r.add("tpu::both", both);
  EXPECT_EQ(r.find("tpu::scaled")->params,
            (std::vector<ParamKind>{ParamKind::operand, ParamKind::number}));
  EXPECT_EQ(r.find("tpu::both")->params,
            (std::vector<ParamKind>{ParamKind::operand, ParamKind::operand}));
  EXPECT_FALSE(r.find("tpu::both")->is_random);
  r.add_random("tpu::drawn", drawn);
  EXPECT_TRUE(r.find("tpu::drawn")->is_random);
}

TEST(Registry, refuses_a_second_lowering_of_one_name) {
  Registry r;
  r.add("tpu::twice", twice);
  EXPECT_EQ(error([&] { r.add("tpu::twice", twice); }), "two lowerings for tpu::twice");
  EXPECT_EQ(error([&] { r.alias("tpu::other", "tpu::none"); }),
            "no lowering tpu::none for the alias tpu::other");
  r.alias("tpu::other", "tpu::twice");
  EXPECT_EQ(r.find("tpu::other")->name, "tpu::other");
}

TEST(Registry, names_an_argument_of_the_wrong_kind) {
  Call c;
  Value x = c.p.input<float>({2}, {1, 2});
  Registry r;
  r.add("tpu::scaled", scaled);
  const Entry& e = *r.find("tpu::scaled");
  EXPECT_EQ(error([&] { e.call(c.ctx, {x, std::string("a")}); }),
            "argument 1 must be a number, got a string");
  EXPECT_EQ(error([&] { e.call(c.ctx, {x}); }), "the lowering takes 2 arguments, its schema 1");
  EXPECT_EQ(error([&] { e.call(c.ctx, {kNone, Number::of(2.0)}); }),
            "argument 0 must be a tensor, got a None");
}

class Lists : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Lists);

TEST_P(Lists, a_foreach_operator_is_the_single_one_per_position) {
  Call c;
  const Values xs = {c.p.input<float>({2}, {1, 2}), c.p.input<float>({}, {5})};
  const Values ys = {c.p.input<float>({2}, {10, 20}), c.p.input<float>({}, {50})};
  const Values out = c("aten::_foreach_add.List", {xs, ys, c.number(int64_t{2})});
  ASSERT_EQ(out.size(), 2u);
  const auto got = c.p.run(client(), out);
  EXPECT_EQ(got[0].values<float>(), (Floats{21, 42}));
  EXPECT_EQ(got[1].values<float>(), (Floats{105}));
}

}  // namespace
}  // namespace torch_tpu::lower
