// SPDX-License-Identifier: Apache-2.0
#include "lower/promote.h"

#include <algorithm>

namespace torch_tpu::lower {
namespace {

using hlo::is_complex;
using hlo::is_floating;

// bool < integer < floating < complex
int kind(DType t) {
  if (t == DType::pred) return 0;
  if (is_complex(t)) return 3;
  return is_floating(t) ? 2 : 1;
}

bool is_float8(DType t) { return t >= DType::f8e5m2; }

// What one rank (dimensioned, 0-dim, number) of operands has come to so far.
struct Part {
  bool any = false;
  DType type = DType::pred;
  void take(DType t) {
    type = any ? promote_types(type, t) : t;
    any = true;
  }
};

DType number_type(DType t, DType default_dtype) {
  if (is_complex(t)) return hlo::complex_type(default_dtype);
  if (is_floating(t)) return default_dtype;
  return t;  // pred, s64
}

// A lower-ranked part changes the result only if its kind is higher.
DType combine(const Part& high, const Part& low) {
  if (!high.any) return low.type;
  if (!low.any || kind(high.type) >= kind(low.type)) {
    return high.type;
  }
  return promote_types(high.type, low.type);
}

// int32 tensor + float number: the number's dtype; half tensor + complex number: the complex of the
// tensor's width.
DType combine_weak(const Part& high, const Part& low) {
  if (high.any && low.any && kind(low.type) == 3 && kind(high.type) == 2)
    return hlo::complex_type(high.type);
  return combine(high, low);
}

}  // namespace

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  const int ka = kind(a), kb = kind(b);
  if (ka == 3 || kb == 3) {
    const bool wide = a == DType::c128 || b == DType::c128 || a == DType::f64 || b == DType::f64;
    return wide ? DType::c128 : DType::c64;
  }
  if (ka != kb) return ka > kb ? a : b;
  if (ka == 2) {
    if (is_float8(a) || is_float8(b))
      throw UserError("Promotion for Float8 Types is not supported, attempted to promote " +
                      std::string(hlo::name(a)) + " and " + std::string(hlo::name(b)));
    const int64_t wa = hlo::itemsize(a), wb = hlo::itemsize(b);
    if (wa == wb) return DType::f32;  // f16 with bf16
    return wa > wb ? a : b;
  }
  // integers: the wider; unsigned with signed gives the next signed type that holds both
  const bool ua = hlo::is_unsigned(a), ub = hlo::is_unsigned(b);
  const int64_t wa = hlo::itemsize(a), wb = hlo::itemsize(b);
  if (ua == ub) return wa > wb ? a : b;
  const DType s = ua ? b : a;
  const int64_t wu = ua ? wa : wb, ws = ua ? wb : wa;
  if (ws > wu) return s;
  switch (wu) {
    case 1:
      return DType::s16;
    case 2:
      return DType::s32;
    default:
      return DType::s64;
  }
}

DType result_type(const Args& operands, DType default_dtype) {
  Part dimensioned, zero_dim, number;
  auto take = [&](const Value& v) {
    if (v) (v.rank() > 0 ? dimensioned : zero_dim).take(v.dtype());
  };
  for (const Arg& a : operands) {
    if (auto* v = std::get_if<Value>(&a))
      take(*v);
    else if (auto* w = std::get_if<Wrapped>(&a))
      number.take(number_type(w->value.dtype(), default_dtype));
    else if (auto* vs = std::get_if<Values>(&a))
      for (const Value& v : *vs) take(v);
  }
  Part tensors{dimensioned.any || zero_dim.any, combine(dimensioned, zero_dim)};
  return combine_weak(tensors, number);
}

DType to_floating(DType t, DType default_dtype) { return kind(t) >= 2 ? t : default_dtype; }

Value as_value(const Arg& a) {
  if (auto* v = std::get_if<Value>(&a)) return *v;
  return std::get<Wrapped>(a).value;
}

std::pair<Value, Value> promoted(Value a, Value b) {
  const DType t = result_type({a, b}, DType::f32);
  return {hlo::convert(a, t), hlo::convert(b, t)};
}

}  // namespace torch_tpu::lower
