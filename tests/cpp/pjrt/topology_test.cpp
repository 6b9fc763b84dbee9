// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "pjrt/discovery.h"
#include "pjrt/programs.h"
#include "testing/plugins.h"

namespace torch_tpu::pjrt {
namespace {

// One chip of each generation, as libtpu names it.
struct Chip {
  std::string name, topology, kind;
  int num_devices;
};
void PrintTo(const Chip& chip, std::ostream* out) { *out << chip.name; }

class OneChip : public ::testing::TestWithParam<Chip> {
 protected:
  void SetUp() override {
    if (test::libtpu().path.empty()) GTEST_SKIP() << "not installed: pip install libtpu";
    set_defaults(environment_defaults("tpu", {}));
  }
  const Plugin& plugin() const { return Plugin::load(test::libtpu().path); }
};
INSTANTIATE_TEST_SUITE_P(, OneChip,
                         ::testing::Values(Chip{"v5e", "v5e:1x1", "TPU v5 lite", 1},
                                           Chip{"v6e", "v6e:1x1", "TPU v6 lite", 1},
                                           Chip{"v7x", "tpu7x:1x1x1", "TPU7x",
                                                2}),  // two devices a chip
                         [](const auto& info) { return info.param.name; });

TEST_P(OneChip, has_its_devices) {
  const Topology chip(plugin(), GetParam().topology);
  EXPECT_EQ(chip.num_devices(), GetParam().num_devices);
  EXPECT_EQ(chip.device_kind(), GetParam().kind);
  EXPECT_EQ(chip.device_ids()[0], 0);
}

TEST_P(OneChip, takes_the_option_for_its_bounds) {
  const Topology chip(plugin(), GetParam().topology,
                      {{"chips_per_host_bounds", std::vector<int64_t>{1, 1, 1}}});
  EXPECT_EQ(chip.num_devices(), GetParam().num_devices);
}

TEST_P(OneChip, compiles_with_memory_and_cost) {
  const Topology chip(plugin(), GetParam().topology);
  const auto compiled = chip.compile(add_over_x("tensor<1024x1024xf32>"), {});
  EXPECT_EQ(compiled.memory.argument_bytes, 8 << 20);
  EXPECT_EQ(compiled.memory.output_bytes, 4 << 20);
  EXPECT_EQ(compiled.memory.alias_bytes, 4 << 20);
  EXPECT_GT(compiled.memory.code_bytes, 0);
  EXPECT_EQ(compiled.cost.at("flops"), 1 << 20);
  EXPECT_GE(compiled.cost.at("bytes accessed"), 12 << 20);
  EXPECT_GT(compiled.cost.at("optimal_seconds"), 0);
  EXPECT_TRUE(compiled.executable.empty());
}

TEST_P(OneChip, compiles_the_same_with_and_without_an_assignment) {
  const Topology chip(plugin(), GetParam().topology);
  const std::string program = add("tensor<256xf32>");
  const int64_t code = chip.compile(program, {}).memory.code_bytes;
  EXPECT_EQ(chip.compile(program, {.portable = false}).memory.code_bytes, code);
  EXPECT_EQ(chip.compile(program, {.device_ids = {0}}).memory.code_bytes, code);
}

TEST_P(OneChip, serializes_on_request) {
  const Topology chip(plugin(), GetParam().topology);
  EXPECT_FALSE(chip.compile(add("tensor<8xf32>"), {}, /*serialize=*/true).executable.empty());
}

TEST_P(OneChip, says_what_does_not_fit) {
  const Topology chip(plugin(), GetParam().topology);
  try {
    chip.compile(add("tensor<262144x262144xf32>"), {});  // 3 x 256 GiB
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted) << error.what();
    EXPECT_TRUE(std::string(error.what()).starts_with("PJRT_Compile: ")) << error.what();
  }
}

class TopologyOfLibtpu : public OneChip {};
INSTANTIATE_TEST_SUITE_P(, TopologyOfLibtpu,
                         ::testing::Values(Chip{"v6e", "v6e:2x2", "TPU v6 lite", 4}),
                         [](const auto& info) { return info.param.name; });

TEST_P(TopologyOfLibtpu, compiles_collectives_for_all_its_devices) {
  const Topology slice(plugin(), GetParam().topology);
  EXPECT_EQ(slice.device_ids(), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_GT(
      slice.compile(all_reduce("tensor<1024xf32>", 4), {.num_partitions = 4}).memory.code_bytes, 0);
  EXPECT_THROW(slice.compile(all_reduce("tensor<1024xf32>", 8), {.num_partitions = 8}), Error);
}

TEST_P(TopologyOfLibtpu, refuses_names_it_does_not_know) {
  EXPECT_THROW(Topology(plugin(), "v99:1x1"), Error);
  EXPECT_THROW(Topology(plugin(), ""), Error);
}

// libtpu looks at the options' names before it looks for chips.
TEST_P(TopologyOfLibtpu, has_a_client_that_misses_the_chips_and_no_option) {
  if (find_tpu().num_chips > 0)
    GTEST_SKIP() << "this machine has a TPU, which a test must not take";
  const auto code = [&](const Options& options) {
    try {
      Client::create(plugin(), options);
    } catch (const Error& error) {
      return error.code();
    }
    return Code{};
  };
  EXPECT_EQ(code(client_options("tpu", 1, "2.13")), Code::internal);
  EXPECT_EQ(code({{"no_such_option", true}}), Code::invalid_argument);
}

}  // namespace
}  // namespace torch_tpu::pjrt
