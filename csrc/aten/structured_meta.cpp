// SPDX-License-Identifier: Apache-2.0
#include "aten/structured_meta.h"

namespace torch_tpu::aten {

// Generated: one function a file, so that two cores compile them.
void add_structured_meta_0(StructuredMeta& table);
void add_structured_meta_1(StructuredMeta& table);
void add_structured_meta_2(StructuredMeta& table);
void add_structured_meta_3(StructuredMeta& table);

const StructuredMeta& StructuredMeta::global() {
  static const auto* table = [] {
    auto* t = new StructuredMeta();
    add_structured_meta_0(*t);
    add_structured_meta_1(*t);
    add_structured_meta_2(*t);
    add_structured_meta_3(*t);
    return t;
  }();
  return *table;
}

}  // namespace torch_tpu::aten
