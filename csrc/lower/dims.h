// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <string>

#include "lower/args.h"

// PyTorch's conventions for dimension arguments: negative numbers count from the end, and a rank-0
// tensor answers to dims 0 and -1 as if it had one dimension.
namespace torch_tpu::lower {

// `dim` as an index in [0, max(rank, 1)). Throws PyTorch's IndexError text.
inline int64_t wrap(int64_t dim, int64_t rank) {
  const int64_t n = std::max<int64_t>(rank, 1);
  if (dim < -n || dim >= n) {
    throw UserError("Dimension out of range (expected to be in range of [" + std::to_string(-n) +
                        ", " + std::to_string(n - 1) + "], but got " + std::to_string(dim) + ")",
                    UserError::Kind::index);
  }
  return dim < 0 ? dim + n : dim;
}

inline Dims all_dims(int64_t rank) {
  Dims dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}
inline Dims all_dims(Value x) { return all_dims(x.rank()); }

// The last n sizes, of a tensor that may have fewer: Error then.
inline Dims last_dims(const Dims& dims, int64_t n) {
  Dims last(n);
  for (int64_t i = 0; i < n; ++i) last[i] = dims[dims.size() - n + i];
  return last;
}
inline Dims last_dims(Value x, int64_t n) { return last_dims(x.dims(), n); }

// The dims as a set of real dimensions of x, ascending: what a reduction takes. Empty for a rank-0
// x.
inline Dims wrap(const Dims& dims, Value x) {
  std::vector<bool> named(std::max<int64_t>(x.rank(), 1));
  for (int64_t d : dims) {
    const int64_t w = wrap(d, x.rank());
    if (named[w])
      throw UserError("dim " + std::to_string(w) + " appears multiple times in the list of dims");
    named[w] = true;
  }
  Dims set;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (named[d]) set.push_back(d);
  }
  return set;
}
inline Dims wrap(int64_t dim, Value x) { return wrap(Dims{dim}, x); }

// For reductions where None and [] both mean every dimension.
inline Dims wrap_or_all(const std::optional<Dims>& dims, Value x) {
  return dims && !dims->empty() ? wrap(*dims, x) : all_dims(x);
}

// The dimensions that are not in `dims` (which are real and ascending).
inline Dims other_dims(const Dims& dims, int64_t rank) {
  Dims rest;
  for (int64_t d = 0; d < rank; ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) rest.push_back(d);
  }
  return rest;
}

// How many elements `dims` of x hold: the n of a mean.
inline int64_t count(Value x, const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= x.dim(d);
  return n;
}

// x's sizes after a reduction of `dims`.
inline Dims reduced_sizes(const Dims& sizes, const Dims& dims, bool keepdim) {
  Dims out;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) {
      out.push_back(sizes[d]);
    } else if (keepdim) {
      out.push_back(1);
    }
  }
  return out;
}

}  // namespace torch_tpu::lower
