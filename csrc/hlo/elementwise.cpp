// SPDX-License-Identifier: Apache-2.0
#include "hlo/attribute.h"
#include "hlo/ops.h"

namespace torch_tpu::hlo {
namespace {

// Dtypes that an operation takes, as a set of kinds.
enum Kinds : unsigned { kPred = 1, kInteger = 2, kFloating = 4, kComplex = 8 };
constexpr unsigned kNumeric = kInteger | kFloating | kComplex;

// Of operands of one dtype.
void require_kind(std::string_view op, const Values& xs, unsigned kinds) {
  const DType t = xs.front().dtype();
  const unsigned kind = t == DType::pred ? kPred
                        : is_integral(t) ? kInteger
                        : is_floating(t) ? kFloating
                                         : kComplex;
  if (!(kind & kinds)) dtype_not_supported(op, xs);
}

Value unary(std::string_view op, Value x, unsigned kinds) {
  require_kind(op, {x}, kinds);
  return emit1(op, {x}, "", x.type());
}

// Brings the operands to their common shape.
Values broadcast_all(std::string_view op, const Values& xs) {
  Dims dims = xs.front().dims();
  for (const Value& x : xs) {
    if (x.dims() == dims) continue;
    try {
      dims = broadcast_dims(dims, x.dims());
    } catch (const Error&) {
      fail(op, xs, "shapes do not broadcast");
    }
  }
  Values out;
  for (const Value& x : xs) out.push_back(broadcast_to(x, dims));
  return out;
}

Value binary(std::string_view op, Value a, Value b, unsigned kinds) {
  require_same_dtype(op, {a, b});
  require_kind(op, {a, b}, kinds);
  if (a.dims() == b.dims()) return emit1(op, {a, b}, "", a.type());
  const Values both = broadcast_all(op, {a, b});
  return emit1(op, both, "", both[0].type());
}

std::string_view direction_name(Compare direction) {
  constexpr std::string_view kNames[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  return kNames[static_cast<int>(direction)];
}

Value emit_compare(Value a, Value b, Compare direction, std::string_view type) {
  require_same_dtype("compare", {a, b});
  const Values both = broadcast_all("compare", {a, b});
  std::string attributes = "comparison_direction = #stablehlo<comparison_direction ";
  attributes += direction_name(direction);
  attributes += ">, compare_type = #stablehlo<comparison_type ";
  attributes += type;
  attributes += '>';
  return emit1("stablehlo.compare", both, attributes, {DType::pred, both[0].dims()});
}

// Complex numbers as a last dimension of size 2, and back.
Value parts_of_complex(Value x) {
  return concatenate({unsqueeze(real(x), -1), unsqueeze(imag(x), -1)}, -1);
}

Value complex_of_parts(Value x) {
  const int64_t last = x.rank() - 1;
  return complex(squeeze(slice_in_dim(x, last, 0, 1), {last}),
                 squeeze(slice_in_dim(x, last, 1, 2), {last}));
}

}  // namespace

Value add(Value a, Value b) { return binary("stablehlo.add", a, b, kNumeric | kPred); }
Value subtract(Value a, Value b) { return binary("stablehlo.subtract", a, b, kNumeric); }
Value multiply(Value a, Value b) { return binary("stablehlo.multiply", a, b, kNumeric | kPred); }
Value divide(Value a, Value b) { return binary("stablehlo.divide", a, b, kNumeric); }
Value remainder(Value a, Value b) {
  return binary("stablehlo.remainder", a, b, kInteger | kFloating);
}
Value power(Value a, Value b) { return binary("stablehlo.power", a, b, kNumeric); }
Value maximum(Value a, Value b) {
  return binary("stablehlo.maximum", a, b, kInteger | kFloating | kPred);
}
Value minimum(Value a, Value b) {
  return binary("stablehlo.minimum", a, b, kInteger | kFloating | kPred);
}
Value atan2(Value a, Value b) { return binary("stablehlo.atan2", a, b, kFloating | kComplex); }
Value and_(Value a, Value b) { return binary("stablehlo.and", a, b, kInteger | kPred); }
Value or_(Value a, Value b) { return binary("stablehlo.or", a, b, kInteger | kPred); }
Value xor_(Value a, Value b) { return binary("stablehlo.xor", a, b, kInteger | kPred); }
Value not_(Value x) { return unary("stablehlo.not", x, kInteger | kPred); }
Value shift_left(Value a, Value b) { return binary("stablehlo.shift_left", a, b, kInteger); }
Value shift_right_arithmetic(Value a, Value b) {
  return binary("stablehlo.shift_right_arithmetic", a, b, kInteger);
}
Value shift_right_logical(Value a, Value b) {
  return binary("stablehlo.shift_right_logical", a, b, kInteger);
}

Value abs(Value x) {
  if (is_unsigned(x.dtype())) return x;
  require_kind("stablehlo.abs", {x}, kNumeric);
  return emit1("stablehlo.abs", {x}, "", {real_type(x.dtype()), x.dims()});
}

Value negate(Value x) { return unary("stablehlo.negate", x, kNumeric); }

Value sign(Value x) {
  if (is_unsigned(x.dtype())) return minimum(x, full(x.builder(), {x.dtype(), {}}, 1));
  return unary("stablehlo.sign", x, kNumeric);
}

Value floor(Value x) { return unary("stablehlo.floor", x, kFloating); }
Value ceil(Value x) { return unary("stablehlo.ceil", x, kFloating); }
Value round_nearest_even(Value x) { return unary("stablehlo.round_nearest_even", x, kFloating); }
Value round_nearest_afz(Value x) { return unary("stablehlo.round_nearest_afz", x, kFloating); }
Value exponential(Value x) { return unary("stablehlo.exponential", x, kFloating | kComplex); }
Value exponential_minus_one(Value x) {
  return unary("stablehlo.exponential_minus_one", x, kFloating | kComplex);
}
Value log(Value x) { return unary("stablehlo.log", x, kFloating | kComplex); }
Value log_plus_one(Value x) { return unary("stablehlo.log_plus_one", x, kFloating | kComplex); }
Value logistic(Value x) { return unary("stablehlo.logistic", x, kFloating | kComplex); }
Value tanh(Value x) { return unary("stablehlo.tanh", x, kFloating | kComplex); }
Value tan(Value x) { return unary("stablehlo.tan", x, kFloating | kComplex); }
Value sine(Value x) { return unary("stablehlo.sine", x, kFloating | kComplex); }
Value cosine(Value x) { return unary("stablehlo.cosine", x, kFloating | kComplex); }
Value sqrt(Value x) { return unary("stablehlo.sqrt", x, kFloating | kComplex); }
Value rsqrt(Value x) { return unary("stablehlo.rsqrt", x, kFloating | kComplex); }
Value cbrt(Value x) { return unary("stablehlo.cbrt", x, kFloating); }
Value popcnt(Value x) { return unary("stablehlo.popcnt", x, kInteger); }
Value count_leading_zeros(Value x) { return unary("stablehlo.count_leading_zeros", x, kInteger); }

Value is_finite(Value x) {
  const Type result{DType::pred, x.dims()};
  if (is_complex(x.dtype())) return and_(is_finite(real(x)), is_finite(imag(x)));
  if (!is_floating(x.dtype())) return full(x.builder(), result, 1);
  return emit1("stablehlo.is_finite", {x}, "", result);
}

Value real(Value x) {
  if (!is_complex(x.dtype())) return x;
  return emit1("stablehlo.real", {x}, "", {real_type(x.dtype()), x.dims()});
}

Value imag(Value x) {
  if (!is_complex(x.dtype())) return full(x.builder(), x.type(), 0);
  return emit1("stablehlo.imag", {x}, "", {real_type(x.dtype()), x.dims()});
}

Value complex(Value re, Value im) {
  require_same_dtype("stablehlo.complex", {re, im});
  if (re.dtype() != DType::f32 && re.dtype() != DType::f64) {
    fail("stablehlo.complex", {re, im}, "f32 or f64 is needed");
  }
  const Values both = broadcast_all("stablehlo.complex", {re, im});
  return emit1("stablehlo.complex", both, "", {complex_type(re.dtype()), both[0].dims()});
}

Value convert(Value x, DType t) {
  if (x.dtype() == t) return x;
  if (t == DType::pred) return compare(x, full(x.builder(), {x.dtype(), {}}, 0), Compare::ne);
  if (is_complex(x.dtype()) && !is_complex(t)) return convert(real(x), t);
  return emit1("stablehlo.convert", {x}, "", {t, x.dims()});
}

Value bitcast_convert(Value x, DType t) {
  const DType from = x.dtype();
  if (from == t) return x;
  // A pred is one bit to StableHLO and one byte, 0 or 1, in memory.
  if (from == DType::pred) return bitcast_convert(convert(x, DType::u8), t);
  if (t == DType::pred) return convert(bitcast_convert(x, DType::u8), t);
  // StableHLO has no bitcast between complex and other types.
  if (is_complex(from)) {
    Value parts = parts_of_complex(x);
    if (t == parts.dtype()) return parts;
    if (is_complex(t)) return bitcast_convert(bitcast_convert(parts, real_type(t)), t);
    if (itemsize(t) == itemsize(from)) {
      return bitcast_convert(parts, t);
    }
    // [.., 2] of half of `from`, each split into pieces of t: the last two dimensions are one.
    Value pieces = bitcast_convert(parts, t);
    if (pieces.rank() == parts.rank()) return pieces;
    Dims dims = pieces.dims();
    const int64_t n = dims.back();
    dims.pop_back();
    dims.back() *= n;
    return reshape(pieces, dims);
  }
  if (is_complex(t)) {
    const DType part = real_type(t);
    if (itemsize(from) > itemsize(part)) return complex_of_parts(bitcast_convert(x, part));
    if (itemsize(from) < itemsize(part)) {
      Dims dims = x.dims();
      const int64_t n = itemsize(part) / itemsize(from);
      if (dims.empty() || dims.back() != 2 * n) {
        fail("bitcast_convert", {x},
             "to " + std::string(name(t)) + ": last dimension must be " + std::to_string(2 * n));
      }
      dims.back() = 2;
      dims.push_back(n);
      return complex_of_parts(bitcast_convert(reshape(x, dims), part));
    }
    if (x.rank() == 0 || x.dim(-1) != 2) {
      fail("bitcast_convert", {x}, "to " + std::string(name(t)) + ": last dimension must be 2");
    }
    return complex_of_parts(bitcast_convert(x, part));
  }
  Dims dims = x.dims();
  if (itemsize(from) > itemsize(t)) dims.push_back(itemsize(from) / itemsize(t));
  if (itemsize(from) < itemsize(t)) {
    const int64_t n = itemsize(t) / itemsize(from);
    if (dims.empty() || dims.back() != n) {
      fail("bitcast_convert", {x},
           "to " + std::string(name(t)) + ": last dimension must be " + std::to_string(n));
    }
    dims.pop_back();
  }
  return emit1("stablehlo.bitcast_convert", {x}, "", {t, dims});
}

Value reduce_precision(Value x, int exponent_bits, int mantissa_bits) {
  require_kind("stablehlo.reduce_precision", {x}, kFloating);
  return emit1("stablehlo.reduce_precision", {x},
               "exponent_bits = " + std::to_string(exponent_bits) +
                   " : i32, mantissa_bits = " + std::to_string(mantissa_bits) + " : i32",
               x.type());
}

Value compare(Value a, Value b, Compare direction) {
  if (is_complex(a.dtype()) && direction != Compare::eq && direction != Compare::ne) {
    dtype_not_supported("compare", {a, b}, "complex numbers have no order");
  }
  // Always said: xla-cpu-pjrt 0.0.1 folds a signed comparison of constants as an unsigned one
  // where it is left out.
  const DType t = a.dtype();
  return emit_compare(a, b, direction,
                      is_signed_integral(t)                ? "SIGNED"
                      : is_unsigned(t) || t == DType::pred ? "UNSIGNED"
                                                           : "FLOAT");
}

Value compare_total_order(Value a, Value b, Compare direction) {
  if (!is_floating(a.dtype())) return compare(a, b, direction);
  return emit_compare(a, b, direction, "TOTALORDER");
}

Value select(Value p, Value a, Value b) {
  if (p.dtype() != DType::pred) fail("select", {p, a, b}, "the first operand must be pred");
  if (a.dtype() != b.dtype()) dtypes_differ("select", {p, a, b});
  Values xs = p.rank() == 0 ? broadcast_all("select", {a, b}) : broadcast_all("select", {p, a, b});
  if (p.rank() == 0) xs.insert(xs.begin(), p);  // StableHLO takes a rank-0 predicate as it is
  return emit1("stablehlo.select", xs, "", xs[1].type());
}

Value clamp(Value lo, Value x, Value hi) {
  require_same_dtype("clamp", {lo, x, hi});
  require_kind("clamp", {lo, x, hi}, kInteger | kFloating | kPred);
  if (x.dtype() == DType::pred) return and_(or_(x, lo), hi);  // a TPU's compiler has no such clamp
  if (lo.rank() == 0 && hi.rank() == 0) return emit1("stablehlo.clamp", {lo, x, hi}, "", x.type());
  const Values xs = broadcast_all("clamp", {lo, x, hi});
  return emit1("stablehlo.clamp", xs, "", xs[1].type());
}

Value is_nan(Value x) { return compare(x, x, Compare::ne); }

Value is_inf(Value x) {
  if (is_complex(x.dtype())) return or_(is_inf(real(x)), is_inf(imag(x)));
  if (!is_floating(x.dtype())) return full(x.builder(), {DType::pred, x.dims()}, 0);
  // Neither finite nor NaN: right for formats without an infinity too.
  return and_(not_(is_finite(x)), not_(is_nan(x)));
}

}  // namespace torch_tpu::hlo
