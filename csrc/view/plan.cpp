// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <numeric>
#include <string>

#include "view/reinterpret.h"
#include "view/view.h"

// Choosing a plan is integer arithmetic on every eager call, so it works in fixed arrays: the only
// allocation is the plan's own list of factors.
namespace torch_tpu::view {
namespace {

constexpr size_t kMaxDims = 64;  // PyTorch's own limit

// Up to this step an axis leaves a dim of its base in one piece instead of cutting it in two.
// Writing f32[4096,1024][::2] in steps takes a seventh of the time of a cut on XLA:CPU (0.6 and 4.3
// ms) and moves half of the bytes on v5e by its compiler's account (76 and 168 MB).
constexpr int64_t kMaxStep = 16;

// A dim of the view that moves through the base: size above 1, stride above 0.
struct Axis {
  int64_t stride, size, dim;
};

template <typename T>
struct FixedList {
  std::array<T, kMaxDims> items;
  size_t count = 0;
  const T* begin() const { return items.data(); }
  const T* end() const { return items.data() + count; }
  const T& operator[](size_t i) const { return items[i]; }
};
using Axes = FixedList<Axis>;
using Units = FixedList<int64_t>;

[[noreturn]] void refuse(const char* why, const Type& base, const View& v) {
  throw hlo::Error("view: " + std::string(why) + ": " + Type{v.dtype, v.sizes}.str() +
                   " with strides " + hlo::str(v.strides) + " and offset " +
                   std::to_string(v.offset) + " of " + base.str());
}

// The axes by descending stride.
Axes moving_axes(const View& v) {
  Axes axes;
  for (size_t d = 0; d < v.sizes.size(); ++d) {
    if (v.sizes[d] == 1 || v.strides[d] == 0) continue;
    size_t i = axes.count++;
    for (; i > 0 && axes.items[i - 1].stride < v.strides[d]; --i) axes.items[i] = axes.items[i - 1];
    axes.items[i] = {v.strides[d], v.sizes[d], static_cast<int64_t>(d)};
  }
  return axes;
}

// Whether the flat base may be cut at multiples of `unit`, elements between the steps of an outer
// dim of the base: every stride above it is a multiple and no axis below it must reach over it.
bool agrees(int64_t unit, const Axes& axes) {
  for (const Axis& a : axes) {
    if (unit == a.stride) continue;
    if (unit < a.stride ? a.stride % unit != 0 : (a.size - 1) * a.stride >= unit) return false;
  }
  return true;
}

// The base's own strides, descending, as far as the view lets them stand.
Units aligned_units(const Dims& base_dims, int64_t numel, const Axes& axes) {
  Units units;
  int64_t unit = numel;
  for (int64_t size : base_dims) {
    if (size == 1) continue;
    unit /= size;
    if (unit > 1 && agrees(unit, axes)) units.items[units.count++] = unit;
  }
  return units;
}

// Cuts `numel` flat elements at `units` and at the axes' strides, so that each axis runs inside one
// factor. An axis runs in steps of a smaller unit where its stride does not divide what is above
// it, or where that leaves a dim of the base in one piece: reshaping costs more than small steps.
// False if two axes would share a factor or if the view that begins at `offset` runs
// over a factor's edge.
bool factorise(int64_t numel, int64_t offset, const Axes& axes, const Units& units,
               std::vector<Factor>& factors) {
  factors.clear();
  int64_t upper = numel, rest = offset;
  const auto cut = [&](int64_t unit, int64_t length, int64_t step, int64_t dim) {
    if (unit == upper) return dim < 0;
    const Factor f{upper / unit, rest / unit, length, step, dim};
    rest -= f.start * unit;
    upper = unit;
    factors.push_back(f);
    return f.start + f.span() <= f.size;
  };
  size_t u = 0;
  for (size_t i = 0; i < axes.count; ++i) {
    const Axis& a = axes[i];
    for (; u < units.count && units[u] > a.stride; ++u) {
      if (!cut(units[u], 1, 1, -1)) return false;
    }
    if (a.stride >= upper) return false;
    int64_t unit = upper % a.stride == 0 ? a.stride : std::gcd(upper, a.stride);
    if (u < units.count && units[u] == a.stride) {
      ++u;
    } else {
      const int64_t below = u < units.count ? units[u] : 1;
      const bool is_free = i + 1 == axes.count || axes[i + 1].stride < below;
      if (is_free && a.stride <= kMaxStep * below) unit = below;
    }
    if (!cut(unit, a.size, a.stride / unit, a.dim)) return false;
  }
  for (; u < units.count; ++u) {
    if (!cut(units[u], 1, 1, -1)) return false;
  }
  return cut(1, 1, 1, -1);
}

// Fills in cut, window and factors of a chain; false if there is none.
bool find_chain(const Type& base, const View& v, int64_t numel, int64_t reach, Plan& p) {
  const Axes axes = moving_axes(v);
  const Units units = base.dtype == v.dtype
                          ? aligned_units(base.dims, numel, axes)
                          : aligned_units(reinterpreted_dims(base, v.dtype), numel, axes);
  p.factors.reserve(units.count + axes.count + 1);
  if (factorise(numel, v.offset, axes, units, p.factors)) return true;
  p.cut = Plan::Cut::flat;
  if (factorise(numel, v.offset, axes, Units{}, p.factors)) return true;
  p.cut = Plan::Cut::window;
  p.window = reach - v.offset;
  return factorise(axes[0].size * axes[0].stride, 0, axes, Units{}, p.factors);
}

}  // namespace

Plan plan(const Type& base, const View& v) {
  Plan p;
  p.offset = v.offset;
  if (is_whole(base, v)) return p;
  if (v.offset < 0 || v.sizes.size() != v.strides.size()) refuse("malformed", base, v);
  if (v.sizes.size() > kMaxDims || base.dims.size() >= kMaxDims)
    refuse("more than 64 dims", base, v);
  int64_t reach = v.offset + 1;
  for (size_t i = 0; i < v.sizes.size(); ++i) {
    if (v.strides[i] < 0) refuse("negative stride", base, v);
    reach += (v.sizes[i] - 1) * v.strides[i];
  }
  p.kind = Plan::Kind::chain;
  if (v.numel() == 0) return p;
  const int64_t numel = base.nbytes() / hlo::itemsize(v.dtype);
  if (reach > numel) refuse("reaches outside its storage", base, v);
  if (!find_chain(base, v, numel, reach, p)) {
    p.kind = Plan::Kind::gather;
    p.cut = Plan::Cut::aligned;
    p.window = 0;
    p.factors.clear();
  }
  return p;
}

int64_t Plan::num_operands() const {
  if (kind == Kind::gather || window > 0) return 1;
  int64_t n = 0;
  for (const Factor& f : factors) n += f.is_partial();
  return n;
}

Dims Plan::operands() const {
  if (kind == Kind::gather || window > 0) return {offset};
  Dims starts;
  for (const Factor& f : factors) {
    if (f.is_partial()) starts.push_back(f.start);
  }
  return starts;
}

}  // namespace torch_tpu::view
