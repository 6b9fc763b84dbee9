// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "lower/context.h"

// Sums of products: what matrix products, attention, convolution and recurrent cells share.
namespace torch_tpu::lower {

// How exactly products of `t` are formed. f32 is the user's choice
// (torch.set_float32_matmul_precision). A TPU multiplies bfloat16; its other formats are split into
// bfloat16 parts: f16 has 11 bits and needs three products, f64 all of them.
inline hlo::Precision precision(const Context& ctx, DType t) {
  switch (t) {
    case DType::f32:
    case DType::c64:
      return ctx.matmul_precision;
    case DType::f64:
    case DType::c128:
      return hlo::Precision::highest;
    case DType::f16:
      return hlo::Precision::high;
    default:
      return hlo::Precision::default_;
  }
}

// XLA:CPU packs the second operand of a b^T badly (x [128, 576], b [49152, 576] of f32: 192 ms; the
// transposed b x^T takes 54; x of 4 rows, b [1536, 576]: 0.81 and 0.32). A single row is as fast
// either way.
inline bool better_transposed(Value a, Value b, const hlo::DotDims& d) {
  return a.builder().target() == hlo::Target::cpu && b.rank() == 2 && a.rank() >= 2 &&
         d.lhs_batch.empty() && d.lhs_contracting == hlo::Dims{a.rank() - 1} &&
         d.rhs_contracting == hlo::Dims{1} && a.numel() >= 2 * std::max<int64_t>(a.dim(-1), 1);
}

// dot_general as a product of all pairs and a sum, which compilers fuse into one loop.
inline Value product_as_sum(Value a, Value b, const hlo::DotDims& dims) {
  hlo::Dims rest_a, rest_b;
  auto names = [](const hlo::Dims& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (!names(dims.lhs_batch, d) && !names(dims.lhs_contracting, d)) rest_a.push_back(d);
  }
  for (int64_t d = 0; d < b.rank(); ++d) {
    if (!names(dims.rhs_batch, d) && !names(dims.rhs_contracting, d)) rest_b.push_back(d);
  }
  // Both as [batch, a's rest, b's rest, contracted]; what the other side has is 1 here.
  auto arranged = [](Value x, const hlo::Dims& batch, const hlo::Dims& rest, int64_t ones_before,
                     int64_t ones_after, const hlo::Dims& contracted) {
    hlo::Dims order = batch, sizes;
    order.insert(order.end(), rest.begin(), rest.end());
    order.insert(order.end(), contracted.begin(), contracted.end());
    for (int64_t d : batch) sizes.push_back(x.dim(d));
    sizes.insert(sizes.end(), ones_before, 1);
    for (int64_t d : rest) sizes.push_back(x.dim(d));
    sizes.insert(sizes.end(), ones_after, 1);
    for (int64_t d : contracted) sizes.push_back(x.dim(d));
    return hlo::reshape(hlo::transpose(x, order), sizes);
  };
  Value l = arranged(a, dims.lhs_batch, rest_a, 0, rest_b.size(), dims.lhs_contracting);
  Value r = arranged(b, dims.rhs_batch, rest_b, rest_a.size(), 0, dims.rhs_contracting);
  hlo::Dims last;
  const int64_t kept = dims.lhs_batch.size() + rest_a.size() + rest_b.size();
  for (size_t d = 0; d < dims.lhs_contracting.size(); ++d) last.push_back(kept + d);
  return hlo::sum(l * r, last);
}

// dot_general in the dtype that sums are kept in: f32 for 16-bit floats, otherwise the operands'
// own. A TPU's compiler has no product of 64-bit integers ("rewriting computation to not contain
// X{64|128} element types .. is not implemented"): they are multiplied and added.
inline Value product(const Context& ctx, Value a, Value b, const hlo::DotDims& dims) {
  if (a.dtype() == DType::s64 || a.dtype() == DType::u64) return product_as_sum(a, b, dims);
  const DType sum = hlo::accumulate_type(a.dtype());
  const hlo::Precision p = precision(ctx, a.dtype());
  if (!better_transposed(a, b, dims)) return hlo::dot_general(a, b, dims, sum, p);
  // The barrier keeps XLA from turning the product around again.
  const Value t = hlo::dot_general(b, a, {{}, {}, {1}, {a.rank() - 1}}, sum, p);
  hlo::Dims order;
  for (int64_t i = 1; i < t.rank(); ++i) order.push_back(i);
  order.push_back(0);
  return hlo::transpose(hlo::optimization_barrier({t})[0], order);
}

// Complex conjugate; real x unchanged.
inline Value conj(Value x) {
  return hlo::is_complex(x.dtype()) ? hlo::complex(hlo::real(x), -hlo::imag(x)) : x;
}

}  // namespace torch_tpu::lower
