// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// StableHLO written by hand: the tests of this layer must not depend on the layer that writes it.
namespace torch_tpu::pjrt {

// A module whose main takes `arguments` ("%0: tensor<3xf32>, ...") to `results` ("tensor<3xf32>").
inline std::string module(const std::string& arguments, const std::string& results, const std::string& body,
                          const std::string& argument_attributes = "") {
  std::string types;  // the arguments without their names
  for (size_t at = 0; (at = arguments.find(": ", at)) != std::string::npos;) {
    at += 2;
    const size_t end = arguments.find(", %", at);
    types += (types.empty() ? "" : ", ") + arguments.substr(at, end - at);
  }
  const std::string attributes = argument_attributes.empty() ? "" : ", arg_attrs = [" + argument_attributes + "]";
  return "\"builtin.module\"() ({\n"
         "  \"func.func\"() <{function_type = (" + types + ") -> (" + results + "), sym_name = \"main\"" + attributes +
         "}> ({\n  ^bb0(" + arguments + "):\n" + body + "\n  }) : () -> ()\n}) : () -> ()\n";
}

// x + y, elementwise over `type` ("tensor<3xf32>"). `argument_attributes` as in func.func: "{...}, {...}".
inline std::string add(const std::string& type, const std::string& argument_attributes = "") {
  return module("%0: " + type + ", %1: " + type, type,
                "    %2 = \"stablehlo.add\"(%0, %1) : (" + type + ", " + type + ") -> " + type + "\n" +
                "    \"func.return\"(%2) : (" + type + ") -> ()", argument_attributes);
}

// x + y that may be written over x.
inline std::string add_over_x(const std::string& type) {
  return add(type, "{tf.aliasing_output = 0 : i32}, {}");
}

}  // namespace torch_tpu::pjrt
