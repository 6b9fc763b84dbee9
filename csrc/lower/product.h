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

// dot_general in the dtype that sums are kept in: f32 for 16-bit floats, otherwise the operands'
// own.
inline Value product(const Context& ctx, Value a, Value b, const hlo::DotDims& dims) {
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
