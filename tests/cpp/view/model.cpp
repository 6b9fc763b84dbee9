// SPDX-License-Identifier: Apache-2.0
#include "view/model.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace torch_tpu::view::model {
namespace {

// Calls f with every index into `sizes`, row-major.
void for_each_index(const Dims& sizes, const std::function<void(const Dims&)>& f) {
  if (hlo::numel(sizes) == 0) return;
  Dims index(sizes.size(), 0);
  for (;;) {
    f(index);
    size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

void demand(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

void erase(View& v, size_t d) {
  v.sizes.erase(v.sizes.begin() + d);
  v.strides.erase(v.strides.begin() + d);
}

void insert(View& v, size_t d, int64_t size, int64_t stride) {
  v.sizes.insert(v.sizes.begin() + d, size);
  v.strides.insert(v.strides.begin() + d, stride);
}

void take_slice(View& v, size_t d, Rng& rng) {
  const int64_t start = uniform(rng, 0, v.sizes[d]),
                step = uniform(rng, 0, 1) ? 1 : uniform(rng, 2, 4);
  const int64_t length =
      uniform(rng, 0, 9) ? v.sizes[d] - start : uniform(rng, 0, v.sizes[d] - start);
  if (length > 0) v.offset += start * v.strides[d];
  v.sizes[d] = (length + step - 1) / step;
  v.strides[d] *= step;
}

void select(View& v, size_t d, Rng& rng) {
  if (v.sizes[d] == 0) return;
  v.offset += uniform(rng, 0, v.sizes[d] - 1) * v.strides[d];
  erase(v, d);
}

void permute(View& v, Rng& rng) {
  for (size_t i = v.sizes.size(); i > 1; --i) {
    const size_t j = uniform(rng, 0, i - 1);
    std::swap(v.sizes[i - 1], v.sizes[j]);
    std::swap(v.strides[i - 1], v.strides[j]);
  }
}

void split(View& v, size_t d, Rng& rng) {
  const int64_t inner = uniform(rng, 1, 4);
  if (v.sizes[d] % inner != 0) return;
  v.sizes[d] /= inner;
  insert(v, d + 1, inner, v.strides[d]);
  v.strides[d] *= inner;
}

void merge(View& v, size_t d) {
  if (d + 1 >= v.sizes.size() || v.strides[d] != v.strides[d + 1] * v.sizes[d + 1]) return;
  v.sizes[d + 1] *= v.sizes[d];
  erase(v, d);
}

void diagonal(View& v, size_t a, size_t b) {
  if (a == b) return;
  const int64_t size = std::min(v.sizes[a], v.sizes[b]), stride = v.strides[a] + v.strides[b];
  erase(v, std::max(a, b));
  erase(v, std::min(a, b));
  insert(v, v.sizes.size(), size, stride);
}

void unfold(View& v, size_t d, Rng& rng) {
  if (v.sizes[d] == 0) return;
  const int64_t size = uniform(rng, 1, v.sizes[d]), step = uniform(rng, 1, 3);
  insert(v, v.sizes.size(), size, v.strides[d]);
  v.sizes[d] = (v.sizes[d] - size) / step + 1;
  v.strides[d] *= step;
}

// Any strides whatever that stay inside `numel` elements.
void as_strided(View& v, int64_t numel, Rng& rng) {
  v.sizes.clear();
  v.strides.clear();
  v.offset = uniform(rng, 0, numel - 1);
  int64_t rest = numel - 1 - v.offset;
  for (int64_t rank = uniform(rng, 0, 4); rank > 0; --rank) {
    const int64_t stride = uniform(rng, 0, std::min<int64_t>(rest, 12));
    const int64_t size = uniform(rng, 1, std::min<int64_t>(stride ? rest / stride + 1 : 3, 6));
    insert(v, uniform(rng, 0, v.sizes.size()), size, stride);
    rest -= (size - 1) * stride;
  }
}

void apply_random_operator(View& v, int64_t numel, Rng& rng) {
  const int64_t rank = static_cast<int64_t>(v.sizes.size());
  const int64_t what = uniform(rng, 0, 15);
  if (what == 0) return insert(v, uniform(rng, 0, rank), uniform(rng, 1, 3), 0);
  if (what == 1) return insert(v, uniform(rng, 0, rank), 1, uniform(rng, 0, 99));
  if (what == 2 && uniform(rng, 0, 2) == 0) return as_strided(v, numel, rng);
  if (rank == 0) return;
  const size_t d = uniform(rng, 0, rank - 1);
  if (what <= 6) return take_slice(v, d, rng);
  if (what <= 8) return select(v, d, rng);
  if (what <= 10) return permute(v, rng);
  if (what <= 12) return split(v, d, rng);
  if (what == 13) return merge(v, d);
  if (what == 14) return diagonal(v, d, uniform(rng, 0, rank - 1));
  if (uniform(rng, 0, 1)) unfold(v, d, rng);
}

}  // namespace

Dims indices(const View& v) {
  Dims out;
  for_each_index(v.sizes, [&](const Dims& index) {
    int64_t at = v.offset;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * v.strides[d];
    out.push_back(at);
  });
  return out;
}

Dims planned_indices(const Type& base, const View& v, const Plan& p) {
  const int64_t numel = base.nbytes() / hlo::itemsize(v.dtype);
  const Dims operands = p.operands();
  demand(static_cast<int64_t>(operands.size()) == p.num_operands(), "number of operands");
  Dims out;
  if (v.numel() == 0) return out;
  if (p.kind == Plan::Kind::whole) {
    for (int64_t i = 0; i < numel; ++i) out.push_back(i);
    return out;
  }
  if (p.kind == Plan::Kind::gather) {
    View moved = v;
    moved.offset = operands.at(0);
    return indices(moved);
  }
  int64_t cut_up = 1;
  for (const Factor& f : p.factors) cut_up *= f.size;
  demand(p.window > 0 ? cut_up >= p.window && operands.at(0) + p.window <= numel : cut_up == numel,
         "the factors' product");
  for_each_index(v.sizes, [&](const Dims& index) {
    int64_t at = 0;
    size_t operand = 0;
    for (const Factor& f : p.factors) {
      const int64_t start = p.window == 0 && f.is_partial() ? operands.at(operand++) : 0;
      const int64_t i = f.view_dim < 0 ? 0 : index[f.view_dim];
      demand(i < f.length, "a factor's length");
      demand(start + f.span() <= f.size, "a factor's edge");
      at = at * f.size + start + i * f.step;
    }
    demand(p.window == 0 || at < p.window, "the window's end");
    out.push_back(at + (p.window > 0 ? operands[0] : 0));
  });
  return out;
}

std::string str(const Case& c) {
  return c.base.str() + " -> " + std::string(hlo::name(c.view.dtype)) + " sizes " +
         hlo::str(c.view.sizes) + " strides " + hlo::str(c.view.strides) + " offset " +
         std::to_string(c.view.offset);
}

int64_t uniform(Rng& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}

Case random_case(Rng& rng, DType base_dtype, DType view_dtype) {
  Case c{{base_dtype, {}}, {view_dtype, {}, {}, 0}};
  for (int64_t rank = uniform(rng, 0, 4); rank > 0; --rank) {
    c.base.dims.push_back(uniform(rng, 0, 99) ? uniform(rng, 1, 7) : 0);
  }
  const int64_t numel = c.base.nbytes() / hlo::itemsize(view_dtype);
  c.view.sizes = base_dtype == view_dtype ? c.base.dims : Dims{numel};
  c.view.strides = contiguous_strides(c.view.sizes);
  if (numel == 0) return c;
  for (int64_t n = uniform(rng, 0, 5); n > 0; --n) apply_random_operator(c.view, numel, rng);
  return c;
}

}  // namespace torch_tpu::view::model
