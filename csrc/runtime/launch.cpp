// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"
#include "runtime/program.h"

namespace torch_tpu::runtime {
namespace {

// Room for operands on the stack: no allocation for the programs that eager operators make.
template <class T, size_t N>
class StackBuffer {
 public:
  explicit StackBuffer(size_t n) : data_(n <= N ? inline_ : new T[n]) {}
  ~StackBuffer() {
    if (data_ != inline_) delete[] data_;
  }
  StackBuffer(const StackBuffer&) = delete;
  StackBuffer& operator=(const StackBuffer&) = delete;
  T& operator[](size_t i) { return data_[i]; }
  T* get() { return data_; }

 private:
  T inline_[N];
  T* data_;
};

}  // namespace

void launch(const Program& program, Device& device, DeviceArray* const* operands,
            const bool* donate, Array* results) {
  const size_t num_inputs = program.inputs.size();
  const size_t num_outputs = program.outputs.size() + program.checks.size();
  StackBuffer<PJRT_Buffer*, 32> inputs(num_inputs);
  StackBuffer<PJRT_Buffer*, 16> outputs(num_outputs);
  StackBuffer<int64_t, 32> kept(num_inputs);
  size_t num_kept = 0;
  for (size_t i = 0; i < num_inputs; ++i) {
    const size_t operand = static_cast<size_t>(program.inputs[i]);
    inputs[i] = operands[operand]->buffer();
    // Only those that would be donated: the plugin makes a set of them.
    if (program.donatable[i] && !donate[operand]) kept[num_kept++] = static_cast<int64_t>(i);
  }
  const PJRT_Api* api = Device::client().plugin().api();
  try {
    program.executable.execute(device.pjrt_device(), inputs.get(), num_inputs, kept.get(), num_kept,
                               outputs.get());
  } catch (const pjrt::Error& e) {
    throw pjrt::Error(e.code(), program.name + ": " + e.what());
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    results[i] = Array(new DeviceArray(device, program.outputs[i], pjrt::Buffer(api, outputs[i])));
  }
  for (size_t i = 0; i < program.checks.size(); ++i) {
    const Program::Check& check = program.checks[i];
    device.add_check(Array(new DeviceArray(device, check.type,
                                           pjrt::Buffer(api, outputs[program.outputs.size() + i]))),
                     check.message);
  }
  if (Device::config().blocking) {
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      try {
        results[i]->wait();
      } catch (const pjrt::Error& e) {
        throw pjrt::Error(e.code(), program.name + ": " + e.what());
      }
    }
    device.raise_failed_checks();
  }
}

}  // namespace torch_tpu::runtime
