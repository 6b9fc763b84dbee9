// SPDX-License-Identifier: Apache-2.0
// Two libraries that Plugin::load must refuse: one without the entry point, and, with TT_FUTURE
// defined, one that speaks a major version that does not exist yet.
#include <pjrt_c_api.h>

#ifdef TT_FUTURE
extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static PJRT_Api api = {};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.major_version = 1;
  api.pjrt_api_version.minor_version = 5;
  return &api;
}
#else
extern "C" __attribute__((visibility("default"))) int nothing() { return PJRT_API_MAJOR; }
#endif
