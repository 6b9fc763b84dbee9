// SPDX-License-Identifier: Apache-2.0
#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "view/view.h"

// Views as functions of values (eager views are metadata; these serve graphs and the *_copy forms),
// and operators that rearrange elements: joining, flipping, rolling, padding.
namespace torch_tpu::lower {
namespace {

// ---- reshaping
// -------------------------------------------------------------------------------------------------
// `sizes` with its -1, if any, worked out from the number of elements.
Dims resolved(Dims sizes, int64_t numel) {
  const auto unknown = std::find(sizes.begin(), sizes.end(), -1);
  if (unknown != sizes.end()) {
    *unknown = 1;
    const int64_t known = hlo::numel(sizes);
    *unknown = known == 0 ? 0 : numel / known;
  }
  return sizes;
}

Value view(Value x, Dims sizes) { return reshape(x, resolved(std::move(sizes), x.numel())); }
Value reshape_alias(Value x, Dims sizes, Dims /*strides*/) { return reshape(x, sizes); }

// -1 keeps a size; new leading dimensions and size-1 dimensions are repeated.
Value expand(Value x, Dims sizes, bool /*implicit*/) {
  const int64_t added = static_cast<int64_t>(sizes.size()) - x.rank();
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (sizes[added + d] == -1) sizes[added + d] = x.dim(d);
  }
  return broadcast_to(x, sizes);
}

// x repeated along each dimension: [r0, n0, r1, n1, ...] by broadcast, then merged.
Value repeat(Value x, Dims repeats) {
  const int64_t rank = static_cast<int64_t>(repeats.size());
  Dims sizes(rank - x.rank(), 1), interleaved, positions, merged;
  sizes.insert(sizes.end(), x.dims().begin(), x.dims().end());
  for (int64_t d = 0; d < rank; ++d) {
    positions.push_back(2 * d + 1);
    interleaved.insert(interleaved.end(), {repeats[d], sizes[d]});
    merged.push_back(repeats[d] * sizes[d]);
  }
  return reshape(broadcast_in_dim(reshape(x, sizes), interleaved, positions), merged);
}

Value permute(Value x, Dims dims) {
  for (int64_t& d : dims) d = wrap(d, x.rank());
  return transpose(x, dims);
}
Value swap_dims(Value x, int64_t a, int64_t b) {
  if (x.rank() == 0) return x;
  Dims order = all_dims(x);
  std::swap(order[wrap(a, x.rank())], order[wrap(b, x.rank())]);
  return transpose(x, order);
}
Value t(Value x) { return x.rank() < 2 ? x : swap_dims(x, 0, 1); }

// Moves dimension `from` to position `to`.
Value move_dim(Value x, int64_t from, int64_t to) {
  Dims order = all_dims(x);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return transpose(x, order);
}

// Drops those of `dims` that have size 1.
Value squeeze_dims(Value x, Dims dims) {
  Dims ones;
  for (int64_t d : wrap(dims, x)) {
    if (x.dim(d) == 1) ones.push_back(d);
  }
  return squeeze(x, ones);
}
Value squeeze_all(Value x) { return squeeze_dims(x, all_dims(x)); }
Value squeeze_dim(Value x, int64_t dim) { return squeeze_dims(x, {dim}); }
Value unsqueeze_dim(Value x, int64_t dim) { return unsqueeze(x, wrap(dim, x.rank() + 1)); }

// The same bytes as another dtype; the last dimension grows or shrinks with the element's size.
Value view_dtype(Value x, DType t) {
  if (t == x.dtype()) return x;
  if (x.dtype() == DType::pred) return view_dtype(convert(x, DType::u8), t);
  if (t == DType::pred) return convert(view_dtype(x, DType::u8), t);
  if (hlo::is_complex(x.dtype())) {
    const Value parts =
        hlo::concatenate({unsqueeze(real(x), -1), unsqueeze(imag(x), -1)}, x.rank());
    Dims sizes = x.dims();
    if (!sizes.empty()) sizes.back() *= 2;
    return view_dtype(x.rank() == 0 ? parts : reshape(parts, sizes), t);
  }
  if (hlo::is_complex(t)) {
    const Value y = view_dtype(x, hlo::real_type(t));
    const int64_t last = y.rank() - 1, n = y.dim(last);
    return complex(slice_in_dim(y, last, 0, n, 2), slice_in_dim(y, last, 1, n, 2));
  }
  const int64_t from = hlo::itemsize(x.dtype()), to = hlo::itemsize(t);
  Dims sizes = x.dims();
  if (from > to) {
    sizes.back() *= from / to;
    return reshape(bitcast_convert(x, t), sizes);
  }
  if (from < to) {
    sizes.back() /= to / from;
    sizes.push_back(to / from);
    x = reshape(x, sizes);
  }
  return bitcast_convert(x, t);
}

// ---- slices
// ----------------------------------------------------------------------------------------------------
// An index that counts from the end if negative, clamped into [0, n].
int64_t clamp_index(int64_t i, int64_t n) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); }

