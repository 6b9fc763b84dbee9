// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "testing/plugins.h"

namespace torch_tpu::test {

// A test that runs once on each CPU plugin:
//   class Execute : public test::OnEachPlugin {};
//   TT_ON_EACH_CPU_PLUGIN(Execute);
//   TEST_P(Execute, adds_two_arrays) { client().compile(...) }
// Skipped where the plugin is not installed.
class OnEachPlugin : public ::testing::TestWithParam<PluginUnderTest> {
 protected:
  void SetUp() override {
    if (GetParam().path.empty())
      GTEST_SKIP() << "not installed: pip install " << GetParam().package;
  }
  const pjrt::Client& client() const { return test::client(GetParam()); }
  const pjrt::Plugin& plugin() const { return client().plugin(); }
};

inline std::string plugin_name(const ::testing::TestParamInfo<PluginUnderTest>& info) {
  return info.param.name;
}

#define TT_ON_EACH_CPU_PLUGIN(suite)                                                       \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(::torch_tpu::test::cpu_plugins()), \
                           ::torch_tpu::test::plugin_name)

}  // namespace torch_tpu::test
