// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// StableHLO written by hand: the tests of this layer must not depend on the layer that writes it.
namespace torch_tpu::pjrt {

// A module whose main takes `arguments` ("%0: tensor<3xf32>, ...") to `results` ("tensor<3xf32>").
inline std::string module(const std::string& arguments, const std::string& results,
                          const std::string& body, const std::string& argument_attributes = "") {
  std::string types;  // the arguments without their names
  for (size_t at = 0; (at = arguments.find(": ", at)) != std::string::npos;) {
    at += 2;
    const size_t end = arguments.find(", %", at);
    types += (types.empty() ? "" : ", ") + arguments.substr(at, end - at);
  }
  const std::string attributes =
      argument_attributes.empty() ? "" : ", arg_attrs = [" + argument_attributes + "]";
  return "\"builtin.module\"() ({\n"
         "  \"func.func\"() <{function_type = (" +
         types + ") -> (" + results + "), sym_name = \"main\"" + attributes + "}> ({\n  ^bb0(" +
         arguments + "):\n" + body + "\n  }) : () -> ()\n}) : () -> ()\n";
}

// x + y, elementwise over `type` ("tensor<3xf32>"). `argument_attributes` as in func.func: "{...},
// {...}".
inline std::string add(const std::string& type, const std::string& argument_attributes = "") {
  return module("%0: " + type + ", %1: " + type, type,
                "    %2 = \"stablehlo.add\"(%0, %1) : (" + type + ", " + type + ") -> " + type +
                    "\n" + "    \"func.return\"(%2) : (" + type + ") -> ()",
                argument_attributes);
}

// x + y that may be written over x.
inline std::string add_over_x(const std::string& type) {
  return add(type, "{tf.aliasing_output = 0 : i32}, {}");
}

// The sum of x over `num_partitions` devices, each of which holds one x.
inline std::string all_reduce(const std::string& type, int num_partitions) {
  std::string ids;
  for (int i = 0; i < num_partitions; ++i) ids += (i == 0 ? "" : ", ") + std::to_string(i);
  return module(
      "%0: " + type, type,
      "    %1 = \"stablehlo.all_reduce\"(%0) <{replica_groups = dense<[[" + ids +
          "]]> : tensor<1x" + std::to_string(num_partitions) +
          "xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
          "use_global_device_ids}> ({\n"
          "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
          "      %s = \"stablehlo.add\"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
          "      \"stablehlo.return\"(%s) : (tensor<f32>) -> ()\n"
          "    }) : (" +
          type + ") -> " + type + "\n    \"func.return\"(%1) : (" + type + ") -> ()");
}

}  // namespace torch_tpu::pjrt
