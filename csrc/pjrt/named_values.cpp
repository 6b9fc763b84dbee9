// SPDX-License-Identifier: Apache-2.0
#include "pjrt/named_values.h"

#include "pjrt/args.h"

namespace torch_tpu::pjrt {
namespace {

struct Fill {
  PJRT_NamedValue& to;
  void operator()(const std::string& value) const {
    to.type = PJRT_NamedValue_kString;
    to.string_value = value.data();
    to.value_size = value.size();
  }
  void operator()(bool value) const {
    to.type = PJRT_NamedValue_kBool;
    to.bool_value = value;
  }
  void operator()(int64_t value) const {
    to.type = PJRT_NamedValue_kInt64;
    to.int64_value = value;
  }
  void operator()(const std::vector<int64_t>& value) const {
    to.type = PJRT_NamedValue_kInt64List;
    to.int64_array_value = value.data();
    to.value_size = value.size();
  }
  void operator()(float value) const {
    to.type = PJRT_NamedValue_kFloat;
    to.float_value = value;
  }
};

std::string text_of(const PJRT_NamedValue& value) {
  switch (number(value.type)) {
    case PJRT_NamedValue_kString:
      return std::string(value.string_value, value.value_size);
    case PJRT_NamedValue_kInt64:
      return std::to_string(value.int64_value);
    case PJRT_NamedValue_kFloat:
      return std::to_string(value.float_value);
    case PJRT_NamedValue_kBool:
      return value.bool_value ? "true" : "false";
    case PJRT_NamedValue_kInt64List: {
      std::string text;
      for (size_t i = 0; i < value.value_size; ++i) {
        text += (i == 0 ? "" : ".") + std::to_string(value.int64_array_value[i]);
      }
      return text;
    }
  }
  return "";  // a kind newer than our header
}

}  // namespace

std::vector<PJRT_NamedValue> to_named_values(const Options& options) {
  std::vector<PJRT_NamedValue> values;
  for (const auto& [name, value] : options) {
    PJRT_NamedValue& to = values.emplace_back(PJRT_NamedValue{});
    to.struct_size = PJRT_NamedValue_STRUCT_SIZE;
    to.name = name.data();
    to.name_size = name.size();
    to.value_size = 1;
    std::visit(Fill{to}, value);
  }
  return values;
}

std::map<std::string, std::string> to_text(const PJRT_NamedValue* values, size_t count) {
  std::map<std::string, std::string> text;
  for (size_t i = 0; i < count; ++i) {
    text.emplace(std::string(values[i].name, values[i].name_size), text_of(values[i]));
  }
  return text;
}

}  // namespace torch_tpu::pjrt
