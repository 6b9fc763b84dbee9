// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

// One function per file of this folder: the subject's part of torch_tpu._C.
namespace torch_tpu::python {

void bind_device(pybind11::module_& m);
void bind_graph(pybind11::module_& m);
void bind_plan(pybind11::module_& m);
void bind_stats(pybind11::module_& m);

}  // namespace torch_tpu::python
