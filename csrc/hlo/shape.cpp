// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/attribute.h"
#include "hlo/ops.h"

namespace torch_tpu::hlo {
namespace {

bool is_identity(const Dims& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// One index a dimension, rank 0, brought to one dtype.
Values start_indices(std::string_view op, Value x, const Values& starts) {
  if (static_cast<int64_t>(starts.size()) != x.rank()) {
    fail(op, {x}, std::to_string(starts.size()) + " start indices");
  }
  bool same = true;
  for (const Value& s : starts) {
    if (s.rank() != 0 || !is_integral(s.dtype()))
      fail(op, {x, s}, "start indices must be rank-0 integers");
    same &= s.dtype() == starts.front().dtype();
  }
  if (same) return starts;
  Values out;
  for (const Value& s : starts) out.push_back(convert(s, DType::s64));
  return out;
}

}  // namespace

Value reshape(Value x, const Dims& dims) {
  if (dims == x.dims()) return x;
  if (numel(dims) != x.numel()) fail("reshape", {x}, "not the number of elements of " + str(dims));
  return emit1("stablehlo.reshape", {x}, "", {x.dtype(), dims});
}

Value transpose(Value x, const Dims& permutation) {
  const Dims p = wrap_dims("transpose", permutation, x);
  if (static_cast<int64_t>(p.size()) != x.rank())
    fail("transpose", {x}, str(permutation) + " is no permutation");
  if (is_identity(p)) return x;
  Dims dims;
  for (int64_t d : p) dims.push_back(x.dims()[d]);
  return emit1("stablehlo.transpose", {x}, "permutation = " + i64_array(p), {x.dtype(), dims});
}

Value broadcast_in_dim(Value x, const Dims& dims, const Dims& broadcast_dimensions) {
  const std::string what = "to " + str(dims) + " along " + str(broadcast_dimensions);
  if (static_cast<int64_t>(broadcast_dimensions.size()) != x.rank())
    fail("broadcast_in_dim", {x}, what);
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t d = broadcast_dimensions[i];
    if (d < 0 || d >= static_cast<int64_t>(dims.size()) ||
        (x.dims()[i] != 1 && x.dims()[i] != dims[d])) {
      fail("broadcast_in_dim", {x}, what);
    }
    if (std::count(broadcast_dimensions.begin(), broadcast_dimensions.end(), d) != 1)
      fail("broadcast_in_dim", {x}, what);
  }
  if (dims == x.dims() && is_identity(broadcast_dimensions)) return x;
  return emit1("stablehlo.broadcast_in_dim", {x},
               "broadcast_dimensions = " + i64_array(broadcast_dimensions), {x.dtype(), dims});
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims dims(rank);
  for (size_t i = 0; i < rank; ++i) {  // from the end
    const int64_t m = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t n = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (m != n && m != 1 && n != 1)
      throw Error("broadcast of " + str(a) + ", " + str(b) + ": sizes differ");
    dims[rank - 1 - i] = m == 1 ? n : m;
  }
  return dims;
}

Value broadcast_to(Value x, const Dims& dims) {
  if (dims == x.dims()) return x;
  const int64_t rank = static_cast<int64_t>(dims.size());
  if (rank < x.rank()) fail("broadcast_to", {x}, "to " + str(dims) + " loses dimensions");
  Dims map;
  for (int64_t i = 0; i < x.rank(); ++i) map.push_back(rank - x.rank() + i);
  return broadcast_in_dim(x, dims, map);
}

std::pair<Value, Value> broadcast(Value a, Value b) {
  const Dims dims = broadcast_dims(a.dims(), b.dims());
  return {broadcast_to(a, dims), broadcast_to(b, dims)};
}

Value slice(Value x, const Dims& start, const Dims& limit, const Dims& strides) {
  const size_t rank = x.dims().size();
  const auto bad = [&] {
    fail("slice", {x}, str(start) + " to " + str(limit) + " by " + str(strides));
  };
  if (start.size() != rank || limit.size() != rank || strides.size() != rank) bad();
  Dims dims;
  for (size_t i = 0; i < rank; ++i) {
    if (start[i] < 0 || start[i] > limit[i] || limit[i] > x.dims()[i] || strides[i] < 1) bad();
    dims.push_back((limit[i] - start[i] + strides[i] - 1) / strides[i]);
  }
  if (dims == x.dims()) return x;
  return emit1("stablehlo.slice", {x},
               "limit_indices = " + i64_array(limit) + ", start_indices = " + i64_array(start) +
                   ", strides = " + i64_array(strides),
               {x.dtype(), dims});
}

Value slice_in_dim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
  const int64_t d = wrap_dim("slice_in_dim", dim, x);
  Dims starts(x.rank(), 0), limits = x.dims(), strides(x.rank(), 1);
  starts[d] = start;
  limits[d] = limit;
  strides[d] = stride;
  return slice(x, starts, limits, strides);
}

