// SPDX-License-Identifier: Apache-2.0
#include "aten/error.h"

#include <new>

#include <c10/util/Exception.h>

#include "pjrt/error.h"
#include "runtime/device.h"

namespace torch_tpu::aten {

void throw_translated() {
  try {
    throw;
  } catch (const c10::Error&) {
    throw;
  } catch (const pjrt::Error& e) {
    TORCH_CHECK_WITH(OutOfMemoryError, e.code() != pjrt::Code::resource_exhausted, "tpu out of memory. ", e.what());
    TORCH_CHECK_NOT_IMPLEMENTED(e.code() != pjrt::Code::unimplemented, e.what());
    TORCH_CHECK(false, e.what());
  } catch (const runtime::CheckFailed& e) {
    TORCH_CHECK_INDEX(false, e.what());
  } catch (const std::bad_alloc&) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "tpu out of memory: the host could not allocate");
  } catch (const std::out_of_range& e) {
    TORCH_CHECK(false, e.what());
  }
}

}  // namespace torch_tpu::aten
