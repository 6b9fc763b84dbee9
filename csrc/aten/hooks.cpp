// SPDX-License-Identifier: Apache-2.0
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/util/Exception.h>

#include "aten/errors.h"
#include "aten/generator.h"
#include "aten/host_allocator.h"
#include "aten/storage.h"
#include "aten/stream.h"

namespace torch_tpu::aten {
namespace {

struct TpuHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  // Creates no client and never throws: asked at import and in the parents of forks.
  bool isAvailable() const override {
    try {
      return Device::configured_count() > 0;
    } catch (...) {
      return false;
    }
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return Device::initialized(); }
  void init() const override {
    translate_errors([] { Device::client(); });
  }

  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(Device::configured_count());
  }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex before = current_device();
    set_current_device(index);
    return before;
  }
  // A negative index changes nothing.
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? current_device() : exchangeDevice(index);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return make_generator(index);
  }

  at::Device getDeviceFromPtr(void* address) const override {
    const c10::DeviceIndex index = device_of_address(address);
    TORCH_CHECK(index >= 0, "the address ", address, " is not that of a tpu storage");
    return {c10::kPrivateUse1, index};
  }
  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &host_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    translate_errors([&] { resize_storage(storage, nbytes); });
  }
};

const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new TpuHooks);  // leaked, as core expects
  return true;
}();

}  // namespace
}  // namespace torch_tpu::aten
