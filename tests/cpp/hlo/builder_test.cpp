// SPDX-License-Identifier: Apache-2.0
#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

constexpr DType f32 = DType::f32, s32 = DType::s32;

TEST(Builder, prints_a_program) {
  Builder b;
  Value x = b.parameter(0, {f32, {2, 3}});
  Value y = b.parameter(1, {f32, {3}});
  EXPECT_EQ(b.finish({sum(x * y, {1})}).text, R"(module {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) -> (tensor<2xf32>) {
    %2 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>) -> tensor<2x3xf32>
    %3 = "stablehlo.multiply"(%arg0, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %4 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.reduce"(%3, %4) <{dimensions = array<i64: 1>}> ({
    ^bb0(%5: tensor<f32>, %6: tensor<f32>):
      %7 = "stablehlo.add"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    return %8 : tensor<2xf32>
  }
}
)");
}

TEST(Builder, prints_several_results_of_one_operation) {
  Builder b;
  Value x = b.parameter(0, {f32, {4}});
  Values sorted = sort({x, iota(b, {s32, {4}}, 0)}, 0, true,
                       [](const Values& l, const Values& r) { return l[0] < r[0]; });
  EXPECT_EQ(b.finish({sorted[1], sorted[0]}).text, R"(module {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>) {
    %1 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %7:2 = "stablehlo.sort"(%arg0, %1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%2: tensor<f32>, %3: tensor<f32>, %4: tensor<i32>, %5: tensor<i32>):
      %6 = "stablehlo.compare"(%2, %3) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
    return %7#1, %7#0 : tensor<4xi32>, tensor<4xf32>
  }
}
)");
}

TEST(Builder, prints_a_program_without_results_or_arguments) {
  Builder b;
  EXPECT_EQ(b.finish({}).text,
            "module {\n  func.func public @main() -> () {\n    return\n  }\n}\n");
}

TEST(Builder, sorts_parameters_and_drops_the_unused) {
  Builder b;
  Value c = b.parameter(7, {f32, {2}});
  Value unused = b.parameter(3, {f32, {2}});
  Value a = b.parameter(1, {f32, {2}});
  Value only_in_dead_code = b.parameter(0, {f32, {2}});
  exp(only_in_dead_code + unused);
  const Module m = b.finish({a - c});
  EXPECT_EQ(m.inputs, (std::vector<int>{1, 7}));
  EXPECT_NE(m.text.find("@main(%arg1: tensor<2xf32>, %arg7: tensor<2xf32>)"), std::string::npos)
      << m.text;
  EXPECT_EQ(m.text.find("exponential"), std::string::npos) << m.text;
}

TEST(Builder, keeps_what_a_region_alone_uses) {
  Builder b;
  Value p = b.parameter(0, {DType::pred, {}});
  Value x = b.parameter(1, {f32, {2}});
  Value doubled = x + x;
  Values y = if_(
      p, [&] { return Values{exp(doubled)}; },
      [&] {
        exp(x);
        return Values{x};
      });
  const Module m = b.finish(y);
  EXPECT_EQ(m.inputs, (std::vector<int>{0, 1}));
  EXPECT_NE(m.text.find("stablehlo.add"), std::string::npos) << m.text;
  const size_t first = m.text.find("exponential");
  EXPECT_EQ(m.text.find("exponential", first + 1), std::string::npos)
      << "dead code in a region: " << m.text;
}

TEST(Builder, drops_a_dead_operation_with_what_its_region_captured) {
  Builder b;
  Value p = b.parameter(0, {DType::pred, {}});
  Value x = b.parameter(1, {f32, {2}});
  if_(p, [&] { return Values{exp(x)}; }, [&] { return Values{x}; });
  EXPECT_EQ(b.finish({p}).inputs, (std::vector<int>{0}));
}

