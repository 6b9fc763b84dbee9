// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pjrt_c_api.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "pjrt/args.h"
#include "pjrt/discovery.h"
#include "pjrt/fingerprint.h"
#include "testing/on_each_plugin.h"

namespace torch_tpu::pjrt {
namespace {

namespace fs = std::filesystem;

// TT_NO_PLUGIN and TT_FUTURE_PLUGIN are libraries built from fake_plugins.cpp.
std::string load_error(const std::string& path, Code code) {
  try {
    Plugin::load(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

TEST(PluginLoad, of_a_missing_file_says_so_and_what_to_install) {
  EXPECT_EQ(load_error("/nowhere/plugin.so", Code::not_found),
            "PJRT plugin /nowhere/plugin.so does not exist. Install xla-cpu-pjrt (CPU) or libtpu "
            "(TPU), or set "
            "TORCH_TPU_PLATFORM to the path of a PJRT plugin.");
}

TEST(PluginLoad, of_a_file_that_is_no_library_gives_the_loaders_reason) {
  const fs::path file =
      fs::temp_directory_path() / ("torch_tpu_text_" + std::to_string(getpid()) + ".so");
  std::ofstream(file) << "text";
  const std::string error = load_error(file, Code::failed_precondition);
  EXPECT_TRUE(error.starts_with("PJRT plugin " + file.string() + " cannot be loaded: ")) << error;
  EXPECT_TRUE(error.ends_with("file too short")) << error;
  fs::remove(file);
}

TEST(PluginLoad, of_another_library_says_that_it_is_no_plugin) {
  EXPECT_EQ(load_error(TT_NO_PLUGIN, Code::invalid_argument),
            TT_NO_PLUGIN " is not a PJRT plugin: it has no function GetPjrtApi.");
}

TEST(PluginLoad, of_another_major_version_names_both_and_what_to_do) {
  const std::string error = load_error(TT_FUTURE_PLUGIN, Code::failed_precondition);
  EXPECT_EQ(error, "PJRT plugin " TT_FUTURE_PLUGIN
                   " speaks version 1.5 of the PJRT C API; torch_tpu was built for 0." +
                       std::to_string(PJRT_API_MINOR) +
                       " and takes 0.29 and later of the same major version. Install an older "
                       "plugin or a torch_tpu "
                       "built against a newer xla-cpu-pjrt.");
  EXPECT_EQ(load_error(TT_FUTURE_PLUGIN, Code::failed_precondition),
            error);  // and again: nothing half loaded stays
}

class LoadedPlugin : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(LoadedPlugin);

TEST_P(LoadedPlugin, is_one_per_file_whatever_the_path_and_thread) {
  const fs::path link =
      fs::temp_directory_path() / ("torch_tpu_link_" + std::to_string(getpid()) + GetParam().name);
  fs::create_symlink(GetParam().path, link);
  const Plugin* found[8];
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&, i] { found[i] = &Plugin::load(i % 2 == 0 ? GetParam().path : link.string()); });
  }
  for (std::thread& t : threads) t.join();
  for (const Plugin* plugin : found) EXPECT_EQ(plugin, &Plugin::load(GetParam().path));
  fs::remove(link);
}

TEST_P(LoadedPlugin, says_what_it_understands) {
  EXPECT_GE(plugin().api_minor(), 81);
  const std::string version = plugin().attributes().at("stablehlo_current_version");
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
  EXPECT_EQ(plugin().attributes().at("stablehlo_minimum_version"), "0.9.0");
}

TEST_P(LoadedPlugin, has_the_ffi_extension_and_not_one_that_nobody_defined) {
  ASSERT_NE(plugin().extension(PJRT_Extension_Type_FFI), nullptr);
  EXPECT_EQ(
      static_cast<const PJRT_Extension_Base*>(plugin().extension(PJRT_Extension_Type_FFI))->type,
      PJRT_Extension_Type_FFI);
  EXPECT_EQ(plugin().extension(12345), nullptr);
}

TEST_P(LoadedPlugin, provides_only_functions_inside_its_table) {
  EXPECT_TRUE(provides(plugin().api(), &PJRT_Api::PJRT_Client_Compile));
  PJRT_Api older = *plugin().api();
  older.struct_size = offsetof(PJRT_Api, PJRT_Buffer_CopyRawToHost);
  EXPECT_FALSE(provides(&older, &PJRT_Api::PJRT_Buffer_CopyRawToHost));
  EXPECT_TRUE(provides(&older, &PJRT_Api::PJRT_ExecuteContext_Destroy));  // the slot before
}

TEST_P(LoadedPlugin, has_a_client_with_the_devices_asked_for) {
  EXPECT_EQ(client().platform_name(), "cpu");
  EXPECT_FALSE(client().platform_version().empty());
  EXPECT_EQ(client().devices().size(), 4u);
  EXPECT_EQ(client().device_kind(client().devices()[0]), "cpu");
  EXPECT_FALSE(client().device_memory_stats(client().devices()[0]).has_value());
}

TEST_P(LoadedPlugin, gives_each_client_its_own_number_of_devices) {
  EXPECT_EQ(Client::create(plugin(), client_options("cpu", 2, ""))->devices().size(), 2u);
  EXPECT_EQ(Client::create(plugin(), client_options("cpu", 1, ""))->devices().size(), 1u);
}

TEST_P(LoadedPlugin, has_a_fingerprint_of_its_file_and_attributes) {
  EXPECT_EQ(plugin().fingerprint(), fingerprint(GetParam().path, plugin().attributes()));
  EXPECT_EQ(plugin().fingerprint().size(), 16u);
}

class FingerprintOfFile : public ::testing::Test {
 protected:
  FingerprintOfFile()
      : folder_(fs::temp_directory_path() / ("torch_tpu_files_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~FingerprintOfFile() override { fs::remove_all(folder_); }
  std::string of(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return fingerprint(folder_ / name, {{"xla_version", "2"}});
  }
  fs::path folder_;
};

TEST_F(FingerprintOfFile, does_not_depend_on_its_name) {
  EXPECT_EQ(of("a", "bytes"), of("b", "bytes"));
}

TEST_F(FingerprintOfFile, depends_on_size_and_on_bytes_at_both_ends_and_between) {
  std::string bytes(10 << 20, 'x');
  const std::string before = of("a", bytes);
  EXPECT_NE(of("b", bytes + "x"), before);
  for (size_t at : {size_t{0}, bytes.size() - 1, bytes.size() / 65 * 32 + 100}) {
    std::string changed = bytes;
    changed[at] = 'y';
    EXPECT_NE(of("c", changed), before) << at;
  }
}

TEST_F(FingerprintOfFile, takes_files_shorter_than_a_sample) {
  EXPECT_NE(of("a", ""), of("b", "x"));
  EXPECT_NE(of("a", std::string(5000, 'x')), of("b", std::string(5000, 'y')));
}

TEST_F(FingerprintOfFile, depends_on_the_attributes) {
  of("a", "bytes");
  EXPECT_NE(fingerprint(folder_ / "a", {{"xla_version", "2"}}),
            fingerprint(folder_ / "a", {{"xla_version", "3"}}));
}

TEST(Fingerprint, of_a_missing_file_throws) {
  EXPECT_THROW(fingerprint("/nowhere/plugin.so", {}), Error);
}

}  // namespace
}  // namespace torch_tpu::pjrt
