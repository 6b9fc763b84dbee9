// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "runtime/device.h"

namespace torch_tpu::aten {

// The allocator of storages. An allocation is an address and a Cell with no array yet: device
// memory is taken when the first program writes it. So the figures are those of live device arrays,
// which is what really occupies the device. There is no cache to empty: reserved is allocated.
class TpuAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(
      size_t nbytes) override;  // on the current device; c10::OutOfMemoryError if it can never fit
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }  // the context is not the address
  void copy_data(void* to, const void* from, size_t nbytes) const override;

  bool initialized() override;
  void emptyCache(c10::MempoolId_t) override {}
  // Nothing to do: an array lives until the programs that read it are done, whatever the stream.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override;
  void resetAccumulatedStats(c10::DeviceIndex index) override;
  void resetPeakStats(c10::DeviceIndex index) override;
  // Free and total bytes: the plugin's figures; on XLA:CPU the host's, which all its devices share.
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override;
};

TpuAllocator& allocator();

// Throws c10::OutOfMemoryError if `nbytes` are more than the device has in all. For memory that is
// asked for now and taken later: PyTorch promises the error at the call. What a program needs, the
// plugin refuses itself (RESOURCE_EXHAUSTED).
void require_capacity(runtime::Device& device, int64_t nbytes);

}  // namespace torch_tpu::aten
