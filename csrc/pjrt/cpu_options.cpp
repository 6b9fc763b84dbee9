// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <unordered_set>

#include "pjrt/client.h"

namespace torch_tpu::pjrt {
namespace {

// Whether a NaN can get lost in the program: it may take a maximum or a minimum. These take none.
bool may_lose_nan(std::string_view text) {
  // clang-format off
  static const std::unordered_set<std::string_view> harmless = {
      "add", "subtract", "multiply", "divide", "negate", "dot_general",
      "constant", "convert", "select", "compare",
      "broadcast_in_dim", "reshape", "transpose", "concatenate",
      "slice", "dynamic_slice", "dynamic_update_slice"};
  // clang-format on
  constexpr std::string_view kOp = " = \"";  // %3 = "stablehlo.add"(%1, %2)
  for (size_t at = text.find(kOp); at != text.npos; at = text.find(kOp, at)) {
    at += kOp.size();
    std::string_view name = text.substr(at, text.find('"', at) - at);
    constexpr std::string_view kDialect = "stablehlo.";
    if (!name.starts_with(kDialect)) return true;
    if (!harmless.contains(name.substr(kDialect.size()))) return true;
  }
  return false;
}

}  // namespace

CompileOptions Client::options_for(std::string_view stablehlo) const {
  CompileOptions options;
  if (platform_name() != "cpu") return options;
  // Tied to the device where there is one: launches in 80 ns less, a thirtieth of an add. Such a
  // client has no devices elsewhere that the plugin could choose instead.
  options.portable = devices_.size() > 1;
  // Only where needed: the plugin copies its overrides at every launch, a thirtieth of an add.
  if (may_lose_nan(stablehlo)) {
    // On, XLA:CPU's maximum and minimum lose NaNs; it is on by default.
    options.overrides["xla_cpu_enable_fast_min_max"] = false;
    // Of the library that XLA:CPU gives whole fusions to, the products and not the reductions: its
    // maximum and minimum of a long row drop a NaN (plugins of PJRT 0.115).
    options.overrides["xla_cpu_experimental_ynn_fusion_type"] =
        std::string("LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT");
  }
  return options;
}

}  // namespace torch_tpu::pjrt
