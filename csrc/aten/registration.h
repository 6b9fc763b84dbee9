// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace torch_tpu::aten {

// Registers the boxed kernels with PyTorch's dispatcher. Once a process, when the extension is
// loaded.
void register_kernels();

}  // namespace torch_tpu::aten
