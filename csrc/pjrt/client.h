// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hlo/type.h"
#include "pjrt/error.h"

struct PJRT_Api;
struct PJRT_Buffer;
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_Event;
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
struct PJRT_TopologyDescription;

// RAII over the PJRT C API. Every argument struct is zeroed and declared longer than our header's
// (pjrt/args.h), which old and new plugins accept. Errors become pjrt::Error; destructors never
// throw.
namespace torch_tpu::pjrt {

using hlo::Dims;
using hlo::DType;
using hlo::Type;

using Option = std::variant<std::string, bool, int64_t, std::vector<int64_t>, float>;
using Options = std::map<std::string, Option>;

// A loaded plugin library. Never unloaded (XLA leaves threads and static state). One per path and
// process.
class Plugin {
 public:
  // dlopens `path`, checks the major version, initialises the plugin once. Throws Error: missing
  // file, no GetPjrtApi, incompatible version (the text names both versions and what to do).
  static const Plugin& load(const std::string& path);

  const PJRT_Api* api() const { return api_; }
  const std::string& path() const { return path_; }
  int api_minor() const;
  // "xla_version", "stablehlo_current_version", ... as text
  const std::map<std::string, std::string>& attributes() const { return attributes_; }
  // Changes whenever the library's file does: part of the key of cached executables.
  const std::string& fingerprint() const { return fingerprint_; }
  const void* extension(int type) const;  // null if the plugin has none of this type

 private:
  Plugin() = default;
  std::string path_, fingerprint_;
  const PJRT_Api* api_ = nullptr;
  std::map<std::string, std::string> attributes_;
};

// A point in the device's work that can be waited for. Owns one PJRT_Event; move-only. Destruction
// does not wait. A default-constructed one lies in the past.
class Event {
 public:
  Event() = default;
  Event(const PJRT_Api* api, PJRT_Event* event) : api_(api), event_(event) {}
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();
  explicit operator bool() const { return event_ != nullptr; }
  bool is_ready() const;
  // Blocks until the work before it is done. Throws Error with that work's own message. Any thread
  // may wait.
  void wait() const;
  // Calls `done` once the work before it is done or has failed: on a thread of the plugin, or here
  // and now. It must neither throw nor block. Outlives this object.
  void on_ready(std::function<void()> done) const;

 private:
  const PJRT_Api* api_ = nullptr;
  PJRT_Event* event_ = nullptr;
};

class Client;

// One array in device memory, ready or still being computed. Owns a PJRT_Buffer; move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const PJRT_Api* api, PJRT_Buffer* buffer) : api_(api), buffer_(buffer) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  explicit operator bool() const { return buffer_ != nullptr; }
  PJRT_Buffer* get() const { return buffer_; }
  PJRT_Buffer* release();            // gives up ownership
  Type type() const;                 // asks the plugin; slow, for tests
  int64_t on_device_nbytes() const;  // what the device really holds, padding included
  // Copies to `destination` (dense, row-major, `nbytes`); the event says when it is there.
  Event to_host(void* destination, int64_t nbytes) const;
  Event ready() const;
  Buffer copy_to_device(PJRT_Device* device) const;

 private:
  bool is_row_major() const;
  bool copied_at_once(void* destination, int64_t nbytes, size_t rank) const;
  const PJRT_Api* api_ = nullptr;
  PJRT_Buffer* buffer_ = nullptr;
};

struct MemoryStats {
  int64_t argument_bytes, output_bytes, alias_bytes, temp_bytes, code_bytes, peak_bytes;
};

struct CompileOptions {
  int num_replicas = 1, num_partitions = 1;
  // Not tied to a device: `execute` picks it. Only for one device and without device_ids;
  // otherwise ignored.
  bool portable = true;
  // The assignment, partitions of replica 0 first; empty: the plugin's default.
  std::vector<int64_t> device_ids = {};
  Options overrides = {};         // XLA debug options (env_option_overrides)
  std::string serialize() const;  // CompileOptionsProto, encoded by hand
};

// A compiled program that launches. Owns a PJRT_LoadedExecutable; move-only.
class LoadedExecutable {
 public:
  LoadedExecutable() = default;
  LoadedExecutable(const PJRT_Api* api, PJRT_LoadedExecutable* executable);
  LoadedExecutable(LoadedExecutable&& other) noexcept;
  LoadedExecutable& operator=(LoadedExecutable&& other) noexcept;
  ~LoadedExecutable();
  explicit operator bool() const { return executable_ != nullptr; }

