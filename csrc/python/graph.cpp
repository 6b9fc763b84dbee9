// SPDX-License-Identifier: Apache-2.0
// Graphs from Python: torch.compile's FX graphs and traced decompositions become lower::Graph here.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include "aten/run.h"
#include "aten/settings.h"
#include "aten/storage.h"
#include "aten/unboxed.h"
#include "lower/graph.h"
#include "python/bindings.h"

namespace torch_tpu::python {
namespace {

namespace py = pybind11;
using lower::Arg;
using lower::Graph;
using lower::Number;

// A value of a graph under construction, as Python holds it.
struct GraphValue {
  Graph::Ref ref;
};

lower::Number number(const py::handle& h) {
  if (PyBool_Check(h.ptr())) return Number::of(h.cast<bool>());
  if (PyLong_Check(h.ptr())) return Number::of(h.cast<int64_t>());
  if (PyFloat_Check(h.ptr())) return Number::of(h.cast<double>());
  return Number::of(h.cast<std::complex<double>>());
}

bool is_number(const py::handle& h) {
  return PyBool_Check(h.ptr()) || PyLong_Check(h.ptr()) || PyFloat_Check(h.ptr()) ||
         PyComplex_Check(h.ptr());
}

Graph::Argument argument(const py::handle& h);

Graph::Argument list_argument(const py::sequence& s) {
  bool values = false, floats = false, bools = !s.empty(), numbers = true;
  for (const py::handle& e : s) {
    if (py::isinstance<GraphValue>(e)) values = true;
    if (!is_number(e)) numbers = false;
    if (!PyBool_Check(e.ptr())) bools = false;
    if (PyFloat_Check(e.ptr())) floats = true;
  }
  if (values || !numbers) {
    std::vector<Graph::Item> items;
    for (const py::handle& e : s) {
      if (e.is_none())
        items.emplace_back(Graph::None{});
      else if (py::isinstance<GraphValue>(e))
        items.emplace_back(e.cast<GraphValue&>().ref);
      else
        throw py::type_error("a list in a graph holds " +
                             py::str(py::type::of(e)).cast<std::string>());
    }
    return {items};
  }
  if (bools) {
    std::vector<bool> out;
    for (const py::handle& e : s) out.push_back(e.cast<bool>());
    return {Arg(out)};
  }
  if (floats) {
    std::vector<double> out;
    for (const py::handle& e : s) out.push_back(e.cast<double>());
    return {Arg(out)};
  }
  lower::Dims out;
  for (const py::handle& e : s) out.push_back(e.cast<int64_t>());
  return {Arg(out)};
}

Graph::Argument argument(const py::handle& h) {
  if (py::isinstance<GraphValue>(h)) return {h.cast<GraphValue&>().ref};
  if (is_number(h)) return {Arg(number(h))};
  if (THPDtype_Check(h.ptr()))
    return {Arg(aten::to_dtype(reinterpret_cast<THPDtype*>(h.ptr())->scalar_type))};
  if (py::isinstance<py::str>(h)) return {Arg(h.cast<std::string>())};
  if (py::isinstance<py::list>(h) || py::isinstance<py::tuple>(h))
    return list_argument(h.cast<py::sequence>());
  return {Arg(std::monostate{})};  // None, devices, layouts, memory formats, generators
}

// A Python exception comes through PyTorch's dispatcher as pybind11's or as torch's own.
bool is_meta_fault(const std::exception& e) {
  py::gil_scoped_acquire gil;
  const auto is_a = [&](PyObject* type) {
    if (auto* error = dynamic_cast<const py::error_already_set*>(&e)) return error->matches(type);
    auto* error = dynamic_cast<const python_error*>(&e);
    return error && error->type && PyErr_GivenExceptionMatches(error->type, type);
  };
  // CPU's `where` takes a mask of uint8.
  constexpr std::string_view refuses_mask = "expected predicate to be bool, got torch.uint8";
  return is_a(PyExc_AttributeError) || is_a(PyExc_ZeroDivisionError) ||
         std::string_view(e.what()).find(refuses_mask) != std::string_view::npos;
}

void retell(const std::exception& e) {
  py::gil_scoped_acquire gil;
  py::handle type, value;
  if (auto* error = dynamic_cast<const py::error_already_set*>(&e)) {
    type = error->type(), value = error->value();
  } else if (auto* error = dynamic_cast<const python_error*>(&e)) {
    type = error->type, value = error->value;
  }
  if (!type || !value) return;
  std::string text = py::str(value);
  const std::string prefix = "torch.Size(";
  size_t at = text.find(prefix);
  if (at == std::string::npos) return;
  for (; at != std::string::npos; at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
    const size_t end = text.find(')', at);
    if (end != std::string::npos) text.erase(end, 1);
  }
  PyErr_SetString(type.ptr(), text.c_str());
  throw py::error_already_set();
}

// Calls a graph's program with tensors.
class CompiledGraph {
 public:
  CompiledGraph(std::string name, std::shared_ptr<Graph> graph, std::vector<int> written,
                std::vector<at::Tensor> metas)
      : callable_(std::move(name), std::move(graph), std::move(written), std::move(metas)) {}

