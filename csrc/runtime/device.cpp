// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <pthread.h>

#include <cstring>
#include <optional>
#include <stdexcept>

#include "pjrt/discovery.h"

namespace torch_tpu::runtime {
namespace {

std::mutex g_mutex;
Config g_config;
std::atomic<bool> g_initialized{false};
std::atomic<bool> g_forked{false};
pjrt::Client* g_client = nullptr;
std::vector<Device*>* g_devices = nullptr;

// The plugin's threads do not exist in a forked child: what waits for one would wait for ever. So
// the child forgets the client, and the next use reaches the check in Device::client.
void forget_client_in_child() {
  g_forked.store(true, std::memory_order_release);
  g_initialized.store(false, std::memory_order_release);
}

// `message` with "{0}" replaced by the first number, "{1}" by the second.
std::string with_numbers(std::string message, const std::vector<int64_t>& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string mark = "{" + std::to_string(i) + "}";
    const std::string number = std::to_string(numbers[i]);
    for (size_t at = 0; (at = message.find(mark, at)) != std::string::npos; at += number.size())
      message.replace(at, mark.size(), number);
  }
  return message;
}

}  // namespace

void Device::configure(Config config) {
  std::lock_guard lock(g_mutex);
  if (g_initialized)
    throw std::logic_error("the device is in use: its configuration can no longer change");
  g_config = std::move(config);
}

Config& Device::config() { return g_config; }
bool Device::forked() { return g_forked.load(std::memory_order_acquire); }
bool Device::initialized() { return g_initialized.load(std::memory_order_acquire); }
int Device::configured_count() { return initialized() ? count() : g_config.num_devices; }

int Device::count() {
  client();
  return static_cast<int>(g_devices->size());
}

pjrt::Client& Device::client() {
  if (g_initialized.load(std::memory_order_acquire)) return *g_client;
  if (forked()) {
    throw std::runtime_error(
        "Cannot re-initialize tpu in forked subprocess. To use tpu with multiprocessing, you must "
        "use the 'spawn' start method");
  }
  std::lock_guard lock(g_mutex);
  if (!g_initialized) {
    if (g_config.plugin_path.empty())
      throw std::runtime_error(
          "no PJRT plugin was found: pip install xla-cpu-pjrt, or name one in TORCH_TPU_PLATFORM");
    pjrt::set_defaults(pjrt::environment_defaults(g_config.platform, pjrt::find_tpu()));
    const pjrt::Plugin& plugin = pjrt::Plugin::load(g_config.plugin_path);
    const pjrt::Options options =
        pjrt::client_options(g_config.platform, g_config.num_devices, g_config.torch_version);
    g_client = pjrt::Client::create(plugin, options).release();
    g_devices = new std::vector<Device*>();
    for (PJRT_Device* d : g_client->devices())
      g_devices->push_back(new Device(static_cast<int>(g_devices->size()), d));
    pthread_atfork(nullptr, nullptr, forget_client_in_child);
    g_initialized.store(true, std::memory_order_release);
  }
  return *g_client;
}

Device& Device::at(int index) {
  const int n = count();
  if (index < 0 || index >= n) {
    throw std::out_of_range("tpu:" + std::to_string(index) + " does not exist: this process has " +
                            std::to_string(n) + " tpu device" + (n == 1 ? "" : "s"));
  }
  return *(*g_devices)[static_cast<size_t>(index)];
}

void Device::link(DeviceArray& a) {
  std::lock_guard lock(mutex_);
  a.next_ = head_;
  if (head_) head_->previous_ = &a;
  head_ = &a;
  if (a.buffer_) add_to_account(a.nbytes_);
}

void Device::set_buffer(DeviceArray& splat, pjrt::Buffer buffer) {
  std::lock_guard lock(mutex_);
  splat.buffer_ = std::move(buffer);
  add_to_account(splat.nbytes_);
}

void Device::add_to_account(int64_t nbytes) {
  memory_.allocated += nbytes;
  memory_.total_allocated += nbytes;
  memory_.count++;
  memory_.total_count++;
  if (memory_.allocated > memory_.peak) memory_.peak = memory_.allocated;
  if (memory_.count > memory_.peak_count) memory_.peak_count = memory_.count;
}

