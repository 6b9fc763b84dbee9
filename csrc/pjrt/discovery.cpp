// SPDX-License-Identifier: Apache-2.0
#include "pjrt/discovery.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

namespace torch_tpu::pjrt {
namespace {

namespace fs = std::filesystem;

// Google's PCI vendor id, which its network cards and disks have too: so the device id decides.
constexpr const char* kGoogle = "0x1ae0";
const std::map<std::string, std::string>& generations() {
  static const std::map<std::string, std::string> by_device_id = {
      {"0x0027", "v3"},  {"0x005e", "v4"},  {"0x0062", "v5p"}, {"0x0063", "v5e"},
      {"0x006f", "v6e"}, {"0x0076", "v7x"}, {"0x007c", ""},    {"0x0083", ""},
  };
  return by_device_id;
}

std::string first_word(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code missing;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, missing)) paths.push_back(entry.path());
  return paths;
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// Device nodes of TPU drivers: /dev/accel0 (up to v4) and /dev/vfio/0 (since v5e). Linux's own
// accelerator class puts its nodes into a folder /dev/accel and is another matter. VFIO nodes may
// belong to any device.
int count_nodes(const fs::path& folder, const std::string& prefix) {
  int count = 0;
  for (const fs::path& path : entries(folder)) {
    const std::string name = path.filename();
    if (name.starts_with(prefix) && is_number(name.substr(prefix.size()))) ++count;
  }
  return count;
}

// A chip too new for the list: a Google device of no class known to PCI, or of that of
// accelerators, with a driver.
bool may_be_new_tpu(const fs::path& pci_device, const fs::path& root) {
  const std::string pci_class = first_word(pci_device / "class");
  if (!pci_class.starts_with("0xff00") && !pci_class.starts_with("0x12")) return false;
  return count_nodes(root / "dev", "accel") > 0 || count_nodes(root / "dev/vfio", "") > 0;
}

std::string platform_by_name(const std::string& path) {
  const std::string name = fs::path(path).filename();
  if (name.find("tpu") != std::string::npos) return "tpu";
  return name.find("cpu") != std::string::npos ? "cpu" : "";
}

}  // namespace

TpuHardware find_tpu(const fs::path& root) {
  TpuHardware tpu;
  for (const fs::path& device : entries(root / "sys/bus/pci/devices")) {
    if (first_word(device / "vendor") != kGoogle) continue;
    const auto known = generations().find(first_word(device / "device"));
    if (known == generations().end() && !may_be_new_tpu(device, root)) continue;
    ++tpu.num_chips;
    if (known != generations().end()) tpu.generation = known->second;
  }
  // A container may hide the bus and still have been given the chips.
  if (tpu.num_chips == 0) tpu.num_chips = count_nodes(root / "dev", "accel");
  return tpu;
}

Choice find_plugin(const std::string& platform, const Installed& installed,
                   const TpuHardware& tpu) {
  const bool automatic = platform.empty() || platform == "auto";
  if (platform == "tpu" || (automatic && tpu.num_chips > 0)) {
    if (installed.libtpu.empty()) {
      throw Error(Code::not_found,
                  automatic
                      ? "this machine has a TPU but libtpu is not installed: pip install libtpu, "
                        "or set TORCH_TPU_PLATFORM=cpu to run on the CPU"
                      : "TORCH_TPU_PLATFORM=tpu, but libtpu is not installed: pip install libtpu");
    }
    return {installed.libtpu, "tpu"};
  }
  if (platform == "cpu" || automatic) {
    if (installed.cpu.empty()) {
      throw Error(Code::not_found, "no XLA:CPU plugin is installed: pip install xla-cpu-pjrt");
    }
    return {installed.cpu.front(), "cpu", automatic};
  }
  if (platform.find('/') == std::string::npos && !platform.ends_with(".so")) {
    throw Error(Code::invalid_argument,
                "TORCH_TPU_PLATFORM=" + platform +
                    ": expected auto, tpu, cpu or the path of a PJRT plugin");
  }
  if (!fs::exists(platform)) {
    throw Error(Code::not_found, "TORCH_TPU_PLATFORM=" + platform + ": no such file");
  }
  return {platform, platform_by_name(platform)};
}

Options client_options(const std::string& platform, int64_t num_devices,
                       const std::string& torch_version) {
  // Launched in the caller: measured no slower for one operator after another (SmolLM2's decoding
  // 12 % quicker on two cores), and a failing program is named at its own line.
  if (platform == "cpu") return {{"cpu_device_count", num_devices}, {"asynchronous", false}};
  if (platform == "tpu") {
    return {
        {"ml_framework_name", std::string("PyTorch")},
        {"ml_framework_version", torch_version},
        {"max_inflight_computations",
         int64_t{32}},  // torch_xla's; bounds the memory of launches made ahead
    };
  }
  return {};
}

Environment environment_defaults(const std::string& platform, const TpuHardware& tpu) {
  Environment environment = {
      {"TF_CPP_MIN_LOG_LEVEL", "1"}};  // no "I0000 ..." line on stderr at each start
  if (platform != "tpu") return environment;
  environment["GRPC_VERBOSITY"] = "ERROR";
  environment["TPU_ML_PLATFORM"] = "PyTorch";
  if (tpu.num_chips == 0) {
    environment["TPU_SKIP_MDS_QUERY"] = "1";
    environment["TPU_WORKER_HOSTNAMES"] = "localhost";
    // Any type keeps libtpu from warning that it found none; programs are compiled for the topology
    // that they name.
    environment["TPU_ACCELERATOR_TYPE"] = "v6e-1";
    environment["ALLOW_MULTIPLE_LIBTPU_LOAD"] =
        "true";  // no lock file: there is no chip to fight for
  }
  return environment;
}

Environment rank_environment(int local_rank, int local_world_size) {
  static const std::map<int, std::string> bounds = {{1, "1,1,1"}, {4, "2,2,1"}, {8, "2,4,1"}};
  const auto shape = bounds.find(local_world_size);
  if (shape == bounds.end()) {
    throw Error(Code::unimplemented,
                std::to_string(local_world_size) +
                    " processes on a TPU host: known are 1, 4 and 8, one chip each");
  }
  constexpr int kFirstPort = 8476;  // libtpu's own default
  std::string addresses;
  for (int rank = 0; rank < local_world_size; ++rank) {
    addresses +=
        (rank == 0 ? "" : ",") + std::string("localhost:") + std::to_string(kFirstPort + rank);
  }
  return {
      {"ALLOW_MULTIPLE_LIBTPU_LOAD", "true"},
      {"CLOUD_TPU_TASK_ID", std::to_string(local_rank)},
      {"TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"},
      {"TPU_PROCESS_ADDRESSES", addresses},
      {"TPU_PROCESS_BOUNDS", shape->second},
      {"TPU_PROCESS_PORT", std::to_string(kFirstPort + local_rank)},
      {"TPU_VISIBLE_CHIPS", std::to_string(local_rank)},
  };
}

void set_defaults(const Environment& defaults) {
  for (const auto& [name, value] : defaults) setenv(name.c_str(), value.c_str(), /*overwrite=*/0);
}

}  // namespace torch_tpu::pjrt
