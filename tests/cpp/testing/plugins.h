// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "pjrt/client.h"

// The PJRT plugins that tests run against, as CMake found them.
namespace torch_tpu::test {

struct PluginUnderTest {
  std::string name;     // "xla_cpu", "lammps", "libtpu": part of test names
  std::string package;  // what to pip install if it is missing
  std::string path;     // empty: not installed
};

inline void PrintTo(const PluginUnderTest& plugin, std::ostream* out) {
  *out << plugin.name;
}  // for GoogleTest

const std::vector<PluginUnderTest>& cpu_plugins();
const PluginUnderTest& libtpu();

// This process's client of a CPU plugin with four virtual devices, made at first use and never
// destroyed.
const pjrt::Client& client(const PluginUnderTest& plugin);

// The client that `run` (testing/run.h) uses: the plugin that the environment variable
// TT_TEST_PLUGIN names, else the first one installed. Throws std::runtime_error if there is none.
const pjrt::Client& default_client();

}  // namespace torch_tpu::test
