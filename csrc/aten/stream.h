// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Stream.h>

// Streams of a tpu device. A device runs its programs in one queue, in the order of their launch,
// so a stream is a name: it keeps CUDA's rules (a default stream, a pool per priority handed out in
// turn, a current stream per thread and device), and work on two streams is ordered as it was
// launched. Whatever is right with CUDA's looser order is right here.
namespace torch_tpu::aten {

c10::Stream default_stream(c10::DeviceIndex device);
c10::Stream current_stream(c10::DeviceIndex device);  // of this thread

// Makes `stream` current on its device for this thread and returns the one that was. Throws for an
// id never handed out.
c10::Stream exchange_stream(c10::Stream stream);

// The next stream of the device's pool; the pool is a ring of 32, as CUDA's.
c10::Stream stream_from_pool(c10::DeviceIndex device, bool high_priority);

// True if all that was launched on the stream's device is done. Does not wait.
bool stream_is_idle(c10::Stream stream);

// Waits for all that was launched on the stream's device. Throws what failed there.
void synchronize_stream(c10::Stream stream);

// -1 means the current device; throws for a device that does not exist.
c10::DeviceIndex normalize(int device);

}  // namespace torch_tpu::aten
