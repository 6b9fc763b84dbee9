// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pjrt/client.h"

namespace torch_tpu::runtime {

// Serialized executables in a folder, one file each, named by a hash of all that decides the
// machine code: plugin build, platform, CPU features, compile options and program text. Safe under
// concurrent processes: files appear by rename, carry a checksum and are ignored when torn.
// Bounded: the least recently used files go when the folder exceeds its size.
class DiskCache {
 public:
  static const DiskCache& global();  // as runtime::Config says, when first used
  DiskCache(std::string folder, int64_t max_bytes);
  bool enabled() const { return !folder_.empty(); }
  std::string key(const pjrt::Client& client, const pjrt::CompileOptions& options,
                  const std::string& text) const;
  bool load(const std::string& key, std::string* bytes) const;  // false: none, torn or unreadable
  void store(const std::string& key,
             const std::string& bytes) const;  // failure to write is no error

 private:
  void trim() const;
  std::string folder_;
  int64_t max_bytes_;
};

// 128 bits of a string, as hex: FNV-like mixing in two lanes. Not cryptographic.
std::string hash_hex(const std::string& s);
// The CPU's feature flags, which XLA:CPU's machine code depends on.
const std::string& cpu_features();

}  // namespace torch_tpu::runtime