TEST(Builder, keeps_calls_with_side_effects) {
  Builder b;
  Value x = b.parameter(0, {f32, {2}});
  custom_call(b, "tell", {x}, {{f32, {2}}}, "a \"b\"", 2, true);
  custom_call(b, "dead", {x}, {{f32, {2}}}, "", 2, false);
  const std::string text = b.finish({}).text;
  EXPECT_NE(
      text.find(
          R"(backend_config = "a \22b\22", call_target_name = "tell", has_side_effect = true)"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("dead"), std::string::npos) << text;
}

TEST(Builder, prints_a_constant_once_a_block) {
  Builder b;
  Value x = b.parameter(0, {f32, {}});
  const std::string text = b.finish({(x + 2.0) * 2.0 + constant(b, f32, 2)}).text;
  EXPECT_EQ(text.find("constant", text.find("constant") + 1), std::string::npos) << text;
}

TEST(Builder, is_deterministic) {
  const auto build = [] {
    Builder b;
    Value x = b.parameter(0, {f32, {8, 4}});
    Value y = exp(x) / sum(exp(x), {1}, keep_dims);
    return b
        .finish(reduce(
            {y, y}, {constant(b, f32, 0), constant(b, f32, 1)}, {0},
            [](const Values& l, const Values& r) { return Values{l[0] + r[0], l[1] * r[1]}; }))
        .text;
  };
  EXPECT_EQ(build(), build());
}

TEST(Builder, aliases_a_live_parameter) {
  Builder b;
  Value x = b.parameter(0, {f32, {2}});
  Value y = b.parameter(1, {f32, {2}});
  b.parameter(2, {f32, {2}});
  b.alias(1, 1);
  b.alias(0, 2);  // dropped: unused, so nothing to take over
  b.check(is_nan(sum(x, {0})), "NaN");
  const Module m = b.finish({x, x + y});
  EXPECT_EQ(m.aliases, (std::vector<int>{-1, 1, -1}));
  EXPECT_NE(m.text.find("%arg1: tensor<2xf32> {tf.aliasing_output = 1 : i32})"), std::string::npos)
      << m.text;
  EXPECT_EQ(m.text.find("aliasing_output = 0"), std::string::npos) << m.text;
}

TEST(Builder, returns_checks_last_in_their_order) {
  Builder b;
  Value x = b.parameter(0, {f32, {}});
  b.check(x < 0.0, "negative");
  b.check(x > 1.0, "above one");
  const Module m = b.finish({x});
  EXPECT_EQ(m.checks, (std::vector<std::string>{"negative", "above one"}));
  ASSERT_EQ(m.outputs.size(), 3u);
  EXPECT_EQ(m.outputs[1], (Type{DType::pred, {}}));
  EXPECT_LT(m.text.find("direction LT"), m.text.find("direction GT"));
}

TEST(Builder, takes_numbers_for_a_checks_message) {
  Builder b;
  Value x = b.parameter(0, {DType::s64, {2}});
  b.check(x, "{1} has {0}");
  const Module m = b.finish({});
  EXPECT_EQ(m.outputs, (std::vector<Type>{{DType::s64, {2}}}));
  EXPECT_EQ(m.checks, (std::vector<std::string>{"{1} has {0}"}));
}

TEST(Builder, refuses_what_it_cannot_build) {
  Builder b, other;
  Value x = b.parameter(0, {f32, {2, 3}});
  Value n = b.parameter(1, {s32, {3}});
  Value inside;
  if_(
      constant(b, DType::pred, true),
      [&] {
        inside = exp(x);
        return Values{inside};
      },
      [&] { return Values{x}; });

  EXPECT_EQ(error_of([&] { b.parameter(0, {f32, {}}); }), "parameter 0 was declared twice");
  EXPECT_EQ(error_of([&] { b.parameter(5, {f32, {-1}}); }), "type f32[-1]: negative size");
  EXPECT_EQ(error_of([&] { add(x, n); }), "add of f32[2,3], s32[3]: dtypes differ");
  EXPECT_EQ(error_of([&] { add(x, Value()); }), "add of f32[2,3], null: an operand is null");
  EXPECT_EQ(error_of([&] { Value().type(); }), "None was used as a tensor");
  EXPECT_EQ(error_of([&] { x.dim(2); }), "dimension 2 is out of range for f32[2,3]");
  EXPECT_EQ(error_of([&] { add(x, other.parameter(0, {f32, {2, 3}})); }),
            "add: an operand belongs to another builder");
  EXPECT_EQ(error_of([&] { exp(inside); }),
            "exponential: an operand was made inside a region that has ended");
  EXPECT_EQ(error_of([&] { b.check(is_nan(x), "x"); }),
            "check of pred[2,3]: a rank-0 pred is needed, or s64 of rank 0 or 1");
  EXPECT_EQ(error_of([&] {
              reduce({x}, {constant(b, f32, 0)}, {0}, [&](const Values& l, const Values& r) {
                return Values{l[0] + r[0] * slice_in_dim(flatten(x), 0, 0, 1)};
              });
            }),
            "reduce of f32[1]: the results should be f32[]");
  Value scale = b.parameter(2, {f32, {}});
  EXPECT_EQ(error_of([&] {
              reduce({x}, {constant(b, f32, 0)}, {0},
                     [&](const Values& l, const Values& r) { return Values{l[0] + r[0] * scale}; });
            }),
            "reduce: its function uses a value f32[] from outside that is not a constant");
  // After an error inside a region the builder still works.
  EXPECT_NO_THROW(exp(x));
  b.alias(0, 1);
  EXPECT_EQ(error_of([&] { b.finish({x}); }),
            "alias of output 0 and parameter 1: f32[2,3] and s32[3] differ");
}

TEST(Builder, refuses_an_alias_that_does_not_exist) {
  const auto finish_with_alias = [](int output, int parameter) {
    return error_of([&] {
      Builder b;
      Value x = b.parameter(0, {f32, {}});
      b.alias(output, parameter);
      b.finish({x, x});
    });
  };
  EXPECT_EQ(finish_with_alias(2, 0), "alias of output 2 and parameter 0: no such output");
  EXPECT_EQ(finish_with_alias(0, 4), "alias of output 0 and parameter 4: no such parameter");
  EXPECT_EQ(finish_with_alias(1, 0), "");
  Builder b;
  Value x = b.parameter(0, {f32, {}});
  b.alias(0, 0);
  b.alias(1, 0);
  EXPECT_EQ(error_of([&] { b.finish({x, x}); }),
            "alias of output 1 and parameter 0: the parameter is given to two outputs");
}

class BuilderRun : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(BuilderRun);

TEST_P(BuilderRun, runs_with_dropped_parameters_aliases_and_checks) {
  Program p;
  Value dropped = p.input<float>({2}, {0, 0});
  Value x = p.input<float>({2}, {1, -2});
  Value y = p.input<float>({2}, {10, 20});
  exp(dropped);
  p.b.alias(0, 2);
  p.b.check(any(x < 0.0, {0}), "negative");
  const Arrays out = p.run(client(), {x + y, x});
  EXPECT_EQ(out[0].values<float>(), (Floats{11, 18}));
  EXPECT_EQ(out[1].values<float>(), (Floats{1, -2}));
  EXPECT_EQ(out[2].values<bool>(), (Bools{true}));
}

TEST_P(BuilderRun, runs_a_program_that_returns_its_parameter_twice) {
  Program p;
  Value x = p.input<float>({2}, {1, 2});
  p.b.alias(1, 0);
  const Arrays out = p.run(client(), {x, x});
  EXPECT_EQ(out[0].values<float>(), (Floats{1, 2}));
  EXPECT_EQ(out[1].values<float>(), (Floats{1, 2}));
}

}  // namespace
}  // namespace torch_tpu::hlo