Value slice_op(Value x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
               int64_t step) {
  dim = wrap(dim, x.rank());
  const int64_t n = x.dim(dim), first = clamp_index(start.value_or(0), n);
  return slice_in_dim(x, dim, first, std::max(first, clamp_index(end.value_or(n), n)), step);
}

Value select_op(Value x, int64_t dim, int64_t index) {
  dim = wrap(dim, x.rank());
  if (index < 0) index += x.dim(dim);
  return squeeze(slice_in_dim(x, dim, index, index + 1), {dim});
}

Value narrow_copy(Value x, int64_t dim, int64_t start, int64_t length) {
  dim = wrap(dim, x.rank());
  if (start < 0) start += x.dim(dim);
  return slice_in_dim(x, dim, start, start + length);
}

Values split_with_sizes(Value x, Dims sizes, int64_t dim) {
  dim = wrap(dim, x.rank());
  Values parts;
  int64_t start = 0;
  for (int64_t n : sizes) {
    parts.push_back(slice_in_dim(x, dim, start, start + n));
    start += n;
  }
  return parts;
}

// Parts of `size` along `dim`, the last one what is left; an empty dimension gives one empty part.
Values split(Value x, int64_t size, int64_t dim) {
  const int64_t n = x.dim(wrap(dim, x.rank()));
  Dims sizes;
  for (int64_t left = n; left > 0; left -= size) sizes.push_back(std::min(size, left));
  if (sizes.empty()) sizes.push_back(0);
  return split_with_sizes(x, sizes, dim);
}

Values unbind(Value x, int64_t dim) {
  dim = wrap(dim, x.rank());
  Values parts = split_with_sizes(x, Dims(x.dim(dim), 1), dim);
  for (Value& part : parts) part = squeeze(part, {dim});
  return parts;
}

// A run-time index into n elements: negative counts from the end.
Value from_end(Value index, int64_t n) {
  index = convert(index, DType::s64);
  return select(index < 0, index + static_cast<double>(n), index);
}

// self with `src` written to positions start, start + step, ... of `dim`. How many there are is
// src's size, so that where they start is a run-time operand and `end` is not needed.
Value slice_scatter(Value self, Value src, int64_t dim, std::optional<Value> start,
                    std::optional<Value> /*end*/, int64_t step) {
  dim = wrap(dim, self.rank());
  src = convert(src, self.dtype());
  if (src.numel() == 0) return self;
  const int64_t n = self.dim(dim), span = (src.dim(dim) - 1) * step + 1;
  const Value zero = hlo::constant(self.builder(), DType::s64, 0);
  Values starts(self.rank(), zero);
  if (start) starts[dim] = hlo::maximum(from_end(*start, n), zero);
  if (step > 1) {
    Dims none(self.rank()), interior(self.rank()), window = self.dims();
    interior[dim] = step - 1;
    window[dim] = span;
    const Value spread = pad(src, scalar(src, 0), none, none, interior);
    const Value here = pad(hlo::full(self.builder(), {DType::pred, src.dims()}, 1),
                           hlo::constant(self.builder(), DType::pred, false), none, none, interior);
    src = select(here, spread, dynamic_slice(self, starts, window));
  }
  return dynamic_update_slice(self, src, starts);
}

Value slice_backward(Value grad, Dims sizes, int64_t dim, Value start, Value end, int64_t step) {
  return slice_scatter(hlo::full(grad.builder(), {grad.dtype(), sizes}, 0), grad, dim, start, end,
                       step);
}

Value select_scatter(Value self, Value src, int64_t dim, Value index) {
  dim = wrap(dim, self.rank());
  return slice_scatter(self, unsqueeze(src, dim), dim, index, std::nullopt, 1);
}

Value select_backward(Value grad, Dims sizes, int64_t dim, Value index) {
  return select_scatter(hlo::full(grad.builder(), {grad.dtype(), sizes}, 0), grad, dim, index);
}

