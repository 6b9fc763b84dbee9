// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/TensorImpl.h>
#include <c10/util/SmallVector.h>

#include "hlo/type.h"
#include "view/view.h"

namespace torch_tpu::aten {

// A tensor's place in its storage.
view::View view_of(const c10::TensorImpl& t);

// What the plan of a view adds to a call: to its key, and to its operands.
struct ViewKey {
  uint64_t plan = 0;
  c10::SmallVector<int64_t, 4> starts;
};

// The plan of tensor `t` in a base of the interned type `base`. The views looked at last are
// remembered, for each thread: planning one takes seven allocations, a twentieth of a slice's
// write. The reference holds until the thread's next call. Throws hlo::Error as view::plan.
const ViewKey& view_key(const c10::TensorImpl& t, const hlo::Type* base);

}  // namespace torch_tpu::aten
