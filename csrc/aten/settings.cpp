// SPDX-License-Identifier: Apache-2.0
#include "aten/settings.h"

namespace torch_tpu::aten {

Settings& settings() {
  static Settings s;
  return s;
}

}  // namespace torch_tpu::aten
