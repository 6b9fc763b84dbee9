// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pjrt_c_api.h>

#include <map>
#include <string>

#include "pjrt/client.h"

namespace torch_tpu::pjrt {

// A compiled program as an artefact, with or without a device to run on. Owns a PJRT_Executable.
// Shared by LoadedExecutable, which asks its own for one, and Topology, which compiles to one.
class Executable {
 public:
  Executable(const PJRT_Api* api, PJRT_Executable* executable)
      : api_(api), executable_(executable) {}
  // The artefact behind a loaded program.
  Executable(const PJRT_Api* api, PJRT_LoadedExecutable* loaded);
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable();

  size_t num_outputs() const;
  std::string serialize() const;
  MemoryStats memory_stats() const;
  std::map<std::string, double> cost_analysis() const;

 private:
  const PJRT_Api* api_;
  PJRT_Executable* executable_;
};

}  // namespace torch_tpu::pjrt