// ---- diagonals
// -------------------------------------------------------------------------------------------------
// The diagonal of a matrix [n, m] in its flat order: every (m + 1)-th element from `start`,
// `length` of them.
struct Diagonal {
  int64_t start, length, step;
  Diagonal(int64_t n, int64_t m, int64_t offset)
      : start(offset >= 0 ? offset : -offset * m),
        length(
            std::max<int64_t>(0, offset >= 0 ? std::min(n, m - offset) : std::min(n + offset, m))),
        step(m + 1) {}
  int64_t limit() const { return start + (length - 1) * step + 1; }
};

// x with dimensions d1 and d2 last, in this order.
Dims with_last(int64_t rank, int64_t d1, int64_t d2) {
  Dims order;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != d1 && d != d2) order.push_back(d);
  }
  order.insert(order.end(), {d1, d2});
  return order;
}
Dims inverse(const Dims& order) {
  Dims inv(order.size());
  for (size_t i = 0; i < order.size(); ++i) inv[order[i]] = static_cast<int64_t>(i);
  return inv;
}

// out[..., i] = x[..., i - min(offset, 0), i + max(offset, 0)] over the dims d1, d2, which go; the
// diagonal comes last.
Value diagonal(Value x, int64_t offset, int64_t d1, int64_t d2) {
  d1 = wrap(d1, x.rank()), d2 = wrap(d2, x.rank());
  const Diagonal diag(x.dim(d1), x.dim(d2), offset);
  Value y = transpose(x, with_last(x.rank(), d1, d2));
  Dims sizes = y.dims();
  sizes.resize(x.rank() - 1);
  if (diag.length == 0) {
    sizes.back() = 0;
    return hlo::full(x.builder(), {x.dtype(), sizes}, 0);
  }
  sizes.back() = x.dim(d1) * x.dim(d2);
  return slice_in_dim(reshape(y, sizes), x.rank() - 2, diag.start, diag.limit(), diag.step);
}

// self with `src` on that diagonal.
Value diagonal_scatter(Value self, Value src, int64_t offset, int64_t d1, int64_t d2) {
  const int64_t rank = self.rank();
  d1 = wrap(d1, rank), d2 = wrap(d2, rank);
  const int64_t n = self.dim(d1), m = self.dim(d2);
  const Diagonal diag(n, m, offset);
  if (src.numel() == 0) return self;
  const Dims order = with_last(rank, d1, d2);
  const Value matrix = transpose(self, order);
  Dims low(rank - 1), high(rank - 1), interior(rank - 1);
  low.back() = diag.start, high.back() = n * m - diag.limit(), interior.back() = diag.step - 1;
  src = convert(src, self.dtype());
  const Value spread = reshape(pad(src, scalar(src, 0), low, high, interior), matrix.dims());
  const Type index{DType::s64, {n, m}};
  const Value row = iota(self.builder(), index, 0), column = iota(self.builder(), index, 1);
  const Value here = column - row == static_cast<double>(offset);
  return transpose(select(here, spread, matrix), inverse(order));
}

Value diagonal_backward(Value grad, Dims sizes, int64_t offset, int64_t d1, int64_t d2) {
  return diagonal_scatter(hlo::full(grad.builder(), {grad.dtype(), sizes}, 0), grad, offset, d1,
                          d2);
}

// The last dimension of x becomes the diagonal of new dims d1 and d2.
Value diag_embed(Value x, int64_t offset, int64_t d1, int64_t d2) {
  const int64_t rank = x.rank() + 1, n = x.dim(-1) + std::abs(offset);
  d1 = wrap(d1, rank), d2 = wrap(d2, rank);
  Dims sizes(rank);
  int64_t next = 0;
  for (int64_t d = 0; d < rank; ++d) sizes[d] = d == d1 || d == d2 ? n : x.dim(next++);
  return diagonal_scatter(hlo::full(x.builder(), {x.dtype(), sizes}, 0), x, offset, d1, d2);
}

// Sum of the diagonal of a matrix; integers and bool in int64.
Value trace(Value x) {
  const DType t = hlo::is_integral(x.dtype()) || x.dtype() == DType::pred ? DType::s64 : x.dtype();
  return convert(sum(convert(diagonal(x, 0, 0, 1), hlo::accumulate_type(t)), {0}), t);
}

