// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/args.h"

// Rows of a table by number: what embeddings, bags of them and counts share.
namespace torch_tpu::lower {

// table [v, ..] with `updates` [n, ..] combined into its rows `rows` [n], duplicates too; a row
// outside the table is dropped.
inline Value combine_rows(Value table, Value rows, Value updates, const hlo::Combine& combine) {
  hlo::ScatterDims dims;
  for (int64_t d = 1; d < table.rank(); ++d) dims.update_window_dims.push_back(d);
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  return hlo::scatter({table}, hlo::reshape(rows, {rows.numel(), 1}), {updates}, dims, combine)[0];
}

// The sums of those of `updates` [n, ..] that have the same number among `rows` [n]: [size, ..].
inline Value added_rows(int64_t size, Value rows, Value updates) {
  Dims dims = updates.dims();
  dims[0] = size;
  const Value zeros = hlo::full(updates.builder(), {updates.dtype(), dims}, 0);
  return combine_rows(zeros, rows, updates, [](const Values& a, const Values& b) {
    return Values{hlo::add(a[0], b[0])};
  });
}

// How often each of 0 .. size-1 occurs in `indices` [n], in s32.
inline Value occurrences(Value indices, int64_t size) {
  return added_rows(size, indices, hlo::full(indices.builder(), {DType::s32, indices.dims()}, 1));
}

}  // namespace torch_tpu::lower
