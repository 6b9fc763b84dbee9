// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/attribute.h"
#include "hlo/ops.h"

namespace torch_tpu::hlo {
namespace {

bool contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// "name = [..], ", or nothing for an empty list.
std::string field(std::string_view name, const Dims& dims) {
  return dims.empty() ? "" : std::string(name) + " = " + str(dims) + ", ";
}

std::string_view text(bool b) { return b ? "true" : "false"; }

// The indices' dimensions without the one that holds an index vector.
Dims batch_dims(Value indices, int64_t index_vector_dim) {
  Dims dims = indices.dims();
  if (index_vector_dim < indices.rank()) dims.erase(dims.begin() + index_vector_dim);
  return dims;
}

int64_t index_vector_size(std::string_view op, Value indices, int64_t index_vector_dim) {
  if (!is_integral(indices.dtype())) fail(op, {indices}, "indices must be integers");
  if (index_vector_dim < 0 || index_vector_dim > indices.rank())
    fail(op, {indices}, "index_vector_dim is out of range");
  return index_vector_dim == indices.rank() ? 1 : indices.dim(index_vector_dim);
}

void require_dims(std::string_view op, Value x, const Dims& dims) {
  for (int64_t d : dims) {
    if (d < 0 || d >= x.rank()) fail(op, {x}, str(dims) + ": dimension out of range");
  }
}

}  // namespace

Value gather(Value x, Value start_indices, const GatherDims& dims, const Dims& slice_sizes,
             bool indices_are_sorted) {
  const std::string_view op = "gather";
  const int64_t n = index_vector_size(op, start_indices, dims.index_vector_dim);
  if (n != static_cast<int64_t>(dims.start_index_map.size()))
    fail(op, {x, start_indices}, "start_index_map has another length");
  if (static_cast<int64_t>(slice_sizes.size()) != x.rank())
    fail(op, {x, start_indices}, "slice sizes " + str(slice_sizes));
  require_dims(op, x, dims.start_index_map);
  require_dims(op, x, dims.collapsed_slice_dims);
  require_dims(op, x, dims.operand_batching_dims);
  require_dims(op, start_indices, dims.start_indices_batching_dims);
  if (dims.operand_batching_dims.size() != dims.start_indices_batching_dims.size()) {
    fail(op, {x, start_indices}, "batching dimensions differ in number");
  }
  Dims window;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (slice_sizes[i] < 0 || slice_sizes[i] > x.dims()[i])
      fail(op, {x, start_indices}, "slice sizes " + str(slice_sizes));
    const bool dropped =
        contains(dims.collapsed_slice_dims, i) || contains(dims.operand_batching_dims, i);
    if (!dropped) window.push_back(slice_sizes[i]);
    if (dropped && slice_sizes[i] > 1)
      fail(op, {x, start_indices}, "a collapsed dimension must have slice size 1");
  }
  if (window.size() != dims.offset_dims.size())
    fail(op, {x, start_indices}, "offset_dims " + str(dims.offset_dims));
  const Dims batch = batch_dims(start_indices, dims.index_vector_dim);
  Dims result;
  auto next_window = window.begin();
  auto next_batch = batch.begin();
  for (int64_t i = 0; i < static_cast<int64_t>(window.size() + batch.size()); ++i) {
    const bool from_window = contains(dims.offset_dims, i) && next_window != window.end();
    if (!from_window && next_batch == batch.end())
      fail(op, {x, start_indices}, "offset_dims " + str(dims.offset_dims));
    result.push_back(from_window ? *next_window++ : *next_batch++);
  }
  return emit1("stablehlo.gather", {x, start_indices},
               "dimension_numbers = #stablehlo.gather<" + field("offset_dims", dims.offset_dims) +
                   field("collapsed_slice_dims", dims.collapsed_slice_dims) +
                   field("operand_batching_dims", dims.operand_batching_dims) +
                   field("start_indices_batching_dims", dims.start_indices_batching_dims) +
                   field("start_index_map", dims.start_index_map) +
                   "index_vector_dim = " + std::to_string(dims.index_vector_dim) +
                   ">, indices_are_sorted = " + std::string(text(indices_are_sorted)) +
                   ", slice_sizes = " + i64_array(slice_sizes),
               {x.dtype(), result});
}

