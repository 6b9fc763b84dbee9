// SPDX-License-Identifier: Apache-2.0
// Ahead-of-time compiles for a named topology: no client, no hardware.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "pjrt/client.h"
#include "pjrt/discovery.h"
#include "python/bindings.h"

namespace torch_tpu::python {
namespace {

namespace py = pybind11;

// One topology of one plugin, to compile programs for.
class Target {
 public:
  Target(const std::string& plugin, const std::string& topology)
      : topology_(load(plugin), topology) {}

  py::dict compile(const std::string& text) const {
    pjrt::Topology::Compiled c;
    {
      py::gil_scoped_release no_gil;
      c = topology_.compile(text, pjrt::CompileOptions{});
    }
    py::dict memory;
    memory["arguments"] = c.memory.argument_bytes;
    memory["outputs"] = c.memory.output_bytes;
    memory["aliases"] = c.memory.alias_bytes;
    memory["temporaries"] = c.memory.temp_bytes;
    memory["code"] = c.memory.code_bytes;
    memory["peak"] = c.memory.peak_bytes;
    py::dict out;
    out["memory"] = memory;
    out["cost"] = c.cost;
    return out;
  }
  std::string kind() const { return topology_.device_kind(); }

 private:
  static const pjrt::Plugin& load(const std::string& path) {
    pjrt::set_defaults(pjrt::environment_defaults("tpu", {}));
    return pjrt::Plugin::load(path);
  }
  pjrt::Topology topology_;
};

}  // namespace

void bind_plan(py::module_& m) {
  py::class_<Target>(m, "CompileTarget")
      .def(py::init<std::string, std::string>(), py::arg("plugin"), py::arg("topology"))
      .def("compile", &Target::compile)
      .def_property_readonly("kind", &Target::kind);
}

}  // namespace torch_tpu::python
