// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "testing/on_each_plugin.h"

namespace torch_tpu::pjrt {

using Floats = std::vector<float>;

// A test that moves vectors of float32 and launches programs with one result.
class DeviceTest : public test::OnEachPlugin {
 protected:
  Buffer upload(const Floats& values, int device = 0) const {
    return client().from_host(values.data(), {DType::f32, {static_cast<int64_t>(values.size())}},
                              client().devices()[device]);
  }
  Floats download(const Buffer& buffer) const {
    Floats values(buffer.type().numel());
    buffer.to_host(values.data(), buffer.type().nbytes()).wait();
    return values;
  }
  // Runs a program with one result; arguments in `kept` are not donated.
  Buffer execute(const LoadedExecutable& program, std::vector<PJRT_Buffer*> inputs, int device = 0,
                 const std::vector<int64_t>& kept = {}, int launch_id = 0) const {
    PJRT_Buffer* output = nullptr;
    program.execute(client().devices()[device], inputs.data(), inputs.size(), kept.data(),
                    kept.size(), &output, launch_id);
    return Buffer(plugin().api(), output);
  }
};

}  // namespace torch_tpu::pjrt
