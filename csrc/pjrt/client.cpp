// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client.h"

#include <algorithm>

#include "pjrt/args.h"
#include "pjrt/named_values.h"
#include "pjrt/program.h"

namespace torch_tpu::pjrt {
namespace {

int local_hardware_id(const PJRT_Api* api, PJRT_Device* device) {
  Args<PJRT_Device_LocalHardwareId_Args> args;
  args->device = device;
  check(api, api->PJRT_Device_LocalHardwareId(args), "PJRT_Device_LocalHardwareId");
  return args->local_hardware_id;
}

// The arguments of every host-to-device copy, all but the strides and who keeps `data` alive.
Args<PJRT_Client_BufferFromHostBuffer_Args> host_buffer_args(PJRT_Client* client, const void* data,
                                                             const Type& type,
                                                             PJRT_Device* device) {
  Args<PJRT_Client_BufferFromHostBuffer_Args> args;
  args->client = client;
  args->data = data;
  args->type = static_cast<PJRT_Buffer_Type>(to_pjrt(type.dtype));
  args->dims = type.dims.data();
  args->num_dims = type.dims.size();
  args->device = device;
  return args;
}

}  // namespace

std::unique_ptr<Client> Client::create(const Plugin& plugin, const Options& options) {
  const std::vector<PJRT_NamedValue> values = to_named_values(options);
  Args<PJRT_Client_Create_Args> args;
  args->create_options = values.data();
  args->num_options = values.size();
  check(plugin.api(), plugin.api()->PJRT_Client_Create(args), "PJRT_Client_Create");
  return std::unique_ptr<Client>(new Client(plugin, args->client));
}

Client::Client(const Plugin& plugin, PJRT_Client* client) : plugin_(plugin), client_(client) {
  const PJRT_Api* api = plugin_.api();
  Args<PJRT_Client_AddressableDevices_Args> args;
  args->client = client_;
  check(api, api->PJRT_Client_AddressableDevices(args), "PJRT_Client_AddressableDevices");
  devices_.assign(args->addressable_devices,
                  args->addressable_devices + args->num_addressable_devices);
  std::stable_sort(devices_.begin(), devices_.end(), [api](PJRT_Device* a, PJRT_Device* b) {
    return local_hardware_id(api, a) < local_hardware_id(api, b);
  });
}

Client::~Client() {
  Args<PJRT_Client_Destroy_Args> args;
  args->client = client_;
  ignore(plugin_.api(), plugin_.api()->PJRT_Client_Destroy(args));
}

std::string Client::platform_name() const {
  Args<PJRT_Client_PlatformName_Args> args;
  args->client = client_;
  check(plugin_.api(), plugin_.api()->PJRT_Client_PlatformName(args), "PJRT_Client_PlatformName");
  return std::string(args->platform_name, args->platform_name_size);
}

std::string Client::platform_version() const {
  Args<PJRT_Client_PlatformVersion_Args> args;
  args->client = client_;
  check(plugin_.api(), plugin_.api()->PJRT_Client_PlatformVersion(args),
        "PJRT_Client_PlatformVersion");
  return std::string(args->platform_version, args->platform_version_size);
}

std::string Client::device_kind(PJRT_Device* device) const {
  const PJRT_Api* api = plugin_.api();
  Args<PJRT_Device_GetDescription_Args> description;
  description->device = device;
  check(api, api->PJRT_Device_GetDescription(description), "PJRT_Device_GetDescription");
  Args<PJRT_DeviceDescription_Kind_Args> kind;
  kind->device_description = description->device_description;
  check(api, api->PJRT_DeviceDescription_Kind(kind), "PJRT_DeviceDescription_Kind");
  return std::string(kind->device_kind, kind->device_kind_size);
}

std::optional<std::map<std::string, int64_t>> Client::device_memory_stats(
    PJRT_Device* device) const {
  const PJRT_Api* api = plugin_.api();
  Args<PJRT_Device_MemoryStats_Args> args;
  args->device = device;
  try {
    check(api, api->PJRT_Device_MemoryStats(args), "PJRT_Device_MemoryStats");
  } catch (const Error& error) {
    if (error.code() == Code::unimplemented) return std::nullopt;
    throw;
  }
  std::map<std::string, int64_t> stats = {{"bytes_in_use", args->bytes_in_use}};
  if (args->bytes_limit_is_set) stats["bytes_limit"] = args->bytes_limit;
  if (args->peak_bytes_in_use_is_set) stats["peak_bytes_in_use"] = args->peak_bytes_in_use;
  return stats;
}

LoadedExecutable Client::compile(const std::string& stablehlo,
                                 const CompileOptions& options) const {
  const PJRT_Api* api = plugin_.api();
  const std::string serialized = options.serialize();
  Args<PJRT_Program> program = mlir_program(stablehlo);
  Args<PJRT_Client_Compile_Args> args;
  args->client = client_;
  args->program = program;
  args->compile_options = serialized.data();
  args->compile_options_size = serialized.size();
  check(api, api->PJRT_Client_Compile(args), "PJRT_Client_Compile");
  return LoadedExecutable(api, args->executable);
}

LoadedExecutable Client::deserialize(const std::string& bytes,
                                     const CompileOptions& options) const {
  const PJRT_Api* api = plugin_.api();
  const std::string serialized = options.serialize();
  Args<PJRT_Executable_DeserializeAndLoad_Args> args;
  args->client = client_;
  args->serialized_executable = bytes.data();
  args->serialized_executable_size = bytes.size();
  args->overridden_serialized_compile_options = serialized.data();
  args->overridden_serialized_compile_options_size = serialized.size();
  check(api, api->PJRT_Executable_DeserializeAndLoad(args), "PJRT_Executable_DeserializeAndLoad");
  return LoadedExecutable(api, args->loaded_executable);
}

Buffer Client::from_host(const void* data, const Type& type, PJRT_Device* device) const {
  return from_host_strided(data, type, {}, device);
}

Buffer Client::from_host_strided(const void* data, const Type& type, const Dims& byte_strides,
                                 PJRT_Device* device) const {
  auto args = host_buffer_args(client_, data, type, device);
  args->byte_strides = byte_strides.data();
  args->num_byte_strides = byte_strides.size();
  args->host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  check(plugin_.api(), plugin_.api()->PJRT_Client_BufferFromHostBuffer(args),
        "PJRT_Client_BufferFromHostBuffer");
  Event done(plugin_.api(), args->done_with_host_buffer);
  return Buffer(plugin_.api(), args->buffer);
}

Buffer Client::from_host_async(const void* data, const Type& type, PJRT_Device* device,
                               Event* done) const {
  auto args = host_buffer_args(client_, data, type, device);
  args->host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  check(plugin_.api(), plugin_.api()->PJRT_Client_BufferFromHostBuffer(args),
        "PJRT_Client_BufferFromHostBuffer");
  *done = Event(plugin_.api(), args->done_with_host_buffer);
  return Buffer(plugin_.api(), args->buffer);
}

}  // namespace torch_tpu::pjrt
