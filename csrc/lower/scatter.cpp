// SPDX-License-Identifier: Apache-2.0
#include "lower/dims.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/registry.h"
#include "lower/require.h"
#include "lower/scan.h"

namespace torch_tpu::lower {
namespace {

using hlo::Combine;

// How an update meets what is in its place. Updates are taken in row-major order on XLA:CPU, so of
// several that assign to one place the last wins there, as on PyTorch's CPU; on TPU which one wins
// is not said (nor on CUDA).
enum class Reduce { assign, sum, prod, mean, amax, amin };

// l if it is NaN or wins, else r. XLA:CPU's own maximum loses a NaN on the left inside a scatter.
Value first_of(Value l, Value r, hlo::Compare wins) {
  return select(or_(is_nan(l), compare(l, r, wins)), l, r);
}

Combine combine_of(Reduce reduce) {
  return [reduce](const Values& l, const Values& r) -> Values {
    switch (reduce) {
      case Reduce::assign:
        return {r[0]};
      case Reduce::sum:
      case Reduce::mean:
        return {add(l[0], r[0])};
      case Reduce::prod:
        return {multiply(l[0], r[0])};
      case Reduce::amax:
        return {first_of(l[0], r[0], hlo::Compare::ge)};
      case Reduce::amin:
        return {first_of(l[0], r[0], hlo::Compare::le)};
    }
    return {};
  };
}

Value identity(hlo::Builder& b, DType t, Reduce reduce) {
  switch (reduce) {
    case Reduce::prod:
      return hlo::constant(b, t, 1);
    case Reduce::amax:
      return hlo::lowest(b, t);
    case Reduce::amin:
      return hlo::highest(b, t);
    default:
      return hlo::constant(b, t, 0);
  }
}

// Writes updates into x: one of scatter_along, scatter_rows and their like with the places fixed.
using Writer = std::function<Value(Value x, Value updates, const Combine&)>;

Value at_least_1d(Value x) { return x.rank() == 0 ? reshape(x, {1}) : x; }

// x with x[i_0, .., index[i], .., i_n] combined with updates[i], `index` standing at `dim`; updates
// have index's shape. index: bounded, x's rank, no size above x's beside `dim`.
Value scatter_along(Value x, int64_t dim, Value index, Value updates, const Combine& combine) {
  Dims column = index.dims(), limit = index.dims();
  column.push_back(1);
  limit[dim] = x.dim(dim);
  const Dims others = other_dims({dim}, x.rank());
  const hlo::ScatterDims dims{.update_window_dims = {},
                              .inserted_window_dims = {dim},
                              .input_batching_dims = others,
                              .scatter_indices_batching_dims = others,
                              .scatter_dims_to_operand_dims = {dim},
                              .index_vector_dim = x.rank()};
  const Dims origin(x.rank(), 0);
  Value region = hlo::slice(x, origin, limit, Dims(x.rank(), 1));
  region = hlo::scatter({region}, reshape(index, column), {updates}, dims, combine)[0];
  if (region.dims() == x.dims()) return region;
  return hlo::dynamic_update_slice(x, region,
                                   Values(x.rank(), hlo::constant(x.builder(), DType::s32, 0)));
}

// x with rows index[j] along `dim` combined with rows j of updates. index: bounded, rank 1.
Value scatter_rows(Value x, int64_t dim, Value index, Value updates, const Combine& combine) {
  const hlo::ScatterDims dims{.update_window_dims = other_dims({dim}, x.rank()),
                              .inserted_window_dims = {dim},
                              .input_batching_dims = {},
                              .scatter_indices_batching_dims = {},
                              .scatter_dims_to_operand_dims = {dim},
                              .index_vector_dim = 1};
  return hlo::scatter({x}, reshape(index, {index.dim(0), 1}), {updates}, dims, combine)[0];
}

// Reduces updates into x through `write`. Without include_self a place that receives any update
// starts from the identity. mean: sum / number of terms (integers: floor). 16-bit floats are
// reduced in f32 and rounded once.
Value reduce_into(Value x, Value updates, Reduce reduce, bool include_self, const Writer& write) {
  const DType t = x.dtype();
  if (reduce == Reduce::assign) return write(x, convert(updates, t), combine_of(reduce));
  hlo::Builder& b = x.builder();
  Value z = convert(x, hlo::accumulate_type(t)), u = convert(convert(updates, t), z.dtype());
  if (!include_self) {
    Value start = hlo::broadcast_to(identity(b, z.dtype(), reduce), u.dims());
    z = write(z, start, combine_of(Reduce::assign));
  }
  z = write(z, u, combine_of(reduce));
  if (reduce == Reduce::mean) {
    const DType c = hlo::is_integral(t) ? t : z.dtype();
    Value n = hlo::full(b, {c, x.dims()}, include_self ? 1 : 0);
    n = write(n, hlo::full(b, {c, u.dims()}, 1), combine_of(Reduce::sum));
    n = hlo::maximum(n, hlo::ones_like(n));
    if (hlo::is_integral(t)) {
      Value q = hlo::divide(z, n), rest = hlo::remainder(z, n), zero = hlo::zeros_like(z);
      z = select(compare(rest, zero, hlo::Compare::lt), q - hlo::ones_like(q), q);
    } else {
      z = hlo::divide(z, n);
    }
  }
  return convert(z, t);
}

Reduce reduce_named(const std::string& name) {
  if (name == "sum" || name == "add") return Reduce::sum;
  if (name == "prod" || name == "multiply") return Reduce::prod;
  if (name == "mean") return Reduce::mean;
  if (name == "amax") return Reduce::amax;
  if (name == "amin") return Reduce::amin;
  throw UserError("reduce argument must be either sum, prod, mean, amax or amin, got " + name);
}

// ---- scatter: an index an element
// ------------------------------------------------------------------------------
//
// out = self, then out[i_0, .., index[i], .., i_n] = reduce(that, src[i]) for each i of index's
// shape.
//   self, index, src  one rank (rank 0 as one element); index no larger than src, nor than self
//   beside `dim` out  self's shape and dtype. An empty index gives self. No negative indices.

Value scatter_impl(Context& ctx, Value self, int64_t dim, Value index, Value src, Reduce reduce,
                   bool include_self = true) {
  if (index.numel() == 0) return self;
  Value x = at_least_1d(self), at = at_least_1d(index);
  const int64_t d = wrap(dim, x.rank());
  at = bounded(ctx, at, x.dim(d), Negative::refused, out_of_bounds_at_run(d, x.dim(d)));
  Value updates = src;
  if (src.rank() == 0) {
    updates = hlo::broadcast_to(src, at.dims());
  } else {
    updates = hlo::slice(src, Dims(src.rank(), 0), at.dims(), Dims(src.rank(), 1));
  }
  Value out = reduce_into(x, updates, reduce, include_self,
                          [&](Value into, Value u, const Combine& combine) {
                            return scatter_along(into, d, at, u, combine);
                          });
  return reshape(out, self.dims());
}

Value scatter(Context& ctx, Value self, int64_t dim, Value index, Value src) {
  return scatter_impl(ctx, self, dim, index, src, Reduce::assign);
}
Value scatter_reduced(Context& ctx, Value self, int64_t dim, Value index, Value src,
                      std::string reduce) {
  if (reduce != "add" && reduce != "multiply")
    throw UserError("reduce argument must be either add or multiply.");
  return scatter_impl(ctx, self, dim, index, src, reduce_named(reduce));
}
Value scatter_add(Context& ctx, Value self, int64_t dim, Value index, Value src) {
  return scatter_impl(ctx, self, dim, index, src, Reduce::sum);
}
Value scatter_reduce(Context& ctx, Value self, int64_t dim, Value index, Value src,
                     std::string reduce, bool include_self) {
  return scatter_impl(ctx, self, dim, index, src, reduce_named(reduce), include_self);
}

// ---- index_*: an index a row
// -----------------------------------------------------------------------------------
//
// out = self, then row index[j] along `dim` of it = reduce(that, row j of source).
//   index  rank 0 or 1         source  self's shape with index's length at `dim` (rank 0 if self
//   is)

Value index_rows(Context& ctx, Value self, int64_t dim, Value index, Value source, Reduce reduce,
                 Negative negative, const std::string& message, bool include_self = true) {
  Value x = at_least_1d(self);
  const int64_t d = wrap(dim, x.rank());
  Value rows = bounded(ctx, at_least_1d(index), x.dim(d), negative, message);
  if (rows.numel() == 0 || x.numel() == 0) return self;
  Dims dims = x.dims();
  dims[d] = rows.dim(0);
  Value updates =
      source.numel() == hlo::numel(dims) ? reshape(source, dims) : hlo::broadcast_to(source, dims);
  Value out = reduce_into(x, updates, reduce, include_self,
                          [&](Value into, Value u, const Combine& combine) {
                            return scatter_rows(into, d, rows, u, combine);
                          });
  return reshape(out, self.dims());
}

// self with alpha * source's rows added at `index` of `dim`; an empty index adds nothing.
Value index_add(Context& ctx, Value self, int64_t dim, Value index, Value source, Value alpha) {
  const DType t = hlo::accumulate_type(self.dtype());
  Value scaled = self.dtype() == DType::pred ? and_(source, convert(alpha, t))
                                             : convert(source, t) * convert(alpha, t);
  // CPU adds the rows of a matrix by scatter_add.
  const std::string message = self.rank() == 2
                                  ? out_of_bounds_at_run(wrap(dim, 2), self.dim(wrap(dim, 2)))
                                  : "index out of range in self";
  return index_rows(ctx, self, dim, index, convert(scaled, self.dtype()), Reduce::sum,
                    Negative::refused, message);
}
Value index_copy(Context& ctx, Value self, int64_t dim, Value index, Value source) {
  const int64_t d = wrap(dim, self.rank()), size = self.rank() == 0 ? 1 : self.dim(d);
  return index_rows(ctx, self, dim, index, source, Reduce::assign, Negative::refused,
                    "index_copy_(): " + out_of_bounds(d, size));
}
Value index_reduce(Context& ctx, Value self, int64_t dim, Value index, Value source,
                   std::string reduce, bool include_self) {
  if (reduce != "prod" && reduce != "mean" && reduce != "amax" && reduce != "amin")
    throw UserError(
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got " + reduce +
        ".");
  return index_rows(ctx, self, dim, index, source, reduce_named(reduce), Negative::refused,
                    "index out of range in self", include_self);
}
// value: rank 0, converted to self's dtype
Value index_fill(Context& ctx, Value self, int64_t dim, Value index, Value value) {
  if (value.rank() != 0) {
    throw UserError("index_fill_ only supports a 0-dimensional value tensor, but got tensor with " +
                    std::to_string(value.rank()) + " dimension(s).");
  }
  const int64_t d = wrap(dim, self.rank()), size = self.rank() == 0 ? 1 : self.dim(d);
  return index_rows(ctx, self, dim, index, value, Reduce::assign, Negative::wraps,
                    out_of_bounds(d, size));
}

// ---- index_put
// -------------------------------------------------------------------------------------------------

// self[mask] = values, the mask covering dimensions `first` to first + mask.rank(): no count of the
// mask's true places is needed on the host. values broadcast to self's sizes before the mask, the
// number of true places, self's sizes after.
Value put_where(Context& ctx, Value self, int64_t first, Value mask, Value values,
                bool accumulate) {
  const int64_t last = first + mask.rank();
  for (int64_t d = first; d < last; ++d) {
    if (self.dim(d) == mask.dim(d - first)) continue;
    throw UserError("The shape of the mask " + hlo::str(mask.dims()) + " at index " +
                        std::to_string(d - first) +
                        " does not match the shape of the indexed tensor " + hlo::str(self.dims()) +
                        " at index " + std::to_string(d),
                    UserError::Kind::index);
  }
  if (self.numel() == 0) return self;
  Dims where_dims(mask.rank());
  for (int64_t d = 0; d < mask.rank(); ++d) where_dims[d] = first + d;
  Value where = hlo::broadcast_in_dim(mask, self.dims(), where_dims);

  Dims dims = values.dims();  // with all dimensions of the selection present
  const int64_t rank = self.rank() - mask.rank() + 1;
  if (static_cast<int64_t>(dims.size()) < rank) dims.insert(dims.begin(), rank - dims.size(), 1);
  Value v = reshape(convert(values, self.dtype()), dims);
  if (v.dim(first) == 0) return self;
  if (v.dim(first) > 1) {
    Value count = sum(convert(mask, DType::s64), all_dims(mask));
    ctx.builder.check(
        compare(count, hlo::constant(ctx.builder, DType::s64, v.dim(first)), hlo::Compare::ne),
        "shape mismatch: value tensor of shape " + hlo::str(values.dims()) +
            " cannot be broadcast to the indexing result");
    Value nth = cumulative_sum(convert(flatten(mask), DType::s32), 0);
    Value row = clamp(hlo::constant(ctx.builder, DType::s32, 0), nth - hlo::ones_like(nth),
                      hlo::constant(ctx.builder, DType::s32, v.dim(first) - 1));
    v = hlo::index_select(v, first, row);
  }
  Dims spread = v.dims();
  spread.erase(spread.begin() + first);
  for (int64_t d = 0; d < mask.rank(); ++d)
    spread.insert(spread.begin() + first + d, v.dim(first) == 1 ? 1 : mask.dim(d));
  v = hlo::broadcast_to(reshape(v, spread), self.dims());
  if (accumulate) v = self.dtype() == DType::pred ? or_(self, v) : add(self, v);
  return select(where, v, self);
}

void require_broadcastable(Value values, const Dims& result) {
  bool fits = values.rank() <= static_cast<int64_t>(result.size());
  for (int64_t d = 1; fits && d <= values.rank(); ++d)
    fits = values.dim(-d) == 1 || values.dim(-d) == result[result.size() - static_cast<size_t>(d)];
  if (!fits)
    throw UserError("shape mismatch: value tensor of shape " + hlo::str(values.dims()) +
                    " cannot be broadcast to indexing result of shape " + hlo::str(result));
}

// out = self, then out[indices] = values, or += with `accumulate` (every duplicate counts, in f32
// for 16-bit floats).
//   indices  as for index.Tensor, or a single bool mask among Nones       values  broadcast to the
//   shape of self[indices]
Value index_put(Context& ctx, Value self, Values indices, Value values, bool accumulate) {
  int64_t mask = -1, given = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    ++given;
    if (indices[d].dtype() == DType::pred) mask = static_cast<int64_t>(d);
  }
  if (mask >= 0 && given == 1 && mask + indices[mask].rank() <= self.rank()) {
    return put_where(ctx, self, mask, indices[mask], values, accumulate);
  }
  if (mask >= 0)
    throw UserError("index_put with a bool mask beside other indices",
                    UserError::Kind::not_implemented);

