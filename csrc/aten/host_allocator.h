// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace torch_tpu::aten {

// Pinned memory: host memory at 64-byte alignment, which PJRT reads without a copy where it can.
// Nothing is locked in RAM (a plugin that wants that registers memory itself); `is_pinned` is true
// exactly of addresses handed out here and still alive.
at::HostAllocator& host_allocator();
bool is_pinned(const void* address);

}  // namespace torch_tpu::aten
