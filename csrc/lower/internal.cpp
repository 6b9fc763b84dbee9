// SPDX-License-Identifier: Apache-2.0
// Lowerings that the layer above calls by name: pieces of operators whose arguments need the host
// (sizes from values).
#include "lower/registry.h"

namespace torch_tpu::lower {
namespace {

// out_i = start + i * step, i < length. Integers in 64 bits; floating results in f64 and rounded
// once, as CPU does.
//   start, step  rank-0 operands: every range of one length and dtype shares a program
Value arange(Context& ctx, Value start, Value step, int64_t length, int64_t dtype) {
  const auto t = static_cast<DType>(dtype);
  const DType compute =
      hlo::is_integral(t) && !hlo::is_floating(start.dtype()) && !hlo::is_floating(step.dtype())
          ? DType::s64
          : DType::f64;
  Value i = hlo::iota(ctx.builder, Type{compute, {length}}, 0);
  return hlo::convert(hlo::convert(start, compute) + i * hlo::convert(step, compute), t);
}

}  // namespace

void register_internal(Registry& r) { r.add("tpu::arange", arange); }

}  // namespace torch_tpu::lower
