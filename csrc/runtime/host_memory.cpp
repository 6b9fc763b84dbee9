// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace torch_tpu::runtime {
namespace {

// The number in a one-line file of the kernel; "max" and a missing file are none.
std::optional<int64_t> number_in(const char* path) {
  std::ifstream file(path);
  int64_t n = 0;
  if (file >> n) return n;
  return std::nullopt;
}

int64_t machine_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    int64_t kib = 0;
    if (!(file >> kib)) break;
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(file, unit);
  }
  return static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace

HostMemory host_memory() {
  HostMemory m{machine_available(),
               static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)};
  struct Group {
    const char *limit, *used;
  };
  constexpr Group kGroups[] = {{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
                               {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
  for (const Group& group : kGroups) {
    const auto limit = number_in(group.limit);
    if (!limit || *limit >= m.total) continue;
    m.total = *limit;
    m.available =
        std::min(m.available, std::max<int64_t>(0, *limit - number_in(group.used).value_or(0)));
  }
  return m;
}

}  // namespace torch_tpu::runtime
