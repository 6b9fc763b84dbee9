// SPDX-License-Identifier: Apache-2.0
#include "aten/allocator.h"

#include <limits>

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include "aten/errors.h"
#include "aten/storage.h"
#include "aten/stream.h"
#include "runtime/host_memory.h"

namespace torch_tpu::aten {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

// "1.50 GiB"
std::string readable(int64_t nbytes) {
  static const char* const kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(nbytes);
  size_t unit = 0;
  for (; value >= 1024 && unit < 6; ++unit) value /= 1024;
  char text[40];
  std::snprintf(text, sizeof text, unit ? "%.2f %s" : "%.0f %s", value, kUnits[unit]);
  return text;
}

struct Capacity {
  int64_t free, total;
};

Capacity capacity(runtime::Device& device) {
  const auto stats = runtime::Device::client().device_memory_stats(device.pjrt_device());
  if (stats && stats->count("bytes_limit")) {
    const int64_t total = stats->at("bytes_limit");
    return {total - (stats->count("bytes_in_use") ? stats->at("bytes_in_use") : 0), total};
  }
  const runtime::HostMemory host = runtime::host_memory();
  return {host.available, host.total};
}

void set(StatArray& array, int64_t current, int64_t peak, int64_t allocated, int64_t freed) {
  Stat& s = array[static_cast<size_t>(StatType::AGGREGATE)];
  s.current = current;
  s.peak = peak;
  s.allocated = allocated;
  s.freed = freed;
}

runtime::Device& device_at(c10::DeviceIndex index) { return runtime::Device::at(normalize(index)); }

}  // namespace

c10::DataPtr TpuAllocator::allocate(size_t nbytes) {
  return translate_errors([&] {
    runtime::Device& device = runtime::Device::at(current_device());
    TORCH_CHECK_WITH(OutOfMemoryError,
                     nbytes <= static_cast<size_t>(std::numeric_limits<int64_t>::max()),
                     "tpu out of memory. Tried to allocate ", nbytes, " bytes.");
    require_capacity(device, static_cast<int64_t>(nbytes));
    return make_data_ptr(device, static_cast<int64_t>(nbytes));
  });
}

void TpuAllocator::copy_data(void*, const void*, size_t) const {
  TORCH_CHECK_NOT_IMPLEMENTED(false,
                              "a tpu storage is not copied by address: copy the tensor over it");
}

bool TpuAllocator::initialized() { return runtime::Device::initialized(); }

c10::CachingDeviceAllocator::DeviceStats TpuAllocator::getDeviceStats(c10::DeviceIndex index) {
  const runtime::MemoryStats m = translate_errors([&] { return device_at(index).memory(); });
  c10::CachingDeviceAllocator::DeviceStats stats;
  for (StatArray* a :
       {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes, &stats.requested_bytes})
    set(*a, m.allocated, m.peak, m.total_allocated, m.total_freed);
  for (StatArray* a : {&stats.allocation, &stats.segment, &stats.active})
    set(*a, m.count, m.peak_count, m.total_count, m.total_count - m.count);
  stats.num_device_alloc = m.total_count;
  stats.num_device_free = m.total_count - m.count;
  return stats;
}

void TpuAllocator::resetAccumulatedStats(c10::DeviceIndex index) {
  translate_errors([&] { device_at(index).reset_accumulated(); });
}

void TpuAllocator::resetPeakStats(c10::DeviceIndex index) {
  translate_errors([&] { device_at(index).reset_peak(); });
}

std::pair<size_t, size_t> TpuAllocator::getMemoryInfo(c10::DeviceIndex index) {
  const Capacity c = translate_errors([&] { return capacity(device_at(index)); });
  return {static_cast<size_t>(c.free), static_cast<size_t>(c.total)};
}

TpuAllocator& allocator() {
  static auto* leaked = new TpuAllocator;  // storages may outlive statics
  return *leaked;
}

void require_capacity(runtime::Device& device, int64_t nbytes) {
  constexpr int64_t kAlwaysFits = int64_t{64} << 20;  // not worth asking the plugin or /proc
  if (nbytes <= kAlwaysFits) return;
  static const int64_t total = capacity(device).total;  // of every device of the process
  if (nbytes <= total) return;
  const Capacity c = capacity(device);
  TORCH_CHECK_WITH(OutOfMemoryError, false, "tpu out of memory. Tried to allocate ",
                   readable(nbytes), ". tpu:", device.index(), " has a total capacity of ",
                   readable(c.total), " of which ", readable(c.free),
                   " is free. Arrays of this process hold ", readable(device.memory().allocated),
                   ".");
}

REGISTER_ALLOCATOR(c10::kPrivateUse1, &allocator())

}  // namespace torch_tpu::aten