void Device::unlink(DeviceArray& a) {
  std::lock_guard lock(mutex_);
  if (a.previous_)
    a.previous_->next_ = a.next_;
  else
    head_ = a.next_;
  if (a.next_) a.next_->previous_ = a.previous_;
  if (!a.buffer_) return;
  memory_.allocated -= a.nbytes_;
  memory_.total_freed += a.nbytes_;
  memory_.count--;
}

MemoryStats Device::memory() const {
  std::lock_guard lock(mutex_);
  return memory_;
}

void Device::reset_peak() {
  std::lock_guard lock(mutex_);
  memory_.peak = memory_.allocated;
  memory_.peak_count = memory_.count;
}

void Device::reset_accumulated() {
  std::lock_guard lock(mutex_);
  memory_.total_allocated = memory_.total_freed = memory_.total_count = 0;
}

int64_t Device::live_arrays() const {
  std::lock_guard lock(mutex_);
  return memory_.count;
}

std::vector<pjrt::Event> Device::pending() {
  std::vector<pjrt::Event> events;
  std::lock_guard lock(mutex_);
  for (DeviceArray* a = head_; a; a = a->next_) {
    if (a->known_ready_ || !a->buffer_) continue;
    pjrt::Event ready = a->buffer_.ready();
    a->known_ready_ = ready.is_ready();
    if (!a->known_ready_) events.push_back(std::move(ready));
  }
  return events;
}

Array Device::newest() {
  std::lock_guard lock(mutex_);
  for (DeviceArray* a = head_; a; a = a->next_) {
    if (a->buffer_ && a->try_retain()) return Array::adopt(a);
  }
  return {};
}

void Device::synchronize() {
  std::vector<Array> live;
  {
    std::lock_guard lock(mutex_);
    for (DeviceArray* a = head_; a; a = a->next_) {
      if (a->buffer_ && a->try_retain()) live.push_back(Array::adopt(a));
    }
  }
  for (Array& a : live) {
    if (a->buffer_) a->wait();
  }
  raise_failed_checks();
}

void Device::add_check(Array found, const std::string* message) {
  std::lock_guard lock(mutex_);
  checks_.emplace_back(std::move(found), message);
  has_checks_.store(true, std::memory_order_relaxed);
}

void Device::raise_failed_checks() {
  if (!has_checks()) return;
  std::vector<std::pair<Array, const std::string*>> checks;
  {
    std::lock_guard lock(mutex_);
    checks.swap(checks_);
    has_checks_.store(false, std::memory_order_relaxed);
  }
  std::optional<std::string> failed;
  for (auto& [found, message] : checks) {
    const Type& type = found->type();
    if (type.dtype == DType::pred) {
      unsigned char violated = 0;
      found->pjrt_buffer().to_host(&violated, 1).wait();
      if (violated && !failed) failed = *message;
      continue;
    }
    std::vector<int64_t> numbers(static_cast<size_t>(type.numel()));
    found->pjrt_buffer().to_host(numbers.data(), type.nbytes()).wait();
    if (numbers[0] != 0 && !failed) failed = with_numbers(*message, numbers);
  }
  if (failed) throw CheckFailed(*failed);
}

Array Device::from_host(const void* data, const Type& type) {
  return Array(new DeviceArray(*this, intern(type), client().from_host(data, type, pjrt_device_)));
}

Array Device::scalar(const ScalarValue& v) {
  uint64_t a, b;
  std::memcpy(&a, v.bits, 8);
  std::memcpy(&b, v.bits + 8, 8);
  const uint64_t h = (a ^ (b * 3) ^ (static_cast<uint64_t>(v.dtype) << 56)) * 0x9e3779b97f4a7c15ull;
  ScalarSlot& slot = scalars_[h >> 54];
  std::lock_guard lock(scalar_mutex_);
  if (!slot.value || !(slot.key == v)) {
    slot.value = from_host(v.bits, Type{v.dtype, {}});
    slot.key = v;
  }
  return slot.value;
}

}  // namespace torch_tpu::runtime