Values scatter(const Values& xs, Value indices, const Values& updates, const ScatterDims& dims,
               const Combine& combine, bool indices_are_sorted, bool unique_indices) {
  const std::string_view op = "scatter";
  if (xs.empty() || xs.size() != updates.size())
    throw Error("scatter: as many arrays as updates are needed");
  const int64_t n = index_vector_size(op, indices, dims.index_vector_dim);
  if (n != static_cast<int64_t>(dims.scatter_dims_to_operand_dims.size())) {
    fail(op, {xs[0], indices}, "scatter_dims_to_operand_dims has another length");
  }
  require_dims(op, xs[0], dims.scatter_dims_to_operand_dims);
  require_dims(op, xs[0], dims.inserted_window_dims);
  require_dims(op, xs[0], dims.input_batching_dims);
  require_dims(op, indices, dims.scatter_indices_batching_dims);
  Dims window_bounds;
  for (int64_t i = 0; i < xs[0].rank(); ++i) {
    if (!contains(dims.inserted_window_dims, i) && !contains(dims.input_batching_dims, i)) {
      window_bounds.push_back(xs[0].dims()[i]);
    }
  }
  const Dims batch = batch_dims(indices, dims.index_vector_dim);
  if (window_bounds.size() != dims.update_window_dims.size()) {
    fail(op, {xs[0], indices, updates[0]}, "update_window_dims " + str(dims.update_window_dims));
  }
  std::vector<Type> results, scalars;
  for (size_t i = 0; i < xs.size(); ++i) {
    require_same_dtype(op, {xs[i], updates[i]});
    if (xs[i].dims() != xs[0].dims() || updates[i].dims() != updates[0].dims())
      fail(op, xs, "shapes differ");
    results.push_back(xs[i].type());
    scalars.push_back({xs[i].dtype(), {}});
  }
  if (updates[0].rank() != static_cast<int64_t>(window_bounds.size() + batch.size())) {
    fail(op, {xs[0], indices, updates[0]}, "the updates' rank is wrong");
  }
  auto bound = window_bounds.begin();
  auto next_batch = batch.begin();
  for (int64_t i = 0; i < updates[0].rank(); ++i) {
    const bool in_window = contains(dims.update_window_dims, i);
    if (in_window ? bound == window_bounds.end() || updates[0].dims()[i] > *bound++
                  : next_batch == batch.end() || updates[0].dims()[i] != *next_batch++) {
      fail(op, {xs[0], indices, updates[0]}, "the updates' shape is wrong");
    }
  }
  Values operands = xs;
  operands.push_back(indices);
  operands.insert(operands.end(), updates.begin(), updates.end());
  return xs[0].builder().emit(
      "stablehlo.scatter", operands,
      "indices_are_sorted = " + std::string(text(indices_are_sorted)) +
          ", scatter_dimension_numbers = #stablehlo.scatter<" +
          field("update_window_dims", dims.update_window_dims) +
          field("inserted_window_dims", dims.inserted_window_dims) +
          field("input_batching_dims", dims.input_batching_dims) +
          field("scatter_indices_batching_dims", dims.scatter_indices_batching_dims) +
          field("scatter_dims_to_operand_dims", dims.scatter_dims_to_operand_dims) +
          "index_vector_dim = " + std::to_string(dims.index_vector_dim) +
          ">, unique_indices = " + std::string(text(unique_indices)),
      results, {combine_region(op, xs[0].builder(), scalars, combine)});
}

Value take(Value x, Value index) {
  // A slice of one element does not fit into an empty array.
  if (x.numel() == 0) {
    if (index.numel() != 0) fail("take", {x, index}, "there is nothing to take from");
    return full(x.builder(), {x.dtype(), index.dims()}, 0);
  }
  GatherDims dims;
  dims.collapsed_slice_dims = dims.start_index_map = {0};
  dims.index_vector_dim = index.rank();
  return gather(flatten(x), index, dims, {1});
}

Value index_select(Value x, int64_t dim, Value index) {
  const int64_t d = wrap_dim("index_select", dim, x);
  if (index.rank() != 1) fail("index_select", {x, index}, "the index must have rank 1");
  Dims sizes = x.dims();
  if (sizes[d] == 0) {
    if (index.numel() != 0) fail("index_select", {x, index}, "there is nothing to select from");
    return x;
  }
  sizes[d] = 1;
  GatherDims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != d) dims.offset_dims.push_back(i);
  }
  dims.collapsed_slice_dims = dims.start_index_map = {d};
  dims.index_vector_dim = 1;
  return gather(x, index, dims, sizes);
}

}  // namespace torch_tpu::hlo