Value dynamic_slice(Value x, const Values& starts, const Dims& sizes) {
  Values operands = start_indices("dynamic_slice", x, starts);
  if (sizes.size() != x.dims().size()) fail("dynamic_slice", {x}, "sizes " + str(sizes));
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > x.dims()[i]) fail("dynamic_slice", {x}, "sizes " + str(sizes));
  }
  if (sizes == x.dims()) return x;  // every start is clamped to 0
  operands.insert(operands.begin(), x);
  return emit1("stablehlo.dynamic_slice", operands, "slice_sizes = " + i64_array(sizes),
               {x.dtype(), sizes});
}

Value dynamic_update_slice(Value x, Value update, const Values& starts) {
  Values operands = start_indices("dynamic_update_slice", x, starts);
  require_same_dtype("dynamic_update_slice", {x, update});
  if (update.rank() != x.rank()) fail("dynamic_update_slice", {x, update}, "ranks differ");
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (update.dims()[i] > x.dims()[i])
      fail("dynamic_update_slice", {x, update}, "the update is larger");
  }
  if (update.dims() == x.dims()) return update;
  operands.insert(operands.begin(), {x, update});
  return emit1("stablehlo.dynamic_update_slice", operands, "", x.type());
}

Value pad(Value x, Value value, const Dims& low, const Dims& high, const Dims& interior) {
  require_same_dtype("pad", {x, value});
  require_scalar("pad", value);
  const size_t rank = x.dims().size();
  const auto bad = [&] {
    fail("pad", {x}, "by " + str(low) + ", " + str(high) + ", " + str(interior));
  };
  if (low.size() != rank || high.size() != rank || interior.size() != rank) bad();
  Dims dims;
  bool changes = false;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t n = x.dims()[i];
    const int64_t size = low[i] + high[i] + n + std::max<int64_t>(n - 1, 0) * interior[i];
    if (interior[i] < 0 || size < 0) bad();
    changes |= low[i] != 0 || high[i] != 0 || size != n;
    dims.push_back(size);
  }
  if (!changes) return x;
  return emit1("stablehlo.pad", {x, value},
               "edge_padding_high = " + i64_array(high) + ", edge_padding_low = " + i64_array(low) +
                   ", interior_padding = " + i64_array(interior),
               {x.dtype(), dims});
}

Value concatenate(const Values& xs, int64_t dim) {
  if (xs.empty()) throw Error("concatenate: no operands");
  require_same_dtype("concatenate", xs);
  const int64_t d = wrap_dim("concatenate", dim, xs.front());
  Dims dims = xs.front().dims();
  dims[d] = 0;
  for (const Value& x : xs) {
    if (x.rank() != static_cast<int64_t>(dims.size())) fail("concatenate", xs, "ranks differ");
    for (int64_t i = 0; i < x.rank(); ++i) {
      if (i != d && x.dims()[i] != dims[i])
        fail("concatenate", xs, "sizes differ outside dimension " + std::to_string(d));
    }
    dims[d] += x.dims()[d];
  }
  if (xs.size() == 1) return xs.front();
  return emit1("stablehlo.concatenate", xs, "dimension = " + std::to_string(d) + " : i64",
               {xs.front().dtype(), dims});
}

Value reverse(Value x, const Dims& dims) {
  const Dims d = wrap_dims("reverse", dims, x);
  if (d.empty()) return x;
  return emit1("stablehlo.reverse", {x}, "dimensions = " + i64_array(d), x.type());
}

Value squeeze(Value x, const Dims& dims) {
  const Dims drop = wrap_dims("squeeze", dims, x);
  Dims rest;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (std::find(drop.begin(), drop.end(), i) == drop.end()) {
      rest.push_back(x.dims()[i]);
    } else if (x.dims()[i] != 1) {
      fail("squeeze", {x}, "dimension " + std::to_string(i) + " is not 1");
    }
  }
  return reshape(x, rest);
}

Value unsqueeze(Value x, int64_t dim) {
  if (dim < -x.rank() - 1 || dim > x.rank()) {
    fail("unsqueeze", {x}, "dimension " + std::to_string(dim) + " is out of range");
  }
  Dims dims = x.dims();
  dims.insert(dims.begin() + (dim < 0 ? dim + x.rank() + 1 : dim), 1);
  return reshape(x, dims);
}

Value flatten(Value x) { return reshape(x, {x.numel()}); }

}  // namespace torch_tpu::hlo
