// SPDX-License-Identifier: Apache-2.0
#include "testing/plugins.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>

#include "pjrt/discovery.h"

namespace torch_tpu::test {

const std::vector<PluginUnderTest>& cpu_plugins() {
  static const std::vector<PluginUnderTest> plugins = {
      {"xla_cpu", "xla-cpu-pjrt", TT_XLA_CPU},
      {"lammps", "lammps-jax-pjrt-cpu", TT_LAMMPS},
  };
  return plugins;
}

const PluginUnderTest& libtpu() {
  static const PluginUnderTest plugin = {"libtpu", "libtpu", TT_LIBTPU};
  return plugin;
}

const pjrt::Client& client(const PluginUnderTest& plugin) {
  static std::mutex mutex;
  static auto& clients = *new std::map<std::string, std::unique_ptr<pjrt::Client>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<pjrt::Client>& entry = clients[plugin.path];
  if (!entry) {
    pjrt::set_defaults(pjrt::environment_defaults("cpu", {}));
    entry =
        pjrt::Client::create(pjrt::Plugin::load(plugin.path), pjrt::client_options("cpu", 4, ""));
  }
  return *entry;
}

const pjrt::Client& default_client() {
  const char* wanted = std::getenv("TT_TEST_PLUGIN");
  for (const PluginUnderTest& plugin : cpu_plugins()) {
    if (!plugin.path.empty() && (wanted == nullptr || plugin.name == wanted)) return client(plugin);
  }
  throw std::runtime_error(
      "no CPU plugin to run tests on: pip install xla-cpu-pjrt, then configure anew");
}

}  // namespace torch_tpu::test
