// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "pjrt/client.h"

// Which plugin to load, and what it wants to be told. Plugins inside Python packages are found by
// Python and passed in; what is asked here is what machine this is. Nothing here loads anything;
// all but `set_defaults` are pure functions of their arguments and of the files under `root`.
namespace torch_tpu::pjrt {

// The TPU chips of this machine, from its PCI bus.
struct TpuHardware {
  int num_chips = 0;
  std::string generation;  // "v6e"; empty if there is none or it is newer than our list
};
TpuHardware find_tpu(const std::filesystem::path& root = "/");

// Plugins that are installed; empty: not installed.
struct Installed {
  std::string libtpu;
  std::vector<std::string> cpu;  // XLA:CPU plugins, preferred first
};

struct Choice {
  std::string path;
  std::string platform;  // "cpu" or "tpu"; of a plugin given by path what its name says, or empty
  bool guessed = false;  // `auto` took the CPU because there is no TPU: to be said once
};

// `platform` is the value of TORCH_TPU_PLATFORM: "auto" (or empty), "tpu", "cpu" or the path of a
// plugin. Throws Error(not_found), with what to install, if there is nothing to load;
// Error(invalid_argument) for any other word.
Choice find_plugin(const std::string& platform, const Installed& installed, const TpuHardware& tpu);

// What the platform's client is created with.
//   num_devices    virtual devices on the CPU (the plugins' own default is four); else ignored
//   torch_version  told to libtpu, for its logs and metrics
Options client_options(const std::string& platform, int64_t num_devices,
                       const std::string& torch_version);

// Environment variables that a plugin reads while it is loaded, with the values to use where the
// user set none. A libtpu that finds no TPU would ask the cloud's metadata server and hang for
// minutes; it still compiles.
using Environment = std::map<std::string, std::string>;
Environment environment_defaults(const std::string& platform, const TpuHardware& tpu);

// The same for process `local_rank` of `local_world_size` on one TPU host, one chip each. They form
// one slice, whose shape libtpu must be told: hosts of 1, 4 and 8 chips are known, other counts
// throw Error(unimplemented).
Environment rank_environment(int local_rank, int local_world_size);

// Sets those that are not set. Before Plugin::load and before other threads read the environment.
void set_defaults(const Environment& defaults);

}  // namespace torch_tpu::pjrt
