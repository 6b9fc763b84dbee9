// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace torch_tpu::pjrt {

// 16 hex digits that tell one build of a plugin from another wherever it lies: a hash of the file's
// size, its first and last 64 KiB (headers, symbols, section table), 64 samples of 4 KiB between
// them, and what the plugin says of itself. Reading all of a library of 500 MB would take 0.2 s a
// process; a rebuild moves code, which headers and samples show. Two of three known plugins carry
// no build id. Throws Error if the file cannot be read.
std::string fingerprint(const std::string& path,
                        const std::map<std::string, std::string>& attributes);

}  // namespace torch_tpu::pjrt
