// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/value.h"

namespace torch_tpu::hlo {

// What `Builder::finish` returns: the module and what a launcher must know of it.
struct Module {
  std::string text;  // StableHLO, MLIR generic form; entry function "main"
  std::vector<int>
      inputs;  // parameter numbers that `main` really takes, ascending: unused ones are dropped
  std::vector<Type> outputs;
  std::vector<int> aliases;  // per output: the parameter number it may overwrite (donation), or -1
  std::vector<std::string>
      checks;  // messages of `check`; what each found is among the last outputs, in order
};

// Which compiler a program is for, where one form does not suit all: XLA:CPU vectorises some
// reductions only across a kept dimension of 16, which a TPU would pad to 128.
enum class Target : uint8_t { any, cpu };

// Builds one StableHLO program as text while it is being described, inferring and checking every
// shape. Not thread-safe. Operations are the free functions of hlo/ops.h; they find the builder in
// their operands.
class Builder {
 public:
  explicit Builder(Target target = Target::any);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Target target() const;

  // Declares parameter number `index` (any order, each once). Null type mismatches throw
  // hlo::Error.
  Value parameter(int index, const Type& type);

  // Remembers that `violated` must be reported with `message` when the host next waits for the
  // device. It is a rank-0 pred, true where the user's data is wrong, or what the message needs to
  // know: an s64 of rank 0 or 1 whose (first) element is 0 if all is well; else "{0}" in the
  // message stands for that element, "{1}" for the next. The program goes on with whatever values
  // the lowering made safe. The user sees an IndexError, or a RuntimeError or LinAlgError where the
  // message starts with "RuntimeError: " or "LinAlgError: ".
  void check(Value violated, std::string message);

  // Lets output `output` reuse the storage of parameter `parameter`; types must be equal.
  // Ignored where the plugin cannot.
  void alias(int output, int parameter);

  // Ends the program with these results.
  Module finish(const Values& results);

  // --- used by hlo/ops.cpp
  // ---------------------------------------------------------------------------------------
  const Type& type(int32_t id) const;
  // Emits one operation in generic form: %r = "name"(operands) <{attributes}> ({regions}) : (...)
  // -> (...). `attributes` is the text between <{ and }> (may be empty); `regions` texts come from
  // `region`.
  Values emit(std::string_view name, const Values& operands, std::string_view attributes,
              const std::vector<Type>& results, const std::vector<std::string>& regions = {});
  // Runs `body` on fresh block arguments of these types and returns the region's text, ended by
  // "stablehlo.return" of what body returned. Values made inside must not be used outside.
  using Body = std::function<Values(const Values&)>;
  std::string region(const std::vector<Type>& arguments, const Body& body,
                     Values* results = nullptr);

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace torch_tpu::hlo
