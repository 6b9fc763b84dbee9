// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/program.h"
#include "lower/registry.h"

// Lowerings called as eager, torch.compile and planning call them, with no torch anywhere:
//   Call c;
//   Value x = c.p.input<float>({2}, {1, 2});
//   c.p.run(client(), c("aten::exp", {x}))
namespace torch_tpu::lower {

class Call {
 public:
  hlo::Program p;
  Context ctx{p.b, DType::f32, hlo::Precision::highest, {}};

  // Throws std::runtime_error if there is no such lowering.
  Values operator()(std::string_view name, const Args& args) {
    const Entry* entry = Registry::global().find(name);
    if (!entry) throw std::runtime_error("no lowering " + std::string(name));
    return entry->call(ctx, args);
  }
  Wrapped number(int64_t v) { return {hlo::constant(p.b, DType::s64, v)}; }
  Wrapped number(double v) { return {hlo::constant(p.b, DType::f64, v)}; }
  Wrapped boolean(bool v) { return {hlo::constant(p.b, DType::pred, v)}; }
};

using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;
inline const Arg kNone = std::monostate{};

}  // namespace torch_tpu::lower
