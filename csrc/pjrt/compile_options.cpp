// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <string_view>

#include "pjrt/client.h"

// xla/pjrt/proto/compile_options.proto in protobuf's wire format, by hand: a dozen fields do not
// need libprotobuf. Field numbers are those of that file.
namespace torch_tpu::pjrt {
namespace {

class Message {
 public:
  void varint(int field, uint64_t value) {
    key(field, 0);
    raw_varint(value);
  }
  void fixed64(int field, uint64_t value) {
    key(field, 1);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void bytes(int field, std::string_view value) {
    key(field, 2);
    raw_varint(value.size());
    bytes_ += value;
  }
  void message(int field, const Message& value) { bytes(field, value.bytes_); }
  std::string take() { return std::move(bytes_); }

 private:
  void key(int field, int wire_type) { raw_varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  void raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// DeviceAssignmentProto: one ComputationDevice per partition, which lists the devices of its
// replicas.
Message device_assignment(const CompileOptions& options) {
  Message m;
  m.varint(1, options.num_replicas);
  m.varint(2, options.num_partitions);
  for (int partition = 0; partition < options.num_partitions; ++partition) {
    Message devices;
    for (int replica = 0; replica < options.num_replicas; ++replica) {
      devices.varint(1, options.device_ids[replica * options.num_partitions + partition]);
    }
    m.message(3, devices);
  }
  return m;
}

Message executable_build_options(const CompileOptions& options) {
  Message m;
  m.varint(1, static_cast<uint64_t>(-1));  // device_ordinal: none
  m.varint(4, options.num_replicas);       // both default to 0 on the wire, so always written
  m.varint(5, options.num_partitions);
  if (options.num_partitions > 1) m.varint(6, true);  // use_spmd_partitioning
  if (!options.device_ids.empty()) m.message(9, device_assignment(options));
  if (options.num_partitions > 1) m.varint(19, true);  // use_shardy_partitioner
  return m;
}

// OptionOverrideProto, a oneof: the value is written even when it is zero.
struct Override {
  const std::string& name;
  Message m;
  void operator()(const std::string& value) { m.bytes(1, value); }
  void operator()(bool value) { m.varint(2, value); }
  void operator()(int64_t value) { m.varint(3, static_cast<uint64_t>(value)); }
  void operator()(float value) {
    m.fixed64(4, std::bit_cast<uint64_t>(static_cast<double>(value)));
  }
  void operator()(const std::vector<int64_t>&) {
    throw Error(Code::invalid_argument,
                "compile option " + name + ": a list cannot be an XLA option; pass a string");
  }
};

}  // namespace

std::string CompileOptions::serialize() const {
  const size_t devices = static_cast<size_t>(num_replicas) * num_partitions;
  if (!device_ids.empty() && device_ids.size() != devices) {
    throw Error(Code::invalid_argument, "compile options: " + std::to_string(device_ids.size()) +
                                            " device ids for " + std::to_string(num_replicas) +
                                            " replicas x " + std::to_string(num_partitions) +
                                            " partitions");
  }
  Message m;
  m.message(3, executable_build_options(*this));
  if (portable && devices == 1 && device_ids.empty()) m.varint(4, true);
  for (const auto& [name, value] : overrides) {
    Override visitor{name, {}};
    std::visit(visitor, value);
    Message entry;  // a map field is a list of {key, value}
    entry.bytes(1, name);
    entry.message(2, visitor.m);
    m.message(7, entry);
  }
  return m.take();
}

}  // namespace torch_tpu::pjrt
