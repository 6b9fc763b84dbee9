// SPDX-License-Identifier: Apache-2.0
#include "hlo/attribute.h"

#include <algorithm>

#include "hlo/builder.h"

namespace torch_tpu::hlo {

std::string i64_array(const Dims& values) {
  std::string s = "array<i64";
  for (size_t i = 0; i < values.size(); ++i) {
    s += i ? ", " : ": ";
    s += std::to_string(values[i]);
  }
  return s += '>';
}

std::string i1_array(const std::vector<bool>& values) {
  std::string s = "array<i1";
  for (size_t i = 0; i < values.size(); ++i) {
    s += i ? ", " : ": ";
    s += values[i] ? "true" : "false";
  }
  return s += '>';
}

std::string pair_matrix(const std::vector<std::pair<int64_t, int64_t>>& rows) {
  std::string s = "dense<";
  if (!rows.empty()) {
    s += '[';
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i) s += ", ";
      s += str(Dims{rows[i].first, rows[i].second});
    }
    s += ']';
  }
  return s += "> : tensor<" + std::to_string(rows.size()) + "x2xi64>";
}

std::string quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string s = "\"";
  for (unsigned char c : text) {
    if (c < 0x20 || c == '"' || c == '\\' || c >= 0x7f) {
      s += '\\';
      s += kHex[c >> 4];
      s += kHex[c & 15];
    } else {
      s += static_cast<char>(c);
    }
  }
  return s += '"';
}

namespace {

std::string failure(std::string_view op, const Values& operands, std::string_view why) {
  std::string s(op.substr(op.rfind('.') + 1));  // without the dialect; all of it if there is none
  for (size_t i = 0; i < operands.size(); ++i) {
    s += i ? ", " : " of ";
    s += operands[i] ? operands[i].type().str() : "null";
  }
  s += ": ";
  s += why;
  return s;
}

}  // namespace

void fail(std::string_view op, const Values& operands, std::string_view why) {
  throw Error(failure(op, operands, why));
}

void dtypes_differ(std::string_view op, const Values& operands) {
  throw DTypeError(failure(op, operands, "dtypes differ"), operands.front().dtype(), true);
}

void dtype_not_supported(std::string_view op, const Values& operands, std::string_view why) {
  throw DTypeError(failure(op, operands, why), operands.front().dtype(), false);
}

int64_t wrap_dim(std::string_view op, int64_t dim, Value x) {
  if (dim < -x.rank() || dim >= x.rank()) {
    fail(op, {x}, "dimension " + std::to_string(dim) + " is out of range");
  }
  return dim < 0 ? dim + x.rank() : dim;
}

Dims wrap_dims(std::string_view op, const Dims& dims, Value x) {
  Dims out;
  out.reserve(dims.size());
  for (int64_t d : dims) {
    int64_t w = wrap_dim(op, d, x);
    if (std::find(out.begin(), out.end(), w) != out.end()) {
      fail(op, {x}, "dimension " + std::to_string(d) + " appears twice in " + str(dims));
    }
    out.push_back(w);
  }
  return out;
}

void require_same_dtype(std::string_view op, const Values& xs) {
  for (const Value& x : xs) {
    if (!x) fail(op, xs, "an operand is null");
    if (x.dtype() != xs.front().dtype()) dtypes_differ(op, xs);
  }
}

void require_same_type(std::string_view op, const Values& xs) {
  require_same_dtype(op, xs);
  for (const Value& x : xs) {
    if (x.dims() != xs.front().dims()) fail(op, xs, "shapes differ");
  }
}

void require_scalar(std::string_view op, Value x) {
  if (x.rank() != 0) fail(op, {x}, "a rank-0 value is needed");
}

Value emit1(std::string_view op, const Values& operands, std::string_view attributes, Type result,
            const std::vector<std::string>& regions) {
  if (!operands.front()) fail(op, operands, "an operand is null");
  return operands.front().builder().emit(op, operands, attributes, {std::move(result)}, regions)[0];
}

}  // namespace torch_tpu::hlo
