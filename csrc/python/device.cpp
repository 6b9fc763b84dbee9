// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <torch/csrc/Generator.h>

#include "aten/errors.h"
#include "aten/generator.h"
#include "aten/storage.h"
#include "aten/stream.h"
#include "pjrt/discovery.h"
#include "python/bindings.h"
#include "runtime/device.h"
#include "runtime/host_memory.h"

namespace py = pybind11;

namespace torch_tpu::python {
namespace {

using runtime::Config;
using runtime::Device;

void configure(std::string plugin_path, std::string platform, int num_devices,
               std::string cache_dir, int64_t cache_max_bytes, size_t max_programs, bool blocking,
               std::string torch_version) {
  Config c;
  c.plugin_path = std::move(plugin_path);
  c.platform = std::move(platform);
  c.num_devices = num_devices;
  c.cache_dir = std::move(cache_dir);
  c.cache_max_bytes = cache_max_bytes;
  c.max_programs = max_programs;
  c.blocking = blocking;
  c.torch_version = std::move(torch_version);
  Device::configure(std::move(c));
}

// What TORCH_TPU_PLATFORM's value means on this machine with these plugins installed. RuntimeError:
// nothing fits.
py::dict find_plugin(const std::string& platform, std::string libtpu,
                     std::vector<std::string> cpu) {
  const pjrt::TpuHardware tpu = pjrt::find_tpu();
  const pjrt::Choice choice = pjrt::find_plugin(platform, {std::move(libtpu), std::move(cpu)}, tpu);
  const bool two_a_chip = tpu.generation == "v3" || tpu.generation == "v7x";
  py::dict d;
  d["path"] = choice.path;
  d["platform"] = choice.platform;
  d["guessed"] = choice.guessed;
  d["num_devices"] = tpu.num_chips * (two_a_chip ? 2 : 1);
  return d;
}

// What the device really is, by the plugin's own words. Creates the client.
py::dict properties(int index) {
  Device& device = Device::at(aten::normalize(index));
  const pjrt::Client& client = Device::client();
  const auto stats = client.device_memory_stats(device.pjrt_device());
  py::dict d;
  d["name"] = client.device_kind(device.pjrt_device());
  d["platform"] = client.platform_name();
  d["platform_version"] = client.platform_version();
  d["plugin_path"] = client.plugin().path();
  d["plugin_attributes"] = client.plugin().attributes();
  d["pjrt_api_minor"] = client.plugin().api_minor();
  d["total_memory"] = stats && stats->count("bytes_limit") ? stats->at("bytes_limit")
                                                           : runtime::host_memory().total;
  d["has_own_memory"] = stats && stats->count("bytes_limit");
  return d;
}

}  // namespace

void bind_device(py::module_& m) {
  m.def("configure", &configure, py::arg("plugin_path"), py::arg("platform"),
        py::arg("num_devices"), py::arg("cache_dir"), py::arg("cache_max_bytes"),
        py::arg("max_programs"), py::arg("blocking"), py::arg("torch_version"));
  m.def("find_plugin", &find_plugin);
  m.def("init", [] { Device::client(); }, py::call_guard<py::gil_scoped_release>());
  m.def("is_initialized", &Device::initialized);
  m.def("is_forked", &Device::forked);
  m.def("device_count", &Device::configured_count);
  m.def("current_device", [] { return static_cast<int>(aten::current_device()); });
  m.def("set_device", [](int index) { aten::set_current_device(aten::normalize(index)); });
  m.def("check_device", [](int index) { aten::normalize(index); });
  m.def(
      "synchronize",
      [](int index) { aten::synchronize_stream(aten::default_stream(aten::normalize(index))); },
      py::call_guard<py::gil_scoped_release>());
  m.def("properties", &properties);
  m.def("live_arrays", [](int index) { return Device::at(index).live_arrays(); });
  m.def("blocking", [] { return Device::config().blocking; });
  m.def("set_blocking", [](bool on) { Device::config().blocking = on; });
  m.def("default_generator", [](int index) {
    return py::reinterpret_steal<py::object>(
        THPGenerator_Wrap(aten::default_generator(aten::normalize(index))));
  });
}

}  // namespace torch_tpu::python