  // A list of tensors for a list or tuple of tensors.
  py::list operator()(const py::sequence& inputs) {
    const py::tuple held(inputs);  // for as long as they are borrowed
    aten::Borrowed arguments;
    for (const py::handle& x : held) {
      if (!THPVariable_Check(x.ptr())) throw py::type_error("a graph's inputs are tensors");
      arguments.add(THPVariable_Unpack(x.ptr()));
    }
    const auto run = [&] {
      py::gil_scoped_release no_gil;
      return callable_.run(arguments.data());
    };
    aten::Callable::Results results = run();
    py::list out(results.size());
    for (size_t i = 0; i < results.size(); ++i)
      PyList_SET_ITEM(out.ptr(), i, THPVariable_Wrap(std::move(results[i]).toTensor()));
    return out;
  }
  size_t num_programs() const { return callable_.num_programs(); }
  int64_t alias_bytes() const { return callable_.alias_bytes(); }

 private:
  aten::Callable callable_;
};

// A type's own call: pybind11's way through a bound `__call__` costs as much as all else that we do
// around a tiny program.
PyObject* call_graph(PyObject* self, PyObject* args, PyObject* kwargs) {
  HANDLE_TH_ERRORS
  PyObject* inputs = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if ((kwargs && PyDict_GET_SIZE(kwargs) > 0) || !inputs || !PySequence_Check(inputs))
    throw torch::TypeError("a compiled graph takes one sequence of tensors");
  auto& graph = py::cast<CompiledGraph&>(py::handle(self));
  return graph(py::reinterpret_borrow<py::sequence>(inputs)).release().ptr();
  END_HANDLE_TH_ERRORS
}

}  // namespace

void bind_graph(py::module_& m) {
  py::class_<GraphValue>(m, "GraphValue");
  py::class_<Graph, std::shared_ptr<Graph>>(m, "Graph")
      .def(py::init<>())
      .def("input",
           [](Graph& g) {
             g.set_num_inputs(g.num_inputs() + 1);
             return GraphValue{{-1, g.num_inputs() - 1}};
           })
      // Returns the node's number; `result(node, i)` are its values.
      .def(
          "call",
          [](Graph& g, const std::string& name, const py::sequence& args,
             const py::object& random_state) {
            std::vector<Graph::Argument> arguments;
            for (const py::handle& a : args) arguments.push_back(argument(a));
            Graph::Item state;
            if (!random_state.is_none()) state = random_state.cast<GraphValue&>().ref;
            return g.call(name, std::move(arguments), state);
          },
          py::arg("name"), py::arg("args"), py::arg("random_state") = py::none())
      .def("result", [](Graph&, int node, int output) { return GraphValue{{node, output}}; })
      .def("output",
           [](Graph& g, const py::object& v) {
             if (v.is_none())
               g.output(Graph::None{});
             else
               g.output(v.cast<GraphValue&>().ref);
           })
      .def("lowerings", [](const Graph& g) {
        std::vector<std::string> names;
        for (const auto& n : g.nodes()) names.push_back(n.entry->name);
        return names;
      });
  py::class_<CompiledGraph>(
      m, "CompiledGraph", py::dynamic_attr(),
      py::custom_type_setup([](PyHeapTypeObject* t) { t->ht_type.tp_call = call_graph; }))
      .def(py::init<std::string, std::shared_ptr<Graph>, std::vector<int>,
                    std::vector<at::Tensor>>(),
           py::arg("name"), py::arg("graph"), py::arg("written"), py::arg("metas"))
      .def("alias_bytes", &CompiledGraph::alias_bytes)
      .def_property_readonly("num_programs", &CompiledGraph::num_programs);

  m.def("has_lowering",
        [](const std::string& name) { return lower::Registry::global().find(name) != nullptr; });
  m.def("lowerings", [] {
    std::vector<std::string> names;
    for (const auto& [name, entry] : lower::Registry::global().entries()) names.push_back(name);
    return names;
  });
  aten::set_meta_errors({is_meta_fault, retell});
  // f(operator name, args) -> Graph or None
  m.def("set_decomposer", [](py::function f) {
    auto* kept =
        new py::function(std::move(f));  // leaked: kernels may run while the interpreter shuts down
    aten::set_decomposer(
        [kept](const std::string& name,
               const std::vector<c10::IValue>& args) -> std::shared_ptr<const Graph> {
          py::gil_scoped_acquire gil;
          py::list list;
          for (const c10::IValue& a : args) list.append(torch::jit::toPyObject(a));
          py::object result = (*kept)(name, list);
          if (result.is_none()) return nullptr;
          return result.cast<std::shared_ptr<Graph>>();
        });
  });
  m.def("set_host_fallback", [](bool on) { aten::settings().host_fallback = on; });
  m.def("set_portable_programs", [](bool on) { aten::settings().portable_programs = on; });
  m.def("host_fallback", [] { return aten::settings().host_fallback; });
  m.def("fallback_counts", &aten::fallback_counts);
  m.def("reset_fallback_counts", &aten::reset_fallback_counts);
  m.def("decomposed_operators", &aten::decomposed_operators);
  // 0 default (bf16 passes on a TPU), 1 high, 2 highest
  m.def("set_matmul_precision",
        [](int p) { aten::settings().matmul_precision = static_cast<hlo::Precision>(p); });
  m.def("matmul_precision", [] { return static_cast<int>(aten::settings().matmul_precision); });
}

}  // namespace torch_tpu::python