// col - row <= k (lower) or >= k (upper) is kept, the rest is 0. k is a run-time operand.
template <bool upper>
Value triangle(Value x, Value k) {
  const Type index{DType::s64, {x.dim(-2), x.dim(-1)}};
  const Value distance = iota(x.builder(), index, 1) - iota(x.builder(), index, 0);
  k = convert(k, DType::s64);
  return select(upper ? distance >= k : distance <= k, x, zeros_like(x));
}

// ---- strided windows
// ------------------------------------------------------------------------------------------- In a
// graph a value has no strides: x is taken as dense and row-major, its storage as exactly its
// elements.
struct Strided {
  view::View window;
  view::Plan plan;
  Values starts;
  Strided(Value x, Dims sizes, Dims strides, std::optional<int64_t> offset)
      : window{x.dtype(), std::move(sizes), std::move(strides), offset.value_or(0)},
        plan(view::plan(x.type(), window)) {
    for (int64_t start : plan.operands())
      starts.push_back(hlo::constant(x.builder(), DType::s64, start));
  }
};
Value as_strided(Value x, Dims sizes, Dims strides, std::optional<int64_t> offset) {
  const Strided s(x, std::move(sizes), std::move(strides), offset);
  return view::read(x, s.window, s.plan, s.starts);
}
bool is_complex(Value x) { return x.dtype() == DType::c64 || x.dtype() == DType::c128; }

// Whether elements have the same bits.
Value identical(Value a, Value b) {
  if (is_complex(a))
    return identical(hlo::real(a), hlo::real(b)) & identical(hlo::imag(a), hlo::imag(b));
  if (!hlo::is_floating(a.dtype())) return a == b;
  return hlo::compare_total_order(a, b, hlo::Compare::eq);
}

// Functionalization writes to a view of an overlapping window by writing the whole window: there
// the elements that did not change must not undo a write to the place that they share. CPU's order
// decides, if PyTorch does not refuse to trace the write.
Value as_strided_scatter(Value x, Value src, Dims sizes, Dims strides,
                         std::optional<int64_t> offset) {
  const Strided s(x, sizes, strides, offset);
  src = convert(src, x.dtype());
  if (view::is_non_overlapping(s.window)) return view::write(x, s.window, s.plan, s.starts, src);
  const int64_t n = x.numel();
  Value places = reshape(iota(x.builder(), {DType::s64, {n}}, 0), x.dims());
  places = as_strided(places, sizes, strides, offset);
  const Value old = view::read(x, s.window, s.plan, s.starts);
  places = select(identical(old, src), hlo::full(x.builder(), places.type(), n), places);
  const hlo::ScatterDims flat{{}, {0}, {}, {}, {0}, 1};  // n is out of range: nothing is written
  auto replace = [](const Values&, const Values& b) { return b; };
  return reshape(hlo::scatter({flatten(x)}, reshape(places, {places.numel(), 1}), {flatten(src)},
                              flat, replace)[0],
                 x.dims());
}

// ---- sliding windows
// -------------------------------------------------------------------------------------------
void require_window(const Dims& dims, int64_t dim, int64_t size, int64_t step) {
  const int64_t rank = static_cast<int64_t>(dims.size());
  const int64_t room = rank == 0 ? 1 : dims[wrap(dim, rank)];
  if (size < 0) throw UserError("size is " + std::to_string(size) + " but must be >= 0");
  if (size > room)
    throw UserError("maximum size for tensor at dimension " + std::to_string(dim) + " is " +
                    std::to_string(room) + " but size is " + std::to_string(size));
  if (step <= 0) throw UserError("step is " + std::to_string(step) + " but must be > 0");
}

// out[.., w, .., i] = x[.., w * step + i, ..]: dimension `dim` counts the windows, a new last one
// is inside them.
Value unfold(Value x, int64_t dim, int64_t size, int64_t step) {
  require_window(x.dims(), dim, size, step);
  if (x.rank() == 0)
    return size == 0 ? hlo::full(x.builder(), {x.dtype(), {0}}, 0) : reshape(x, {1});
  dim = wrap(dim, x.rank());
  const int64_t windows = (x.dim(dim) - size) / step + 1;
  const Type index{DType::s64, {windows, size}};
  const Value from =
      iota(x.builder(), index, 0) * static_cast<double>(step) + iota(x.builder(), index, 1);
  Dims sizes = x.dims();
  sizes[dim] = size;
  sizes.insert(sizes.begin() + dim, windows);
  return move_dim(reshape(hlo::index_select(x, dim, flatten(from)), sizes), dim + 1, x.rank());
}

