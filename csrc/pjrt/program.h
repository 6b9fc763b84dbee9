// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pjrt/args.h"

namespace torch_tpu::pjrt {

// StableHLO text or bytecode in the form that the compile calls take. Borrows `stablehlo`.
inline Args<PJRT_Program> mlir_program(const std::string& stablehlo) {
  static constexpr std::string_view kFormat = "mlir";
  Args<PJRT_Program> program;
  program->code = const_cast<char*>(stablehlo.data());  // "in/out depending on usage": in, here
  program->code_size = stablehlo.size();
  program->format = kFormat.data();
  program->format_size = kFormat.size();
  return program;
}

}  // namespace torch_tpu::pjrt
