// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/ops.h"

// What the op files share: printing of attributes in MLIR's syntax, and checks that throw
// hlo::Error.
namespace torch_tpu::hlo {

std::string i64_array(const Dims& values);              // array<i64: 1, 2>
std::string i1_array(const std::vector<bool>& values);  // array<i1: true, false>
std::string pair_matrix(
    const std::vector<std::pair<int64_t, int64_t>>& rows);  // dense<[[1, 2]]> : tensor<1x2xi64>
std::string quoted(std::string_view s);                     // an MLIR string literal

// Throws hlo::Error "op of T1, T2: why".
[[noreturn]] void fail(std::string_view op, const Values& operands, std::string_view why);

// DTypeError: "op of T1, T2: dtypes differ", "op of T1: dtype is not supported".
[[noreturn]] void dtypes_differ(std::string_view op, const Values& operands);
[[noreturn]] void dtype_not_supported(std::string_view op, const Values& operands,
                                      std::string_view why = "dtype is not supported");

// `dim` counted from the front; throws when outside [-rank, rank).
int64_t wrap_dim(std::string_view op, int64_t dim, Value x);
// All of `dims`, each at most once.
Dims wrap_dims(std::string_view op, const Dims& dims, Value x);
// Throws unless all have the first one's dtype (and, for `require_same_type`, its shape).
void require_same_dtype(std::string_view op, const Values& xs);
void require_same_type(std::string_view op, const Values& xs);
void require_scalar(std::string_view op, Value x);

// One operand-list, one result: the common case of Builder::emit.
Value emit1(std::string_view op, const Values& operands, std::string_view attributes, Type result,
            const std::vector<std::string>& regions = {});

// The region of reduce, reduce_window or scatter: checks that `combine` gives one value a type, of
// that type.
std::string combine_region(std::string_view op, Builder& b, const std::vector<Type>& scalars,
                           const Combine& combine);

}  // namespace torch_tpu::hlo
