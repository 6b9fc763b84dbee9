// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ops.h"

namespace torch_tpu::aten {

// Process-wide settings that enter every program's key.
struct Settings {
  hlo::Precision matmul_precision = hlo::Precision::highest;
  bool host_fallback = false;
  // Programs in the form for every compiler, also where the device is XLA:CPU: to compile for TPUs.
  bool portable_programs = false;
};
Settings& settings();

}  // namespace torch_tpu::aten
