// SPDX-License-Identifier: Apache-2.0
#include "aten/host_allocator.h"

#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>

#include <c10/util/Exception.h>

namespace torch_tpu::aten {
namespace {

constexpr size_t kAlignment = 64;

void release(void* address);

class PinnedAllocator final : public at::HostAllocator {
 public:
  at::DataPtr allocate(size_t nbytes) override {
    if (nbytes == 0) return {nullptr, nullptr, &release, at::kCPU};
    const size_t rounded = (nbytes + kAlignment - 1) / kAlignment * kAlignment;
    void* address = rounded < nbytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
    TORCH_CHECK_WITH(OutOfMemoryError, address, "pinned memory: the host could not allocate ",
                     nbytes, " bytes");
    const std::lock_guard<std::mutex> lock(mutex_);
    live_.emplace(address, rounded);
    for (at::Stat* s : {&stats_.allocations, &stats_.active_requests}) s->increase(1);
    for (at::Stat* s : {&stats_.allocated_bytes, &stats_.active_bytes}) s->increase(rounded);
    ++stats_.num_host_alloc;
    return {address, address, &release, at::kCPU};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t nbytes) const override {
    default_copy_data(to, from, nbytes);
  }

  void free(void* address) {
    if (!address) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto it = live_.find(address);
      for (at::Stat* s : {&stats_.allocations, &stats_.active_requests}) s->decrease(1);
      for (at::Stat* s : {&stats_.allocated_bytes, &stats_.active_bytes}) s->decrease(it->second);
      ++stats_.num_host_free;
      live_.erase(it);
    }
    std::free(address);
  }

  bool contains(const void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto it = live_.upper_bound(address);
    if (it == live_.begin()) return false;
    --it;
    return std::less<>()(
        address, static_cast<const void*>(static_cast<const char*>(it->first) + it->second));
  }

  // A transfer that still reads the memory holds the storage itself (aten/copy); nothing is reused
  // behind its back.
  bool record_event(void*, void*, c10::Stream) override { return false; }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (at::Stat* s : all()) s->reset_accumulated();
    stats_.num_host_alloc = stats_.num_host_free = 0;
  }
  void reset_peak_stats() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (at::Stat* s : all()) s->reset_peak();
  }

 private:
  std::array<at::Stat*, 4> all() {
    return {&stats_.allocations, &stats_.active_requests, &stats_.allocated_bytes,
            &stats_.active_bytes};
  }

  std::mutex mutex_;
  std::map<const void*, size_t, std::less<>> live_;
  at::HostStats stats_;
};

PinnedAllocator& pinned() {
  static auto* leaked = new PinnedAllocator;  // pinned tensors may outlive statics
  return *leaked;
}

void release(void* address) { pinned().free(address); }

}  // namespace

at::HostAllocator& host_allocator() { return pinned(); }

bool is_pinned(const void* address) { return address && pinned().contains(address); }

REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &host_allocator())

}  // namespace torch_tpu::aten
