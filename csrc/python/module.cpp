// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include <c10/util/Exception.h>

#include "aten/errors.h"
#include "aten/registration.h"
#include "python/bindings.h"

// torch_tpu._C: what the thin Python over the C++ core calls. Loading it registers the backend with
// PyTorch; it creates no client and opens no plugin.
PYBIND11_MODULE(_C, m) {
  // What our layers throw becomes what an operator would raise: torch.OutOfMemoryError, IndexError,
  // RuntimeError, ...
  pybind11::register_local_exception_translator([](std::exception_ptr e) {
    if (!e) return;
    try {
      torch_tpu::aten::translate_errors([&] { std::rethrow_exception(e); });
    } catch (const c10::OutOfMemoryError& error) {
      // torch's extension hides its pointer to this type.
      PyErr_SetString(pybind11::module_::import("torch").attr("OutOfMemoryError").ptr(),
                      error.what_without_backtrace());
    } catch (const c10::NotImplementedError& error) {
      PyErr_SetString(PyExc_NotImplementedError, error.what_without_backtrace());
    } catch (const c10::IndexError& error) {
      PyErr_SetString(PyExc_IndexError, error.what_without_backtrace());
    } catch (const c10::TypeError& error) {
      PyErr_SetString(PyExc_TypeError, error.what_without_backtrace());
    } catch (const c10::ValueError& error) {
      PyErr_SetString(PyExc_ValueError, error.what_without_backtrace());
    } catch (const c10::Error& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
    }
  });
  torch_tpu::python::bind_device(m);
  torch_tpu::python::bind_stats(m);
  torch_tpu::python::bind_graph(m);
  torch_tpu::python::bind_plan(m);
  torch_tpu::aten::register_kernels();
}
