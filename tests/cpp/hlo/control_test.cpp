// SPDX-License-Identifier: Apache-2.0
#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

class Control : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Control);

TEST_P(Control, loops_with_values_from_around) {
  Program p;
  Value n = p.input<int32_t>({}, {5}), step = p.input<float>({2}, {1, 10});
  const Values out = while_(
      {constant(p.b, DType::s32, 0), zeros_like(step)}, [&](const Values& v) { return v[0] < n; },
      [&](const Values& v) { return Values{v[0] + 1.0, v[1] + step}; });
  const Arrays got = p.run(client(), out);
  EXPECT_EQ(got[0].values<int32_t>(), (Ints{5}));
  EXPECT_EQ(got[1].values<float>(), (Floats{5, 50}));
}

TEST_P(Control, branches_and_nests) {
  for (const bool which : {true, false}) {
    Program p;
    Value choice = p.input<bool>({}, {which});
    Value x = p.input<float>({2, 3}, {3, 1, 2, 6, 5, 4});
    Value doubled = x + x;
    const auto less = [](const Values& l, const Values& r) { return l[0] < r[0]; };
    const Values out = if_(
        choice,
        [&] {
          return while_(
              {constant(p.b, DType::s32, 0), doubled}, [](const Values& v) { return v[0] < 2; },
              [&](const Values& v) {
                return Values{v[0] + 1.0, sort({v[1]}, 1, true, less)[0] + sum(x, {1}, keep_dims)};
              });
        },
        [&] { return Values{constant(p.b, DType::s32, 7), x}; });
    const Arrays got = p.run(client(), out);
    EXPECT_EQ(got[0].values<int32_t>(), (Ints{which ? 2 : 7}));
    EXPECT_EQ(got[1].values<float>(),
              which ? (Floats{14, 16, 18, 38, 40, 42}) : (Floats{3, 1, 2, 6, 5, 4}));
  }
}

TEST_P(Control, passes_values_through_a_barrier) {
  Program p;
  Value x = p.input<float>({2}, {1, 2}), n = p.input<int32_t>({}, {3});
  const Values out = optimization_barrier({x, n});
  const Arrays got = p.run(client(), out);
  EXPECT_EQ(got[0].values<float>(), (Floats{1, 2}));
  EXPECT_EQ(got[1].values<int32_t>(), (Ints{3}));
}

TEST(ControlText, prints_custom_calls) {
  Builder b;
  Value x = b.parameter(0, {DType::f32, {2}});
  const Values out = custom_call(b, "scale", {x}, {{DType::f32, {2}}, {DType::s32, {}}},
                                 "{factor = 2.0 : f32}", 4);
  EXPECT_NE(
      b.finish(out).text.find(
          R"(%1:2 = "stablehlo.custom_call"(%arg0) <{api_version = 4 : i32, backend_config = {factor = 2.0 : f32}, call_target_name = "scale", has_side_effect = false}> : (tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>))"),
      std::string::npos);
}

TEST(ControlErrors, name_operation_and_types) {
  Builder b;
  Value x = b.parameter(0, {DType::f32, {}}), p = b.parameter(1, {DType::pred, {}});
  const auto same = [](const Values& v) { return v; };
  EXPECT_EQ(error_of([&] { while_({x}, [](const Values& v) { return v[0]; }, same); }),
            "while condition of f32[]: the results should be pred[]");
  EXPECT_EQ(error_of([&] {
              while_(
                  {x}, [](const Values& v) { return v[0] < 1; },
                  [&](const Values&) { return Values{p}; });
            }),
            "while body of pred[]: the results should be f32[]");
  EXPECT_EQ(error_of([&] { while_({}, [&](const Values&) { return p; }, same); }),
            "while: no values to carry");
  EXPECT_EQ(error_of([&] { if_(x, [&] { return Values{x}; }, [&] { return Values{x}; }); }),
            "if of f32[]: a rank-0 pred is needed");
  EXPECT_EQ(error_of([&] { if_(p, [&] { return Values{x}; }, [&] { return Values{p}; }); }),
            "if of pred[]: the results should be f32[]");
}

}  // namespace
}  // namespace torch_tpu::hlo
