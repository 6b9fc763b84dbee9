// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "pjrt/client.h"

namespace torch_tpu::pjrt {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (unsigned char c : bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += {digits[c >> 4], digits[c & 15]};
  }
  return text;
}

// executable_build_options (3): device_ordinal (1) = -1, num_replicas (4) = 1, num_partitions (5) =
// 1
const std::string kOneDevice =
    "1a0f"
    "08ffffffffffffffffff01"
    "2001"
    "2801";

TEST(CompileOptions, for_one_device_are_portable) {
  EXPECT_EQ(hex(CompileOptions{}.serialize()), kOneDevice + "2001");
  EXPECT_EQ(hex(CompileOptions{.portable = false}.serialize()), kOneDevice);
}

TEST(CompileOptions, with_an_assignment_are_not_portable) {
  const CompileOptions options = {.device_ids = {300}};
  // device_assignment (9): replica_count 1, computation_count 1, computation_devices {300}
  EXPECT_EQ(hex(options.serialize()),
            "1a1a"
            "08ffffffffffffffffff01"
            "2001"
            "2801"
            "4a09"
            "0801"
            "1001"
            "1a03"
            "08ac02");
}

TEST(CompileOptions, for_several_partitions_list_one_device_each_and_turn_the_partitioner_on) {
  const CompileOptions options = {.num_partitions = 2, .device_ids = {0, 5}};
  EXPECT_EQ(hex(options.serialize()),
            "1a22"
            "08ffffffffffffffffff01"
            "2001"
            "2802"
            "3001"
            "4a0c"
            "0801"
            "1002"
            "1a02"
            "0800"
            "1a02"
            "0805"
            "980101");
}

TEST(CompileOptions, for_replicas_group_devices_by_partition) {
  const CompileOptions options = {
      .num_replicas = 2, .num_partitions = 2, .device_ids = {10, 11, 20, 21}};
  EXPECT_NE(hex(options.serialize())
                .find("1a04"
                      "080a"
                      "0814"
                      "1a04"
                      "080b"
                      "0815"),
            std::string::npos);
}

TEST(CompileOptions, write_overrides_with_their_type_even_if_zero) {
  const auto tail = [](const Option& value) {
    const CompileOptions options = {.portable = false, .overrides = {{"xla_x", value}}};
    return hex(options.serialize()).substr(kOneDevice.size());
  };
  const std::string key =
      "0a05"
      "786c615f78";
  EXPECT_EQ(tail(false), "3a0b" + key +
                             "1202"
                             "1000");
  EXPECT_EQ(tail(int64_t{0}), "3a0b" + key +
                                  "1202"
                                  "1800");
  EXPECT_EQ(tail(std::string("on")), "3a0d" + key +
                                         "1204"
                                         "0a02"
                                         "6f6e");
  EXPECT_EQ(tail(0.5f), "3a12" + key +
                            "1209"
                            "21"
                            "000000000000e03f");
}

TEST(CompileOptions, refuse_what_cannot_be_written) {
  EXPECT_THROW((CompileOptions{.num_partitions = 2, .device_ids = {0}}.serialize()), Error);
  EXPECT_THROW((CompileOptions{.overrides = {{"x", std::vector<int64_t>{1}}}}.serialize()), Error);
}

}  // namespace
}  // namespace torch_tpu::pjrt
