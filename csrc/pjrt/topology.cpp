// SPDX-License-Identifier: Apache-2.0
#include "pjrt/args.h"
#include "pjrt/client.h"
#include "pjrt/executable.h"
#include "pjrt/named_values.h"
#include "pjrt/program.h"

namespace torch_tpu::pjrt {
namespace {

std::vector<PJRT_DeviceDescription*> descriptions(const PJRT_Api* api,
                                                  PJRT_TopologyDescription* topology) {
  Args<PJRT_TopologyDescription_GetDeviceDescriptions_Args> args;
  args->topology = topology;
  check(api, api->PJRT_TopologyDescription_GetDeviceDescriptions(args),
        "PJRT_TopologyDescription_GetDeviceDescriptions");
  return {args->descriptions, args->descriptions + args->num_descriptions};
}

}  // namespace

Topology::Topology(const Plugin& plugin, const std::string& name, const Options& options)
    : plugin_(plugin) {
  // libtpu takes an empty name for some topology of its own.
  if (name.empty())
    throw Error(Code::invalid_argument,
                "the name of a topology is empty; expected one like v6e:1x1");
  const std::vector<PJRT_NamedValue> values = to_named_values(options);
  Args<PJRT_TopologyDescription_Create_Args> args;
  args->topology_name = name.data();
  args->topology_name_size = name.size();
  args->create_options = values.data();
  args->num_options = values.size();
  check(plugin_.api(), plugin_.api()->PJRT_TopologyDescription_Create(args),
        "PJRT_TopologyDescription_Create");
  topology_ = args->topology;
}

Topology::~Topology() {
  Args<PJRT_TopologyDescription_Destroy_Args> args;
  args->topology = topology_;
  ignore(plugin_.api(), plugin_.api()->PJRT_TopologyDescription_Destroy(args));
}

int Topology::num_devices() const {
  return static_cast<int>(descriptions(plugin_.api(), topology_).size());
}

std::vector<int64_t> Topology::device_ids() const {
  const PJRT_Api* api = plugin_.api();
  std::vector<int64_t> ids;
  for (PJRT_DeviceDescription* description : descriptions(api, topology_)) {
    Args<PJRT_DeviceDescription_Id_Args> args;
    args->device_description = description;
    check(api, api->PJRT_DeviceDescription_Id(args), "PJRT_DeviceDescription_Id");
    ids.push_back(args->id);
  }
  return ids;
}

std::string Topology::device_kind() const {
  const PJRT_Api* api = plugin_.api();
  Args<PJRT_DeviceDescription_Kind_Args> args;
  args->device_description = descriptions(api, topology_).at(0);
  check(api, api->PJRT_DeviceDescription_Kind(args), "PJRT_DeviceDescription_Kind");
  return std::string(args->device_kind, args->device_kind_size);
}

Topology::Compiled Topology::compile(const std::string& stablehlo, CompileOptions options,
                                     bool serialize) const {
  const PJRT_Api* api = plugin_.api();
  // libtpu takes a program for one device with or without an assignment, portable or not; one for
  // several needs to know which, as there is no client whose default it could use.
  const size_t needed = static_cast<size_t>(options.num_replicas) * options.num_partitions;
  if (options.device_ids.empty() && needed > 1) {
    options.device_ids = device_ids();
    if (needed > options.device_ids.size()) {
      throw Error(Code::invalid_argument, "compile: the program is for " + std::to_string(needed) +
                                              " devices, the topology has " +
                                              std::to_string(options.device_ids.size()));
    }
    options.device_ids.resize(needed);
  }
  const std::string serialized = options.serialize();
  Args<PJRT_Program> program = mlir_program(stablehlo);
  Args<PJRT_Compile_Args> args;
  args->topology = topology_;
  args->program = program;
  args->compile_options = serialized.data();
  args->compile_options_size = serialized.size();
  check(api, api->PJRT_Compile(args), "PJRT_Compile");
  const Executable executable(api, args->executable);
  return {executable.memory_stats(), executable.cost_analysis(),
          serialize ? executable.serialize() : ""};
}

}  // namespace torch_tpu::pjrt
