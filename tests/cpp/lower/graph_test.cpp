// SPDX-License-Identifier: Apache-2.0
#include "lower/graph.h"

#include "lower/call.h"

namespace torch_tpu::lower {
namespace {

Graph::Argument ref(int node, int output = 0) { return {Graph::Ref{node, output}}; }
Graph::Argument input(int i) { return {Graph::Ref{-1, i}}; }

class Graphs : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Graphs);

TEST_P(Graphs, evaluates_lowerings_in_order_with_constants_and_none) {
  Graph g;
  g.set_num_inputs(2);
  const int sum = g.call("aten::add.Tensor", {input(0), input(1), {Arg(Number::of(int64_t{2}))}});
  const int top =
      g.call("aten::max.dim", {ref(sum), {Arg(Number::of(int64_t{1}))}, {Arg(Number::of(false))}});
  g.output(Graph::Ref{top, 0});
  g.output(Graph::None{});
  g.output(Graph::Ref{top, 1});
  Call c;
  Value x = c.p.input<float>({2, 2}, {1, 2, 3, 4}), y = c.p.input<float>({2}, {10, 0});
  const Values out = g.evaluate(c.ctx, {x, y});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_FALSE(out[1]);
  const auto got = c.p.run(client(), {out[0], out[2]});
  EXPECT_EQ(got[0].values<float>(), (Floats{21, 23}));
  EXPECT_EQ(got[1].values<int64_t>(), (Longs{0, 0}));
}

TEST_P(Graphs, takes_lists_of_values) {
  Graph g;
  g.set_num_inputs(2);
  Graph::Argument list{std::vector<Graph::Item>{Graph::Ref{-1, 0}, Graph::Ref{-1, 1}}};
  g.output(Graph::Ref{g.call("aten::cat", {list, {Arg(Number::of(int64_t{0}))}}), 0});
  Call c;
  const Values out = g.evaluate(c.ctx, {c.p.input<float>({1}, {7}), c.p.input<float>({2}, {8, 9})});
  EXPECT_EQ(c.p.run(client(), out)[0].values<float>(), (Floats{7, 8, 9}));
}

// One draw is made twice from the state that was read before it: what checkpointing needs.
TEST_P(Graphs, draws_again_from_a_saved_state) {
  Graph g;
  g.set_num_inputs(1);
  const std::vector<Graph::Argument> arguments = {input(0), {Arg(DType::f32)}, {Arg{}},
                                                  {Arg{}},  {Arg{}},           {Arg{}}};
  const int first = g.call("aten::rand_like", arguments);
  const int state = g.call("tpu::rng_state", {});
  const int second = g.call("aten::rand_like", arguments);
  const int again = g.call("aten::rand_like", arguments, Graph::Ref{state, 0});
  for (int node : {first, second, again}) g.output(Graph::Ref{node, 0});
  EXPECT_TRUE(g.is_random());
  Call c;
  Value x = c.p.input<float>({5}, {0, 0, 0, 0, 0});
  Value seed = c.p.input<uint64_t>({2}, {17, 0});
  int64_t drawn = 0;
  c.ctx.draw = [&](int64_t count) {
    Value at = seed + hlo::literal(c.p.b, DType::u64, std::vector<int64_t>{0, drawn});
    drawn += (count + 3) / 4 * 4;
    return at;
  };
  const auto got = c.p.run(client(), g.evaluate(c.ctx, {x}));
  EXPECT_NE(got[0].values<float>(), got[1].values<float>());
  EXPECT_EQ(got[1].values<float>(), got[2].values<float>());
}

TEST(GraphErrors, name_the_operator) {
  Graph g;
  g.set_num_inputs(2);
  try {
    g.call("aten::nothing", {});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "aten::nothing has no lowering for tpu");
    EXPECT_EQ(e.kind(), UserError::Kind::not_implemented);
  }
  g.output(Graph::Ref{g.call("aten::mm", {input(0), input(1)}), 0});
  Call c;
  Value x = c.p.count<float>({2, 3});
  try {
    g.evaluate(c.ctx, {x, x});
    FAIL();
  } catch (const hlo::Error& e) {
    EXPECT_EQ(std::string(e.what()).find("aten::mm: "), 0u) << e.what();
  }
}

}  // namespace
}  // namespace torch_tpu::lower
