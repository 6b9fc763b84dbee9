// SPDX-License-Identifier: Apache-2.0
#include "pjrt/executable.h"

#include <utility>

#include "pjrt/args.h"

namespace torch_tpu::pjrt {

Executable::Executable(const PJRT_Api* api, PJRT_LoadedExecutable* loaded) : api_(api) {
  Args<PJRT_LoadedExecutable_GetExecutable_Args> args;
  args->loaded_executable = loaded;
  check(api, api->PJRT_LoadedExecutable_GetExecutable(args), "PJRT_LoadedExecutable_GetExecutable");
  executable_ = args->executable;
}

Executable::~Executable() {
  Args<PJRT_Executable_Destroy_Args> args;
  args->executable = executable_;
  ignore(api_, api_->PJRT_Executable_Destroy(args));
}

size_t Executable::num_outputs() const {
  Args<PJRT_Executable_NumOutputs_Args> args;
  args->executable = executable_;
  check(api_, api_->PJRT_Executable_NumOutputs(args), "PJRT_Executable_NumOutputs");
  return args->num_outputs;
}

std::string Executable::serialize() const {
  Args<PJRT_Executable_Serialize_Args> args;
  args->executable = executable_;
  check(api_, api_->PJRT_Executable_Serialize(args), "PJRT_Executable_Serialize");
  std::string bytes(args->serialized_bytes, args->serialized_bytes_size);
  args->serialized_executable_deleter(args->serialized_executable);
  return bytes;
}

MemoryStats Executable::memory_stats() const {
  Args<PJRT_Executable_GetCompiledMemoryStats_Args> args;
  args->executable = executable_;
  check(api_, api_->PJRT_Executable_GetCompiledMemoryStats(args),
        "PJRT_Executable_GetCompiledMemoryStats");
  return {
      .argument_bytes = args->argument_size_in_bytes,
      .output_bytes = args->output_size_in_bytes,
      .alias_bytes = args->alias_size_in_bytes,
      .temp_bytes = args->temp_size_in_bytes,
      .code_bytes = args->generated_code_size_in_bytes,
      .peak_bytes = args->peak_memory_in_bytes,
  };
}

std::map<std::string, double> Executable::cost_analysis() const {
  Args<PJRT_Executable_GetCostAnalysis_Args> args;
  args->executable = executable_;
  std::map<std::string, double> costs;
  try {
    check(api_, api_->PJRT_Executable_GetCostAnalysis(args), "PJRT_Executable_GetCostAnalysis");
  } catch (const Error& error) {
    if (error.code() == Code::unimplemented) return costs;
    throw;
  }
  for (size_t i = 0; i < args->num_properties; ++i) {
    const PJRT_NamedValue& property = args->properties[i];
    const std::string name(property.name, property.name_size);
    if (property.type == PJRT_NamedValue_kFloat) costs[name] = property.float_value;
    if (property.type == PJRT_NamedValue_kInt64)
      costs[name] = static_cast<double>(property.int64_value);
  }
  return costs;
}

LoadedExecutable::LoadedExecutable(const PJRT_Api* api, PJRT_LoadedExecutable* executable)
    : api_(api), executable_(executable), num_outputs_(Executable(api, executable).num_outputs()) {}

LoadedExecutable::LoadedExecutable(LoadedExecutable&& other) noexcept
    : api_(other.api_),
      executable_(std::exchange(other.executable_, nullptr)),
      num_outputs_(other.num_outputs_) {}

LoadedExecutable& LoadedExecutable::operator=(LoadedExecutable&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(executable_, other.executable_);
  std::swap(num_outputs_, other.num_outputs_);
  return *this;
}

LoadedExecutable::~LoadedExecutable() {
  if (executable_ == nullptr) return;
  Args<PJRT_LoadedExecutable_Destroy_Args> args;
  args->executable = executable_;
  ignore(api_, api_->PJRT_LoadedExecutable_Destroy(args));
}

void LoadedExecutable::execute(PJRT_Device* device, PJRT_Buffer** inputs, size_t num_inputs,
                               const int64_t* non_donatable, size_t num_non_donatable,
                               PJRT_Buffer** outputs, int launch_id) const {
  Args<PJRT_ExecuteOptions> options;
  options->non_donatable_input_indices = non_donatable;
  options->num_non_donatable_input_indices = num_non_donatable;
  options->launch_id = launch_id;
  PJRT_Buffer* const* argument_list = inputs;
  Args<PJRT_LoadedExecutable_Execute_Args> args;
  args->executable = executable_;
  args->options = options;
  args->argument_lists = &argument_list;
  args->num_devices = 1;
  args->num_args = num_inputs;
  args->output_lists = &outputs;
  args->execute_device = device;  // and no device_complete_events: making them costs
  check(api_, api_->PJRT_LoadedExecutable_Execute(args), "PJRT_LoadedExecutable_Execute");
}

std::string LoadedExecutable::serialize() const {
  return Executable(api_, executable_).serialize();
}

MemoryStats LoadedExecutable::memory_stats() const {
  return Executable(api_, executable_).memory_stats();
}

std::map<std::string, double> LoadedExecutable::cost_analysis() const {
  return Executable(api_, executable_).cost_analysis();
}

}  // namespace torch_tpu::pjrt
