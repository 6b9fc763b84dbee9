// SPDX-License-Identifier: Apache-2.0
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include "aten/errors.h"
#include "aten/event.h"
#include "aten/storage.h"
#include "aten/stream.h"

namespace torch_tpu::aten {
namespace {

thread_local c10::DeviceIndex current_index = 0;

Event* event_of(void* event) { return static_cast<Event*>(event); }

// What torch.device("tpu") is to PyTorch: the current device and stream of each thread, events,
// waiting.
struct TpuGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kPrivateUse1; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {c10::kPrivateUse1, current_index}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.is_privateuseone(), "Expected a tpu device, got ", device);
    if (device.has_index()) set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current_index = device.index();
  }
  // Does not create the client: PyTorch asks in fork parents and at import.
  c10::DeviceIndex deviceCount() const noexcept override {
    try {
      return static_cast<c10::DeviceIndex>(Device::configured_count());
    } catch (...) {
      return 0;
    }
  }

  c10::Stream getStream(c10::Device device) const override {
    return current_stream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return default_stream(device.index());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return stream_from_pool(device.index(), high_priority);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return stream_from_pool(device.index(), priority < 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  bool queryStream(const c10::Stream& stream) const override { return stream_is_idle(stream); }
  void synchronizeStream(const c10::Stream& stream) const override { synchronize_stream(stream); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex index,
              const c10::EventFlag) const override {
    TORCH_CHECK(index == -1 || index == stream.device_index(), "Event device index ",
                static_cast<int>(index), " does not match recording stream's device index ",
                static_cast<int>(stream.device_index()), ".");
    translate_errors([&] {
      if (!*event) *event = new Event;
      event_of(*event)->record(Device::at(normalize(stream.device_index())));
    });
  }
  // The device is one queue: what the event marks was launched earlier, so the stream is after it
  // already. An event of another device is waited for here, on the host.
  void block(void* event, const c10::Stream&) const override {
    if (event && Device::count() > 1) translate_errors([&] { event_of(event)->wait(); });
  }
  bool queryEvent(void* event) const override { return !event || event_of(event)->query(); }
  void synchronizeEvent(void* event) const override {
    if (event) translate_errors([&] { event_of(event)->wait(); });
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete event_of(event);
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start && end, "Both events must be recorded before calculating elapsed time.");
    return event_of(start)->elapsed_ms(*event_of(end));
  }

  void synchronizeDevice(const c10::DeviceIndex index) const override {
    synchronize_stream(default_stream(index));
  }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    auto& has = capability.capability_data.supported_scalar_types;
    has.has_Bool = has.has_Byte = has.has_Char = has.has_Short = has.has_Int = has.has_Long = 1;
    has.has_UInt16 = has.has_UInt32 = has.has_UInt64 = 1;
    has.has_Half = has.has_BFloat16 = has.has_Float = has.has_Double = 1;
    has.has_ComplexFloat = has.has_ComplexDouble = 1;
    has.has_Float8_e5m2 = has.has_Float8_e4m3fn = has.has_Float8_e5m2fnuz =
        has.has_Float8_e4m3fnuz = 1;
    has.has_Float8_e8m0fnu = 1;
    return capability;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, TpuGuard);

}  // namespace

c10::DeviceIndex current_device() { return current_index; }

void set_current_device(c10::DeviceIndex index) { current_index = normalize(index); }

}  // namespace torch_tpu::aten
