// SPDX-License-Identifier: Apache-2.0
#include "aten/view_key.h"

#include <array>
#include <memory>

#include "aten/storage.h"

namespace torch_tpu::aten {
namespace {

struct Seen {
  const hlo::Type* base = nullptr;  // null: nothing seen yet
  view::View view;
  ViewKey key;

  bool is(const c10::TensorImpl& t, const hlo::Type* of) const {
    return base == of && view.offset == t.storage_offset() && t.sizes().equals(view.sizes) &&
           t.strides().equals(view.strides) &&
           view.dtype == to_dtype(c10::typeMetaToScalarType(t.dtype()));
  }
};

constexpr int kSlotBits = 6;
using Table = std::array<Seen, size_t{1} << kSlotBits>;

size_t slot_of(const c10::TensorImpl& t, const hlo::Type* base) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  uint64_t h = reinterpret_cast<uint64_t>(base) ^ static_cast<uint64_t>(t.storage_offset());
  for (int64_t d : t.sizes()) h = (h ^ static_cast<uint64_t>(d)) * kOdd;
  for (int64_t d : t.strides()) h = (h ^ static_cast<uint64_t>(d)) * kOdd;
  return (h * kOdd) >> (64 - kSlotBits);
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
  view::View view = view_of(t);
  const view::Plan plan = view::plan(*base, view);
  const hlo::Dims starts = plan.operands();
  seen = {base, std::move(view), {plan.key(), {starts.begin(), starts.end()}}};
  return seen.key;
}

}  // namespace torch_tpu::aten
