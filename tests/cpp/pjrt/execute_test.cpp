// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "testing/on_each_plugin.h"
#include "testing/run.h"

namespace torch_tpu::pjrt {
namespace {

class Execute : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Execute);

TEST_P(Execute, adds_two_arrays) {
  const std::string add = R"(
    "builtin.module"() ({
      "func.func"() <{function_type = (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>, sym_name = "main"}> ({
      ^bb0(%0: tensor<3xf32>, %1: tensor<3xf32>):
        %2 = "stablehlo.add"(%0, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
        "func.return"(%2) : (tensor<3xf32>) -> ()
      }) : () -> ()
    }) : () -> ())";
  const auto out = test::run(client(), add, {test::array<float>({3}, {1, 2, 3}), test::array<float>({3}, {10, 20, 30})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].type.str(), "f32[3]");
  EXPECT_EQ(out[0].values<float>(), (std::vector<float>{11, 22, 33}));
}

}  // namespace
}  // namespace torch_tpu::pjrt
