// SPDX-License-Identifier: Apache-2.0
#include "aten/view_key.h"

#include <array>
#include <memory>

#include "aten/storage.h"

namespace torch_tpu::aten {
namespace {

struct Seen {
  const hlo::Type* base = nullptr;  // null: nothing seen yet
  at::ScalarType dtype = at::kFloat;
  int64_t offset = 0;
  c10::SmallVector<int64_t, 5> sizes, strides;
  ViewKey key;

  bool is(const c10::TensorImpl& t, const hlo::Type* of) const {
    return base == of && offset == t.storage_offset() && t.sizes() == sizes &&
           t.strides() == strides && dtype == c10::typeMetaToScalarType(t.dtype());
  }
};

constexpr size_t kSlots = 64;  // a power of two
using Table = std::array<Seen, kSlots>;

size_t slot_of(const c10::TensorImpl& t, const hlo::Type* base) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  uint64_t h = reinterpret_cast<uint64_t>(base) ^ static_cast<uint64_t>(t.storage_offset());
  for (int64_t d : t.sizes()) h = (h ^ static_cast<uint64_t>(d)) * kOdd;
  for (int64_t d : t.strides()) h = (h ^ static_cast<uint64_t>(d)) * kOdd;
  return (h * kOdd) >> 58;
}

}  // namespace

view::View view_of(const c10::TensorImpl& t) {
  return {to_dtype(c10::typeMetaToScalarType(t.dtype())), t.sizes().vec(), t.strides().vec(),
          t.storage_offset()};
}

const ViewKey& view_key(const c10::TensorImpl& t, const hlo::Type* base) {
  static thread_local const auto table = std::make_unique<Table>();
  Seen& seen = (*table)[slot_of(t, base)];
  if (seen.is(t, base)) return seen.key;
  const view::Plan plan = view::plan(*base, view_of(t));
  const hlo::Dims starts = plan.operands();
  seen.base = base;
  seen.dtype = c10::typeMetaToScalarType(t.dtype());
  seen.offset = t.storage_offset();
  seen.sizes = t.sizes();
  seen.strides = t.strides();
  seen.key = {plan.key(), {starts.begin(), starts.end()}};
  return seen.key;
}

}  // namespace torch_tpu::aten
