// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "pjrt/discovery.h"
#include "testing/plugins.h"
#include "view/bytes.h"

namespace torch_tpu::view {
namespace {

// The programs of every class of view, compiled ahead of time for one chip of each generation.
class TpuCompile : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (test::libtpu().path.empty()) GTEST_SKIP() << "not installed: pip install libtpu";
    pjrt::set_defaults(pjrt::environment_defaults("tpu", {}));
  }
};
INSTANTIATE_TEST_SUITE_P(, TpuCompile, ::testing::Values("v5e:1x1", "v6e:1x1", "tpu7x:1x1x1"),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find(':'));
                         });

TEST_P(TpuCompile, takes_reads_and_writes_of_every_class) {
  const Type base{DType::f32, {16, 40}};
  const auto f32 = [](Dims sizes, Dims strides, int64_t offset) {
    return View{DType::f32, std::move(sizes), std::move(strides), offset};
  };
  const model::Case cases[] = {
      {base, f32({40, 16}, {1, 40}, 0)},             // permuted
      {base, f32({8, 40}, {40, 1}, 80)},             // slice
      {base, f32({16, 20}, {40, 2}, 1)},             // steps
      {base, f32({3, 40}, {0, 1}, 40)},              // expand
      {base, f32({10}, {1}, 35)},                    // flat
      {base, f32({15, 10}, {40, 1}, 35)},            // window
      {base, f32({13, 10}, {40, 3}, 35)},            // window with steps
      {base, f32({16}, {41}, 0)},                    // diagonal
      {{DType::f32, {90, 90}}, f32({90}, {91}, 0)},  // diagonal, scattered
      {base, f32({20, 4}, {2, 1}, 3)},               // windows in pieces
      {base, f32({50, 50}, {1, 1}, 3)},              // windows by gather
      {base, {DType::bf16, {16, 40}, {80, 2}, 1}},   // other dtypes
      {base, {DType::u8, {16, 40}, {160, 4}, 3}},
      {base, {DType::s32, {16, 40}, {40, 1}, 0}},
      {base, {DType::c64, {8, 20}, {40, 1}, 0}},
      {{DType::c64, {16, 40}}, f32({16, 40}, {80, 2}, 1)},
      {{DType::u8, {161}}, f32({4, 10}, {10, 1}, 0)},
      {{DType::u8, {160}}, {DType::pred, {20}, {2}, 1}},
      {{DType::pred, {160}}, {DType::u8, {20}, {2}, 1}},
  };
  const pjrt::Topology chip(pjrt::Plugin::load(test::libtpu().path), GetParam());
  for (const model::Case& c : cases) {
    SCOPED_TRACE(str(c));
    EXPECT_NO_THROW(chip.compile(model::read_program(c.base, c.view).text, {}));
    EXPECT_NO_THROW(chip.compile(model::write_program(c.base, c.view).text, {}));
  }
}

}  // namespace
}  // namespace torch_tpu::view
