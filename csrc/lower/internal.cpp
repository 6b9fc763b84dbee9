// SPDX-License-Identifier: Apache-2.0
// Lowerings that the layer above calls by name: pieces of operators whose arguments need the host
// (sizes from values), and of decompositions.
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

// `token` as it is; a RuntimeError of `message` when the host next waits, if `holds` (rank 0) is
// false. How decompositions refuse what only the device knows.
Value assert_async(Context& ctx, Value holds, const std::string& message, Value token) {
  ctx.builder.check(~hlo::convert(holds, DType::pred), "RuntimeError: " + message);
  return token;
}

}  // namespace

void register_internal(Registry& r) {
  r.add("tpu::arange", arange);
  r.add("aten::_functional_assert_async.msg", assert_async);
}

}  // namespace torch_tpu::lower