  // Launches on `device` and returns at once. `inputs` are borrowed, except those donated: an input
  // that the program aliases to an output is consumed (its handle must still be destroyed) unless
  // listed in `non_donatable`. `outputs` has room for num_outputs() handles, owned by the caller
  // afterwards. A program for several devices is launched once on each, from different threads,
  // with one `launch_id` for all that meet in its collectives (new each time, not 0). The hot path:
  // allocates nothing. `inputs` is not const because the C API's matrix is not.
  void execute(PJRT_Device* device, PJRT_Buffer** inputs, size_t num_inputs,
               const int64_t* non_donatable, size_t num_non_donatable, PJRT_Buffer** outputs,
               int launch_id = 0) const;
  size_t num_outputs() const { return num_outputs_; }
  std::string serialize() const;
  MemoryStats memory_stats() const;
  std::map<std::string, double> cost_analysis() const;  // empty where the plugin has none

 private:
  const PJRT_Api* api_ = nullptr;
  PJRT_LoadedExecutable* executable_ = nullptr;
  size_t num_outputs_ = 0;
};

// A process's hold on a platform's devices. One per process; leaked at exit like its plugin.
class Client {
 public:
  static std::unique_ptr<Client> create(const Plugin& plugin, const Options& options);
  ~Client();
  const Plugin& plugin() const { return plugin_; }
  std::string platform_name() const;  // "cpu", "tpu"
  std::string platform_version() const;
  const std::vector<PJRT_Device*>& devices() const { return devices_; }  // addressable, by local id
  std::string device_kind(PJRT_Device* device) const;
  // bytes_in_use, bytes_limit, peak_bytes_in_use; nullopt where the plugin does not say
  std::optional<std::map<std::string, int64_t>> device_memory_stats(PJRT_Device* device) const;

  // How a program for one device is compiled: portable. On XLA:CPU so that NaNs are kept, and tied
  // to the device where there is one.
  CompileOptions options_for(std::string_view stablehlo) const;
  LoadedExecutable compile(const std::string& stablehlo, const CompileOptions& options) const;
  // Throws Error if the bytes are not this plugin's.
  LoadedExecutable deserialize(const std::string& bytes, const CompileOptions& options) const;

  // Copies during the call: `data` may be freed on return.
  Buffer from_host(const void* data, const Type& type, PJRT_Device* device) const;
  // Strides in bytes, any sign; `data` may be freed on return.
  Buffer from_host_strided(const void* data, const Type& type, const Dims& byte_strides,
                           PJRT_Device* device) const;
  // Returns before `data` has been read; it must stay unchanged until `*done`.
  Buffer from_host_async(const void* data, const Type& type, PJRT_Device* device,
                         Event* done) const;

 private:
  Client(const Plugin& plugin, PJRT_Client* client);
  const Plugin& plugin_;
  PJRT_Client* client_;
  std::vector<PJRT_Device*> devices_;
};

// A named set of devices that need not exist ("v6e:1x1"), to compile for ahead of time. Owns its
// description.
class Topology {
 public:
  // libtpu's names: "v5e:1x1", "v6e:2x2", "tpu7x:1x1x1" (one chip, two devices). Throws Error if it
  // knows none of this.
  Topology(const Plugin& plugin, const std::string& name, const Options& options = {});
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  int num_devices() const;
  std::vector<int64_t> device_ids() const;
  std::string device_kind() const;

  struct Compiled {
    MemoryStats memory;
    std::map<std::string, double> cost;  // "flops", "bytes accessed", "optimal_seconds", ...
    std::string
        executable;  // serialized; loads on a machine of this topology with this plugin build
  };
  // Uses no client and no hardware. Throws Error with the compiler's message. A program for several
  // devices takes the first of the topology unless `options.device_ids` names others.
  Compiled compile(const std::string& stablehlo, CompileOptions options,
                   bool serialize = false) const;

 private:
  const Plugin& plugin_;
  PJRT_TopologyDescription* topology_;
};

// hlo::DType <-> PJRT_Buffer_Type
int to_pjrt(DType t);
DType from_pjrt(int t);

}  // namespace torch_tpu::pjrt