// The sum of all windows put back where they came from. Windows are cut into chunks of `step`:
// chunk j of all windows together is one contiguous piece, shifted by j * step, so ceil(size /
// step) padded pieces are added.
Value unfold_backward(Value grad, Dims sizes, int64_t dim, int64_t size, int64_t step) {
  const int64_t rank = static_cast<int64_t>(sizes.size());
  if (std::ranges::any_of(sizes, [](int64_t n) { return n < 0; }))
    throw UserError("zeros: Dimension size must be non-negative.");
  require_window(sizes, dim, size, step);
  Dims unfolded = sizes;
  if (rank > 0) unfolded[wrap(dim, rank)] = (sizes[wrap(dim, rank)] - size) / step + 1;
  unfolded.push_back(size);
  if (grad.dims() != unfolded)
    throw UserError("unfold_backward: the gradient's shape is " + hlo::str(grad.dims()) +
                    ", not that of the windows, " + hlo::str(unfolded));
  if (rank == 0)
    return size == 0 ? hlo::full(grad.builder(), {grad.dtype(), {}}, 0) : reshape(grad, {});
  dim = wrap(dim, rank);
  const DType acc = hlo::accumulate_type(grad.dtype());
  const int64_t windows = grad.dim(dim), n = sizes[dim];
  if (windows == 1) step = std::max<int64_t>(size, 1);  // it may be any number
  const int64_t chunks = size / step + (size % step != 0);
  const Value y = move_dim(convert(grad, acc), rank, dim + 1);  // [.., windows, size, ..]
  Value total = hlo::full(grad.builder(), {acc, sizes}, 0);
  for (int64_t j = 0; j < chunks; ++j) {
    const int64_t length = std::min(step, size - j * step);
    Dims none(rank + 1), fill(rank + 1), merged = sizes, low(rank), high(rank);
    fill[dim + 1] = step - length;
    const Value piece =
        pad(slice_in_dim(y, dim + 1, j * step, j * step + length), scalar(y, 0), none, fill, none);
    merged[dim] = windows * step;
    low[dim] = j * step,
    high[dim] = n - j * step - windows * step;  // negative: cuts the last window's filling
    total = total + pad(reshape(piece, merged), scalar(y, 0), low, high, Dims(rank));
  }
  return convert(total, grad.dtype());
}

// ---- joining and moving
// ---------------------------------------------------------------------------------------- All of
// the promoted dtype. A tensor of shape [0] fits anything, for PyTorch's oldest programs.
Value cat(Context& ctx, Values xs, int64_t dim) {
  const DType t = result_type(Args(xs.begin(), xs.end()), ctx.default_dtype);
  Values parts;
  for (Value x : xs) {
    if (x.dims() != Dims{0}) parts.push_back(convert(x, t));
  }
  if (parts.empty()) return convert(xs.front(), t);
  return concatenate(parts, wrap(dim, parts.front().rank()));
}

Value stack(Context& ctx, Values xs, int64_t dim) {
  dim = wrap(dim, xs.front().rank() + 1);
  for (Value& x : xs) x = unsqueeze(x, dim);
  return cat(ctx, xs, dim);
}

Value flip(Value x, Dims dims) { return reverse(x, wrap(dims, x)); }

// Element i goes to i + shift, around the end. With no dims: in the flat order.
Value roll(Value x, Dims shifts, Dims dims) {
  if (x.numel() == 0) return x;
  if (dims.empty()) return reshape(roll(flatten(x), shifts, {0}), x.dims());
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = wrap(dims[i], x.rank()), n = x.rank() == 0 ? 1 : x.dim(dim);
    const int64_t cut = ((-shifts[i] % n) + n) % n;
    if (cut != 0)
      x = hlo::concatenate({slice_in_dim(x, dim, cut, n), slice_in_dim(x, dim, 0, cut)}, dim);
  }
  return x;
}

// `pads` is (low, high) from the last dimension on; negative ones cut. The value is a run-time
// operand.
Value constant_pad_nd(Value x, Dims pads, Value value) {
  Dims low(x.rank()), high(x.rank());
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const size_t dim = static_cast<size_t>(x.rank()) - 1 - i;
    low[dim] = pads[2 * i];
    high[dim] = pads[2 * i + 1];
  }
  return pad(x, convert(value, x.dtype()), low, high, Dims(x.rank()));
}

