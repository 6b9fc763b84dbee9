// SPDX-License-Identifier: Apache-2.0
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Comparisons, predicates, logic, and choices by a condition.
namespace torch_tpu::lower {
namespace {

using hlo::Compare;

// An order comparison: CPU's kernel refuses complex.
template <Compare direction>
Value ordered(Value a, Value b) {
  constexpr const char* kernel = direction == Compare::lt   ? "lt_cpu"
                                 : direction == Compare::le ? "le_cpu"
                                 : direction == Compare::gt ? "gt_cpu"
                                                            : "ge_cpu";
  require_not_complex(kernel, a);
  return compare(a, b, direction);
}

// A predicate of either part of a complex number, or of a real one.
template <Value (*f)(Value)>
Value either_part(Value x) {
  return hlo::is_complex(x.dtype()) ? f(real(x)) | f(imag(x)) : f(x);
}

// a, or `value` where a is 0: a > 0 is 1, a < 0 and NaN are 0.
Value heaviside(Value a, Value value) {
  require_not_complex_or("heaviside is not yet implemented for complex tensors.", a);
  return select(a == 0, value, convert(a > 0, a.dtype()));
}

Value copysign_checked(Value magnitude, Value sign) {
  require_not_complex("copysign_cpu", magnitude);
  return copysign(magnitude, sign);
}

Value signbit(Value x) {
  require_not_complex_or("signbit is not implemented for complex tensors.", x,
                         UserError::Kind::not_implemented);
  return sign_bit(x);
}
Value isposinf(Value x) {
  require_not_complex_or("isposinf does not support complex inputs.", x);
  return is_inf(x) & ~sign_bit(x);
}
Value isneginf(Value x) {
  require_not_complex_or("isneginf does not support complex inputs.", x);
  return is_inf(x) & sign_bit(x);
}

// condition != 0 ? a : b;  a and b promoted, condition bool or uint8.
Value where(Context& ctx, Value condition, Arg a, Arg b) {
  if (condition.dtype() != DType::pred && condition.dtype() != DType::u8) {
    throw UserError(
        "where expected condition to be a boolean tensor, but got a tensor with dtype " +
        std::string(scalar_type_name(condition.dtype())));
  }
  const DType t = result_type({a, b}, ctx.default_dtype);
  return select(convert(condition, DType::pred), convert(as_value(a), t), convert(as_value(b), t));
}

// self with `value` (converted to self's dtype) where the mask is set; the two broadcast together.
Value masked_fill(Value self, Value mask, Value value) {
  if (mask.dtype() != DType::pred) {
    throw UserError("masked_fill_ only supports boolean masks, but got mask with dtype " +
                    cpp_type_name(mask.dtype()));
  }
  return select(mask, cast(value, self.dtype()), self);
}

}  // namespace

void register_pointwise_compare(Registry& r) {
  const auto comparison = [&](const std::string& op, Value (*f)(Value, Value)) {
    for (const char* overload : {".Tensor", ".Scalar"})
      r.pointwise("aten::" + op + overload, Promote::compare, 2, f);
  };
  comparison("eq", [](Value a, Value b) { return a == b; });
  comparison("ne", [](Value a, Value b) { return a != b; });
  comparison("lt", ordered<Compare::lt>);
  comparison("le", ordered<Compare::le>);
  comparison("gt", ordered<Compare::gt>);
  comparison("ge", ordered<Compare::ge>);

  r.pointwise("aten::logical_and", Promote::logical, 2, hlo::and_);
  r.pointwise("aten::logical_or", Promote::logical, 2, hlo::or_);
  r.pointwise("aten::logical_xor", Promote::logical, 2, hlo::xor_);
  r.pointwise("aten::logical_not", Promote::logical, 1, hlo::not_);

  const auto predicate = [&](const std::string& op, Value (*f)(Value)) {
    r.pointwise("aten::" + op, Promote::predicate, 1, f);
  };
  predicate("isnan", either_part<hlo::is_nan>);
  predicate("isinf", either_part<hlo::is_inf>);
  predicate("isfinite", [](Value x) { return is_finite(real(x)) & is_finite(imag(x)); });
  predicate("isposinf", isposinf);
  predicate("isneginf", isneginf);
  predicate("signbit", signbit);

  r.pointwise("aten::heaviside", Promote::arithmetic, 2, heaviside);
  r.pointwise("aten::copysign.Tensor", Promote::to_floating, 2, copysign_checked);
  r.pointwise("aten::copysign.Scalar", Promote::to_floating, 2, copysign_checked);
  r.add("aten::where.self", where);
  r.add("aten::masked_fill.Scalar", masked_fill);
  r.add("aten::masked_fill.Tensor", masked_fill);
}

}  // namespace torch_tpu::lower
