// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops.h"

namespace torch_tpu::hlo {
namespace {

Value like(Value x, double v) { return constant(x.builder(), x.dtype(), v); }

}  // namespace

Value operator+(Value a, Value b) { return add(a, b); }
Value operator-(Value a, Value b) { return subtract(a, b); }
Value operator*(Value a, Value b) { return multiply(a, b); }
Value operator/(Value a, Value b) { return divide(a, b); }
Value operator-(Value x) { return negate(x); }
Value operator+(Value a, double b) { return add(a, like(a, b)); }
Value operator-(Value a, double b) { return subtract(a, like(a, b)); }
Value operator*(Value a, double b) { return multiply(a, like(a, b)); }
Value operator/(Value a, double b) { return divide(a, like(a, b)); }
Value operator+(double a, Value b) { return add(like(b, a), b); }
Value operator-(double a, Value b) { return subtract(like(b, a), b); }
Value operator*(double a, Value b) { return multiply(like(b, a), b); }
Value operator/(double a, Value b) { return divide(like(b, a), b); }
Value operator==(Value a, Value b) { return compare(a, b, Compare::eq); }
Value operator!=(Value a, Value b) { return compare(a, b, Compare::ne); }
Value operator<(Value a, Value b) { return compare(a, b, Compare::lt); }
Value operator<=(Value a, Value b) { return compare(a, b, Compare::le); }
Value operator>(Value a, Value b) { return compare(a, b, Compare::gt); }
Value operator>=(Value a, Value b) { return compare(a, b, Compare::ge); }
Value operator==(Value a, double b) { return compare(a, like(a, b), Compare::eq); }
Value operator!=(Value a, double b) { return compare(a, like(a, b), Compare::ne); }
Value operator<(Value a, double b) { return compare(a, like(a, b), Compare::lt); }
Value operator<=(Value a, double b) { return compare(a, like(a, b), Compare::le); }
Value operator>(Value a, double b) { return compare(a, like(a, b), Compare::gt); }
Value operator>=(Value a, double b) { return compare(a, like(a, b), Compare::ge); }
Value operator&(Value a, Value b) { return and_(a, b); }
Value operator|(Value a, Value b) { return or_(a, b); }
Value operator^(Value a, Value b) { return xor_(a, b); }
Value operator~(Value p) { return not_(p); }

}  // namespace torch_tpu::hlo
