// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <algorithm>
#include <numeric>

namespace torch_tpu::view {
namespace {

// Dense in the order `order`: every stride is the number of elements inside it.
bool is_dense_in(const View& v, const Dims& order) {
  int64_t inside = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (v.sizes[*d] == 1) continue;
    if (v.strides[*d] != inside) return false;
    inside *= v.sizes[*d];
  }
  return true;
}

Dims permuted(const Dims& xs, const Dims& order) {
  Dims out;
  out.reserve(order.size());
  for (int64_t d : order) out.push_back(xs[d]);
  return out;
}

// Whether a storage that holds the view and nothing else can have the view's dims in `order` as its
// own.
bool fills_its_storage(const View& v, const Dims& order) {
  return v.numel() == 0 || (v.offset == 0 && is_dense_in(v, order));
}

}  // namespace

Dims contiguous_strides(const Dims& sizes) {
  Dims strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

bool is_whole(const Type& base, const View& v) {
  if (v.offset != 0 || base.dtype != v.dtype || base.dims != v.sizes) return false;
  int64_t stride = 1;
  for (size_t i = v.sizes.size(); i-- > 0;) {
    if (v.sizes[i] == 1) continue;
    if (v.strides[i] != stride) return v.numel() == 0;
    stride *= v.sizes[i];
  }
  return true;
}

bool covers(int64_t storage_nbytes, const View& v) {
  if (v.numel() * hlo::itemsize(v.dtype) != storage_nbytes) return false;
  return fills_its_storage(v, memory_order(v));
}

// Dims of size 1 have no place in memory and stay where they are, so that a contiguous view's order
// is the identity whatever strides they carry.
Dims memory_order(const View& v) {
  Dims order(v.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (v.numel() == 0) return order;
  Dims moving;
  for (int64_t d : order) {
    if (v.sizes[d] != 1) moving.push_back(d);
  }
  std::stable_sort(moving.begin(), moving.end(),
                   [&](int64_t a, int64_t b) { return v.strides[a] > v.strides[b]; });
  auto next = moving.begin();
  for (int64_t& d : order) {
    if (v.sizes[d] != 1) d = *next++;
  }
  return order;
}

bool is_non_overlapping(const View& v) {
  if (v.numel() == 0) return true;
  const Dims order = memory_order(v);
  int64_t reach = 0;  // the largest distance that the dims inside span
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (v.sizes[*d] == 1) continue;
    if (v.strides[*d] <= reach) return false;
    reach += (v.sizes[*d] - 1) * v.strides[*d];
  }
  return true;
}

int64_t extent(const View& v) {
  int64_t last = v.offset;
  for (size_t i = 0; i < v.sizes.size(); ++i) {
    if (v.sizes[i] == 0) return 0;
    last += (v.sizes[i] - 1) * v.strides[i];
  }
  return last + 1;
}

Type natural_base(const View& v) {
  const Dims order = memory_order(v);
  if (fills_its_storage(v, order)) return {v.dtype, permuted(v.sizes, order)};
  return {v.dtype, {extent(v)}};
}

Value to_base(Value data, const View& v) {
  const Dims order = memory_order(v);
  if (fills_its_storage(v, order))
    return std::is_sorted(order.begin(), order.end()) ? data : transpose(data, order);
  hlo::Builder& b = data.builder();
  const Type base = natural_base(v);
  const Plan p = plan(base, v);
  hlo::Values starts;
  for (int64_t start : p.operands()) starts.push_back(constant(b, DType::s64, start));
  return write(hlo::full(b, base, 0), v, p, starts, data);
}

}  // namespace torch_tpu::view
