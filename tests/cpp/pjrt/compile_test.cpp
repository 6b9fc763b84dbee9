// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "pjrt/device_test.h"
#include "pjrt/programs.h"

namespace torch_tpu::pjrt {
namespace {

class Compile : public DeviceTest {};
TT_ON_EACH_CPU_PLUGIN(Compile);

TEST_P(Compile, reports_what_is_wrong_with_the_text) {
  const std::string type = "tensor<2xf32>";
  const std::string program = module("%0: " + type, type,
                                     "    %1 = \"stablehlo.add\"(%0) : (" + type + ") -> " + type +
                                         "\n" + "    \"func.return\"(%1) : (" + type + ") -> ()");
  try {
    client().compile(program, {});
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("PJRT_Client_Compile: ")) << error.what();
    EXPECT_NE(std::string(error.what()).find("'stablehlo.add' op expected 2 operands, but found 1"),
              std::string::npos)
        << error.what();
  }
}

TEST_P(Compile, takes_xla_options_and_refuses_unknown_ones) {
  const CompileOptions options = {.overrides = {{"xla_backend_optimization_level", int64_t{0}},
                                                {"xla_cpu_enable_fast_math", false}}};
  const LoadedExecutable program = client().compile(add("tensor<2xf32>"), options);
  const Buffer x = upload({1, 2});
  EXPECT_EQ(download(execute(program, {x.get(), x.get()})), (Floats{2, 4}));
  const CompileOptions unknown = {.overrides = {{"xla_no_such_option", true}}};
  EXPECT_THROW(client().compile(add("tensor<2xf32>"), unknown), Error);
}

TEST_P(Compile, counts_results_and_memory) {
  const LoadedExecutable program = client().compile(add_over_x("tensor<1024xf32>"), {});
  EXPECT_EQ(program.num_outputs(), 1u);
  const MemoryStats memory = program.memory_stats();
  EXPECT_EQ(memory.argument_bytes, 8192);
  EXPECT_EQ(memory.output_bytes, 4096);
  EXPECT_EQ(memory.alias_bytes, 4096);
}

TEST_P(Compile, answers_about_cost_if_only_with_nothing) {
  const auto cost = client().compile(add("tensor<1024xf32>"), {}).cost_analysis();
  if (!cost.empty()) {
    EXPECT_EQ(cost.at("flops"), 1024);
  }
}

// --- a program outlives its process ---

constexpr const char* kFileVariable = "TORCH_TPU_TEST_SERIALIZED";

// The half that runs in a second process, on the file that the test after it wrote.
TEST_P(Compile, DISABLED_runs_the_serialized_program) {
  std::ifstream file(std::getenv(kFileVariable), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const LoadedExecutable program = client().deserialize(bytes, {});
  EXPECT_EQ(program.num_outputs(), 1u);
  for (int device : {0, 2}) {
    const Buffer x = upload({1, 2, 3}, device), y = upload({10, 20, 30}, device);
    EXPECT_EQ(download(execute(program, {x.get(), y.get()}, device)), (Floats{11, 22, 33}));
    EXPECT_THROW(download(x), Error) << "donation was forgotten";
  }
}

TEST_P(Compile, a_serialized_program_runs_in_another_process_on_any_device) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("torch_tpu_" + GetParam().name + std::to_string(getpid()));
  std::ofstream(file, std::ios::binary)
      << client().compile(add_over_x("tensor<3xf32>"), {}).serialize();
  setenv(kFileVariable, file.c_str(), 1);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      "'" + self + "' --gtest_also_run_disabled_tests --gtest_filter=Compile.DISABLED_*/" +
      GetParam().name + " > " + file.string() + ".log 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream log(file.string() + ".log");
  EXPECT_EQ(status, 0) << std::string{std::istreambuf_iterator<char>(log), {}};
  std::filesystem::remove(file);
  std::filesystem::remove(file.string() + ".log");
}

TEST_P(Compile, refuses_bytes_that_are_no_program) {
  EXPECT_THROW(client().deserialize("nonsense", {}), Error);
  EXPECT_THROW(client().deserialize("", {}), Error);
  std::string cut = client().compile(add("tensor<2xf32>"), {}).serialize();
  cut.resize(cut.size() / 2);
  EXPECT_THROW(client().deserialize(cut, {}), Error);
}

TEST_P(Compile, overrides_options_only_where_a_nan_may_get_lost) {
  const auto one = [](const std::string& operation) {
    return "    %2 = \"" + operation + "\"(%0, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n";
  };
  EXPECT_TRUE(client().options_for(one("stablehlo.add")).overrides.empty());
  for (const char* name :
       {"stablehlo.maximum", "stablehlo.reduce", "stablehlo.add_all", "chlo.add"})
    EXPECT_EQ(client().options_for(one("stablehlo.add") + one(name)).overrides.size(), 2) << name;
  EXPECT_EQ(client().options_for("").portable, client().devices().size() > 1);
}

}  // namespace
}  // namespace torch_tpu::pjrt
