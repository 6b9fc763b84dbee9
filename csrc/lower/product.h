// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// dot_general in the dtype that sums are kept in: f32 for 16-bit floats, otherwise the operands'
// own.
inline Value product(const Context& ctx, Value a, Value b, const hlo::DotDims& dims) {
  return hlo::dot_general(a, b, dims, hlo::accumulate_type(a.dtype()), precision(ctx, a.dtype()));
}

// Complex conjugate; real x unchanged.
inline Value conj(Value x) {
  return hlo::is_complex(x.dtype()) ? hlo::complex(hlo::real(x), -hlo::imag(x)) : x;
}

}  // namespace torch_tpu::lower
