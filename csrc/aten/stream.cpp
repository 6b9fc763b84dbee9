// SPDX-License-Identifier: Apache-2.0
#include "aten/stream.h"

#include <array>
#include <atomic>
#include <limits>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "aten/errors.h"
#include "aten/storage.h"

namespace torch_tpu::aten {
namespace {

constexpr c10::StreamId kStreamsPerPool = 32;
constexpr size_t kMaxDevices = std::numeric_limits<c10::DeviceIndex>::max() + 1;

// Ids: 0 the default stream, then the normal pool, then the one of high priority.
constexpr c10::StreamId kLastId = 2 * kStreamsPerPool;

thread_local std::array<c10::StreamId, kMaxDevices> current_ids{};
std::array<std::atomic<uint32_t>, kMaxDevices> next_in_pool[2];

c10::Stream make(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kPrivateUse1, device), id);
}

}  // namespace

c10::DeviceIndex normalize(int device) {
  if (device == -1) return current_device();
  const int count = Device::configured_count();
  TORCH_CHECK(device >= 0 && device < count, "tpu:", device, " does not exist: this process has ",
              count, " tpu device", count == 1 ? "" : "s",
              " (TORCH_TPU_DEVICES sets their number on the CPU platform)");
  return static_cast<c10::DeviceIndex>(device);
}

c10::Stream default_stream(c10::DeviceIndex device) { return make(normalize(device), 0); }

c10::Stream current_stream(c10::DeviceIndex device) {
  const c10::DeviceIndex index = normalize(device);
  return make(index, current_ids[index]);
}

c10::Stream exchange_stream(c10::Stream stream) {
  TORCH_CHECK(stream.id() >= 0 && stream.id() <= kLastId, "no stream of ", stream.device(),
              " has id ", stream.id());
  const c10::DeviceIndex index = normalize(stream.device_index());
  return make(index, std::exchange(current_ids[index], stream.id()));
}

c10::Stream stream_from_pool(c10::DeviceIndex device, bool high_priority) {
  const c10::DeviceIndex index = normalize(device);
  const c10::StreamId turn = next_in_pool[high_priority][index].fetch_add(1) % kStreamsPerPool;
  return make(index, 1 + high_priority * kStreamsPerPool + turn);
}

bool stream_is_idle(c10::Stream stream) {
  if (!Device::initialized()) return true;
  return translate_errors(
      [&] { return Device::at(normalize(stream.device_index())).pending().empty(); });
}

void synchronize_stream(c10::Stream stream) {
  if (!Device::initialized() && !Device::forked()) return;
  translate_errors([&] { Device::at(normalize(stream.device_index())).synchronize(); });
}

namespace {

// Nothing to do: an array lives until the programs that read it are done, whatever the stream.
void record_stream(at::Tensor&, c10::Stream) {}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("record_stream", &record_stream); }

}  // namespace
}  // namespace torch_tpu::aten