// [.., c r^2, h, w] -> [.., c, h r, w r]
Value pixel_shuffle(Value x, int64_t r) {
  Dims batch(x.dims().begin(), x.dims().end() - 3);
  const int64_t k = static_cast<int64_t>(batch.size()), c = x.dim(-3) / (r * r), h = x.dim(-2),
                w = x.dim(-1);
  Dims split_sizes = batch, order = all_dims(k), merged = batch;
  split_sizes.insert(split_sizes.end(), {c, r, r, h, w});
  order.insert(order.end(), {k, k + 3, k + 1, k + 4, k + 2});
  merged.insert(merged.end(), {c, h * r, w * r});
  return reshape(transpose(reshape(x, split_sizes), order), merged);
}
// [.., c, h r, w r] -> [.., c r^2, h, w]
Value pixel_unshuffle(Value x, int64_t r) {
  Dims batch(x.dims().begin(), x.dims().end() - 3);
  const int64_t k = static_cast<int64_t>(batch.size()), c = x.dim(-3), h = x.dim(-2) / r,
                w = x.dim(-1) / r;
  Dims split_sizes = batch, order = all_dims(k), merged = batch;
  split_sizes.insert(split_sizes.end(), {c, h, r, w, r});
  order.insert(order.end(), {k, k + 2, k + 4, k + 1, k + 3});
  merged.insert(merged.end(), {c * r * r, h, w});
  return reshape(transpose(reshape(x, split_sizes), order), merged);
}
// Channels [g, c / g] -> [c / g, g].
Value channel_shuffle(Value x, int64_t groups) {
  Dims sizes = x.dims();
  sizes[1] /= groups;
  sizes.insert(sizes.begin() + 1, groups);
  return reshape(swap_dims(reshape(x, sizes), 1, 2), x.dims());
}

Value identity(Value x) { return x; }

}  // namespace

void register_shape(Registry& r) {
  // A view and its *_copy form. `overload` has its dot.
  const auto add_view = [&](const std::string& op, const std::string& overload, auto f) {
    r.add("aten::" + op + overload, f);
    r.add("aten::" + op + "_copy" + overload, f);
  };
  add_view("view", "", view);
  add_view("view", ".dtype", view_dtype);
  add_view("_reshape_alias", "", reshape_alias);
  r.add("aten::_unsafe_view", view);
  r.add("aten::reshape", view);
  r.add("aten::_reshape_copy", view);
  add_view("expand", "", expand);
  add_view("permute", "", permute);
  add_view("transpose", ".int", swap_dims);
  add_view("t", "", t);
  add_view("squeeze", "", squeeze_all);
  add_view("squeeze", ".dim", squeeze_dim);
  add_view("squeeze", ".dims", squeeze_dims);
  add_view("unsqueeze", "", unsqueeze_dim);
  add_view("alias", "", identity);
  add_view("detach", "", identity);
  r.add("aten::lift_fresh", identity);
  r.add("aten::lift", identity);

  add_view("slice", ".Tensor", slice_op);
  add_view("select", ".int", select_op);
  add_view("split", ".Tensor", split);
  add_view("split_with_sizes", "", split_with_sizes);
  add_view("unbind", ".int", unbind);
  r.add("aten::unsafe_split.Tensor", split);
  r.add("aten::unsafe_split_with_sizes", split_with_sizes);
  r.add("aten::narrow_copy", narrow_copy);
  r.add("aten::slice_scatter", slice_scatter);
  r.add("aten::slice_backward", slice_backward);
  r.add("aten::select_scatter", select_scatter);
  r.add("aten::select_backward", select_backward);

  add_view("diagonal", "", diagonal);
  r.add("aten::diagonal_scatter", diagonal_scatter);
  r.add("aten::diagonal_backward", diagonal_backward);
  r.add("aten::diag_embed", diag_embed);
  r.add("aten::trace", trace);
  r.add("aten::tril", triangle<false>);
  r.add("aten::triu", triangle<true>);

  add_view("as_strided", "", as_strided);
  r.add("aten::as_strided_scatter", as_strided_scatter);

  add_view("unfold", "", unfold);
  r.add("aten::unfold_backward", unfold_backward);

  r.add("aten::cat", cat);
  r.add("aten::stack", stack);
  r.add("aten::repeat", repeat);
  r.add("aten::flip", flip);
  r.add("aten::roll", roll);
  r.add("aten::constant_pad_nd", constant_pad_nd);
  r.add("aten::pixel_shuffle", pixel_shuffle);
  r.add("aten::pixel_unshuffle", pixel_unshuffle);
  r.add("aten::channel_shuffle", channel_shuffle);
}

}  // namespace torch_tpu::lower
