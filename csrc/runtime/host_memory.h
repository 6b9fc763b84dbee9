// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace torch_tpu::runtime {

// Bytes of RAM that this process may use: the machine's, or its control group's limit where that is
// less.
struct HostMemory {
  int64_t available, total;
};
HostMemory host_memory();

}  // namespace torch_tpu::runtime
