// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/array.h"

namespace torch_tpu::runtime {

// Bytes and counts of live buffers, by our own account: plugins differ in what they report. A splat
// has none.
struct MemoryStats {
  int64_t allocated = 0, peak = 0, total_allocated = 0, total_freed = 0;
  int64_t count = 0, peak_count = 0, total_count = 0;
};

// What the process is configured to run on. Set once, before the first use of a device.
struct Config {
  std::string plugin_path;       // shared library with GetPjrtApi
  std::string platform = "cpu";  // "cpu", "tpu" or "other": decides client options
  int num_devices = 1;           // virtual devices, XLA:CPU only
  std::string cache_dir;         // executables on disk; empty: none
  int64_t cache_max_bytes = int64_t{4} << 30;
  // Programs kept in memory. An XLA:CPU program takes about half a MiB and three memory mappings,
  // of which Linux allows a process 65,530; past the bound all are forgotten, and those still
  // wanted come back from disk in a millisecond.
  size_t max_programs = 6000;
  bool blocking = false;      // debug: every launch waits, failures name their operator
  std::string torch_version;  // told to libtpu
};

// One device: its memory account, its live arrays, the checks its programs left behind. Leaked at
// exit, as the client is.
class Device {
 public:
  static void configure(Config config);  // throws std::logic_error once a device is in use
  static Config& config();
  static bool initialized();  // a client exists
  static bool forked();       // one existed in the parent of this process: it cannot be used here
  static int count();         // creates the client; 0 where that fails
  static int configured_count();  // without creating the client: for fork-safe queries
  static Device& at(int index);   // throws std::out_of_range with the number of devices

  static pjrt::Client& client();

  int index() const { return index_; }
  PJRT_Device* pjrt_device() const { return pjrt_device_; }

  // Waits for everything launched so far. Throws the first failed check (CheckFailed) or
  // pjrt::Error.
  void synchronize();
  // Throws CheckFailed if a finished program's check was violated; waits for those in flight.
  void raise_failed_checks();
  void add_check(Array found, const std::string* message);  // as hlo::Builder::check
  bool has_checks() const { return has_checks_.load(std::memory_order_relaxed); }

  MemoryStats memory() const;
  void reset_peak();
  void reset_accumulated();
  int64_t live_arrays() const;
  // What is still being computed of the live arrays: all of these ready ends the work so far, as
  // far as anybody can see. One newest array does not tell it: a host transfer is ready while a
  // program launched before it still runs.
  std::vector<pjrt::Event> pending();
  // The newest array, whose readiness ends the work so far on this in-order device; null if it is
  // gone (then all is done that anybody can see).
  Array newest();

  Array from_host(const void* data, const Type& type);
  // The rank-0 array of this number; kept, so the same number costs nothing the next time.
  Array scalar(const ScalarValue& v);

 private:
  friend class DeviceArray;
  Device(int index, PJRT_Device* d) : index_(index), pjrt_device_(d) {}
  void link(DeviceArray& a);
  void unlink(DeviceArray& a);
  void set_buffer(DeviceArray& splat, pjrt::Buffer buffer);
  void add_to_account(int64_t nbytes);  // with the mutex held

  int index_;
  PJRT_Device* pjrt_device_;
  mutable std::mutex mutex_;  // guards the list, the account and the checks
  DeviceArray* head_ = nullptr;
  MemoryStats memory_;
  std::vector<std::pair<Array, const std::string*>> checks_;
  std::atomic<bool> has_checks_{false};
  struct ScalarSlot {
    ScalarValue key;
    Array value;
  };
  std::mutex scalar_mutex_;
  std::array<ScalarSlot, 1024> scalars_;
};

// A program's check (an index out of range, say) found bad data. Becomes the Python exception of
// its kind.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace torch_tpu::runtime