  const IndexPlan plan = plan_index(ctx, self.dims(), indices);
  if (plan.indexed.empty() && !accumulate)
    return hlo::broadcast_to(convert(values, self.dtype()), self.dims());
  if (hlo::numel(plan.result) == 0) return self;
  require_broadcastable(values, plan.result);
  Value updates = hlo::broadcast_to(values, plan.result);
  if (plan.indexed.empty()) return add(self, convert(updates, self.dtype()));
  const hlo::ScatterDims dims{.update_window_dims = plan.offset_dims,
                              .inserted_window_dims = plan.indexed,
                              .input_batching_dims = {},
                              .scatter_indices_batching_dims = {},
                              .scatter_dims_to_operand_dims = plan.indexed,
                              .index_vector_dim = plan.starts.rank() - 1};
  return reduce_into(self, updates, accumulate ? Reduce::sum : Reduce::assign, true,
                     [&](Value into, Value u, const Combine& combine) {
                       return hlo::scatter({into}, plan.starts, {u}, dims, combine)[0];
                     });
}
Value index_put_impl(Context& ctx, Value self, Values indices, Value values, bool accumulate,
                     bool unsafe) {
  (void)unsafe;  // CPU's licence to skip its range check; ours costs nothing to keep
  return index_put(ctx, self, std::move(indices), values, accumulate);
}

// out = self, then out.flat[index] = source.flat, or += with `accumulate`. index and source of
// equal size; negatives wrap.
Value put(Context& ctx, Value self, Value index, Value source, bool accumulate) {
  Value at = bounded(ctx, flatten(index), self.numel(), Negative::wraps,
                     self.numel() == 0 ? "put_(): Tried to put elements into an empty tensor"
                                       : "out of range: tried to access index {0} on a tensor of " +
                                             std::to_string(self.numel()) + " elements.");
  if (index.numel() == 0) return self;
  Value out = reduce_into(flatten(self), flatten(source), accumulate ? Reduce::sum : Reduce::assign,
                          true, [&](Value into, Value u, const Combine& combine) {
                            return scatter_rows(into, 0, at, u, combine);
                          });
  return reshape(out, self.dims());
}

}  // namespace

void register_scatter(Registry& r) {
  r.add("aten::scatter.src", scatter);
  r.add("aten::scatter.value", scatter);
  r.add("aten::scatter.reduce", scatter_reduced);
  r.add("aten::scatter.value_reduce", scatter_reduced);
  r.add("aten::scatter_add", scatter_add);
  r.add("aten::scatter_reduce.two", scatter_reduce);
  r.add("aten::index_add", index_add);
  r.add("aten::index_copy", index_copy);
  r.add("aten::index_reduce", index_reduce);
  r.add("aten::index_fill.int_Scalar", index_fill);
  r.add("aten::index_fill.int_Tensor", index_fill);
  r.add("aten::index_put", index_put);
  r.alias("aten::_unsafe_index_put", "aten::index_put");
  r.add("aten::_index_put_impl", index_put_impl);
  r.add("aten::put", put);
}

}  // namespace torch_tpu::lower
