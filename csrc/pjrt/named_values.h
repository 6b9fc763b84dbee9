// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pjrt_c_api.h>

#include <map>
#include <string>
#include <vector>

#include "pjrt/client.h"

namespace torch_tpu::pjrt {

// Options in the form the C API takes. Borrows the names and values of `options`, which must
// outlive it.
std::vector<PJRT_NamedValue> to_named_values(const Options& options);

// What a plugin says of itself, as text: numbers in decimal, lists joined by ".", so that a version
// reads "1.13.3".
std::map<std::string, std::string> to_text(const PJRT_NamedValue* values, size_t count);

}  // namespace torch_tpu::pjrt
