// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "python/bindings.h"
#include "runtime/device.h"
#include "runtime/program.h"

namespace py = pybind11;

namespace torch_tpu::python {
namespace {

using runtime::CompileRecord;
using runtime::CompileStats;
using runtime::ProgramCache;

py::dict compile_stats() {
  const CompileStats s = ProgramCache::global().stats();
  py::dict d;
  d["compiles"] = s.compiles;
  d["memory_hits"] = s.memory_hits;
  d["disk_hits"] = s.disk_hits;
  d["compile_seconds"] = s.compile_seconds;
  d["disk_seconds"] = s.disk_seconds;
  return d;
}

// (operator or graph, seconds, "compiled" or "disk")
py::list compile_records(size_t since) {
  py::list list;
  for (const CompileRecord& r : ProgramCache::global().records(since))
    list.append(py::make_tuple(r.name, r.seconds,
                               r.source == CompileRecord::Source::disk ? "disk" : "compiled"));
  return list;
}

}  // namespace

void bind_stats(py::module_& m) {
  m.def("compile_stats", &compile_stats);
  m.def("compile_records", &compile_records, py::arg("since") = 0);
  m.def("reset_compile_stats", [] { ProgramCache::global().reset_stats(); });
  m.def("keep_program_texts", [](bool on) { ProgramCache::global().keep_texts(on); });
  m.def("program_texts", [] { return ProgramCache::global().texts(); });
  m.def("max_programs", [] { return runtime::Device::config().max_programs; });
  m.def("set_max_programs", [](size_t n) { runtime::Device::config().max_programs = n; });
  m.def("clear_programs", [] { ProgramCache::global().clear(); });
}

}  // namespace torch_tpu::python
