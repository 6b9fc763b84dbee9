// SPDX-License-Identifier: Apache-2.0
#include "pjrt/discovery.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace torch_tpu::pjrt {
namespace {

namespace fs = std::filesystem;

// A machine made of files.
class FakeMachine : public ::testing::Test {
 protected:
  FakeMachine() {
    std::string name = fs::temp_directory_path() / "torch_tpu_machine_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~FakeMachine() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void pci(const std::string& slot, const std::string& vendor, const std::string& device,
           const std::string& pci_class) const {
    const std::string folder = "sys/bus/pci/devices/" + slot + "/";
    write(folder + "vendor", vendor + "\n");
    write(folder + "device", device + "\n");
    write(folder + "class", pci_class + "\n");
  }
  fs::path root_;
};

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(FakeMachine, without_a_pci_bus_has_no_tpu) { EXPECT_EQ(find_tpu(root_).num_chips, 0); }

TEST_F(FakeMachine, with_google_network_card_and_disk_has_no_tpu) {
  pci("0000:00:04.0", "0x1ae0", "0x0042", "0x020000");
  pci("0000:00:05.0", "0x1ae0", "0x001f", "0x010802");
  write("dev/vfio/0", "");
  EXPECT_EQ(find_tpu(root_).num_chips, 0);
}

TEST_F(FakeMachine, with_four_v6e_chips_says_so) {
  for (int i = 0; i < 4; ++i)
    pci("0000:00:0" + std::to_string(i) + ".0", "0x1ae0", "0x006f", "0xff0000");
  pci("0000:00:09.0", "0x10de", "0x2335", "0x030200");
  EXPECT_EQ(find_tpu(root_).num_chips, 4);
  EXPECT_EQ(find_tpu(root_).generation, "v6e");
}

TEST_F(FakeMachine, with_an_unknown_google_accelerator_has_a_tpu_if_there_is_a_driver) {
  pci("0000:00:04.0", "0x1ae0", "0x0099", "0xff0000");
  EXPECT_EQ(find_tpu(root_).num_chips, 0);
  write("dev/vfio/vfio", "");  // the VFIO container node, present without any device
  EXPECT_EQ(find_tpu(root_).num_chips, 0);
  write("dev/vfio/0", "");
  EXPECT_EQ(find_tpu(root_).num_chips, 1);
  EXPECT_EQ(find_tpu(root_).generation, "");
}

TEST_F(FakeMachine, with_driver_nodes_and_no_bus_counts_the_nodes) {
  write("dev/accel0", "");
  write("dev/accel1", "");
  EXPECT_EQ(find_tpu(root_).num_chips, 2);
}

TEST_F(FakeMachine, with_another_vendors_accelerator_has_no_tpu) {
  pci("0000:00:04.0", "0x8086", "0x7d1d", "0x120000");
  write("dev/accel/accel0", "");
  EXPECT_EQ(find_tpu(root_).num_chips, 0);
}

const Installed kBoth = {"/x/libtpu.so", {"/x/first_cpu.so", "/x/second_cpu.so"}};
const TpuHardware kNoTpu = {}, kTpu = {4, "v6e"};

TEST(FindPlugin, auto_takes_the_tpu_where_there_is_one) {
  EXPECT_EQ(find_plugin("auto", kBoth, kTpu).path, "/x/libtpu.so");
  EXPECT_EQ(find_plugin("", kBoth, kTpu).platform, "tpu");
  EXPECT_FALSE(find_plugin("", kBoth, kTpu).guessed);
}

TEST(FindPlugin, auto_takes_the_first_cpu_plugin_elsewhere_and_says_that_it_guessed) {
  const Choice choice = find_plugin("auto", kBoth, kNoTpu);
  EXPECT_EQ(choice.path, "/x/first_cpu.so");
  EXPECT_EQ(choice.platform, "cpu");
  EXPECT_TRUE(choice.guessed);
}

TEST(FindPlugin, obeys_the_platform_asked_for) {
  EXPECT_EQ(find_plugin("cpu", kBoth, kTpu).path, "/x/first_cpu.so");
  EXPECT_FALSE(find_plugin("cpu", kBoth, kTpu).guessed);
  EXPECT_EQ(find_plugin("tpu", kBoth, kNoTpu).path, "/x/libtpu.so");
}

TEST(FindPlugin, takes_any_path_and_guesses_its_platform_by_name) {
  const fs::path folder =
      fs::temp_directory_path() / ("torch_tpu_plugins_" + std::to_string(getpid()));
  fs::create_directories(folder);
  for (const auto& [name, platform] : std::map<std::string, std::string>{
           {"libtpu.so", "tpu"}, {"my_cpu_plugin.so", "cpu"}, {"plugin.so", ""}}) {
    std::ofstream(folder / name) << "x";
    EXPECT_EQ(find_plugin((folder / name).string(), {}, kNoTpu).platform, platform);
    EXPECT_EQ(find_plugin((folder / name).string(), {}, kNoTpu).path, folder / name);
  }
  fs::remove_all(folder);
}

TEST(FindPlugin, says_what_to_install) {
  EXPECT_EQ(error_of([] { find_plugin("auto", {}, kTpu); }),
            "this machine has a TPU but libtpu is not installed: pip install libtpu, or set "
            "TORCH_TPU_PLATFORM=cpu to run "
            "on the CPU");
  EXPECT_EQ(error_of([] { find_plugin("tpu", {}, kNoTpu); }),
            "TORCH_TPU_PLATFORM=tpu, but libtpu is not installed: pip install libtpu");
  EXPECT_EQ(error_of([] { find_plugin("cpu", {}, kTpu); }),
            "no XLA:CPU plugin is installed: pip install xla-cpu-pjrt");
  EXPECT_EQ(error_of([] { find_plugin("cuda", kBoth, kNoTpu); }),
            "TORCH_TPU_PLATFORM=cuda: expected auto, tpu, cpu or the path of a PJRT plugin");
  EXPECT_EQ(error_of([] { find_plugin("/nowhere/p.so", kBoth, kNoTpu); }),
            "TORCH_TPU_PLATFORM=/nowhere/p.so: no such file");
}

TEST(ClientOptions, always_count_the_cpu_devices) {
  EXPECT_EQ(client_options("cpu", 1, "2.13"),
            (Options{{"cpu_device_count", int64_t{1}}, {"asynchronous", false}}));
  EXPECT_EQ(std::get<std::string>(client_options("tpu", 1, "2.13").at("ml_framework_version")),
            "2.13");
  EXPECT_TRUE(client_options("", 1, "2.13").empty());
}

TEST(EnvironmentDefaults, keep_libtpu_from_the_metadata_server_only_without_a_tpu) {
  EXPECT_EQ(environment_defaults("tpu", kNoTpu).at("TPU_SKIP_MDS_QUERY"), "1");
  EXPECT_EQ(environment_defaults("tpu", kNoTpu).at("TPU_WORKER_HOSTNAMES"), "localhost");
  EXPECT_EQ(environment_defaults("tpu", kTpu).count("TPU_SKIP_MDS_QUERY"), 0u);
  EXPECT_EQ(environment_defaults("cpu", kNoTpu).count("TPU_SKIP_MDS_QUERY"), 0u);
}

TEST(EnvironmentDefaults, yield_to_what_the_user_set) {
  setenv("TORCH_TPU_TEST_SET", "mine", 1);
  unsetenv("TORCH_TPU_TEST_UNSET");
  set_defaults({{"TORCH_TPU_TEST_SET", "default"}, {"TORCH_TPU_TEST_UNSET", "default"}});
  EXPECT_STREQ(getenv("TORCH_TPU_TEST_SET"), "mine");
  EXPECT_STREQ(getenv("TORCH_TPU_TEST_UNSET"), "default");
}

TEST(RankEnvironment, gives_each_process_its_chip_and_all_the_same_slice) {
  const Environment second = rank_environment(1, 4);
  EXPECT_EQ(second.at("TPU_VISIBLE_CHIPS"), "1");
  EXPECT_EQ(second.at("CLOUD_TPU_TASK_ID"), "1");
  EXPECT_EQ(second.at("TPU_PROCESS_PORT"), "8477");
  EXPECT_EQ(second.at("TPU_PROCESS_BOUNDS"), "2,2,1");
  EXPECT_EQ(second.at("TPU_PROCESS_ADDRESSES"),
            "localhost:8476,localhost:8477,localhost:8478,localhost:8479");
  EXPECT_EQ(rank_environment(3, 4).at("TPU_PROCESS_ADDRESSES"), second.at("TPU_PROCESS_ADDRESSES"));
  EXPECT_THROW(rank_environment(0, 3), Error);
}

}  // namespace
}  // namespace torch_tpu::pjrt
