// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "hlo/attribute.h"
#include "hlo/ops.h"

namespace torch_tpu::hlo {
namespace {

// What a binary floating format can hold. Where it has no infinity, overflow gives NaN.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  bool has_inf;  // exponent all ones: inf and NaNs, as in IEEE 754
  bool has_negative_zero;
  uint64_t nan;         // the quiet NaN's bits
  uint64_t max_finite;  // bits
};

Format format(DType t) {
  switch (t) {
    case DType::f16:
      return {5, 10, 15, true, true, 0x7E00, 0x7BFF};
    case DType::bf16:
      return {8, 7, 127, true, true, 0x7FC0, 0x7F7F};
    case DType::f32:
      return {8, 23, 127, true, true, 0x7FC00000, 0x7F7FFFFF};
    case DType::f64:
      return {11, 52, 1023, true, true, 0x7FF8000000000000, 0x7FEFFFFFFFFFFFFF};
    case DType::f8e5m2:
      return {5, 2, 15, true, true, 0x7E, 0x7B};
    case DType::f8e4m3fn:
      return {4, 3, 7, false, true, 0x7F, 0x7E};
    case DType::f8e5m2fnuz:
      return {5, 2, 16, false, false, 0x80, 0x7F};
    case DType::f8e4m3fnuz:
      return {4, 3, 8, false, false, 0x80, 0x7F};
    default:
      throw Error("constant of " + std::string(name(t)) + ": not a floating type with a sign");
  }
}

// Bits of the power of two nearest to v; f8e8m0fnu has neither sign nor zero.
uint64_t encode_f8e8m0fnu(double v) {
  if (!(v > 0) || std::isinf(v)) return 0xFF;
  int exponent;
  const double fraction = std::frexp(v, &exponent);  // in [0.5, 1)
  exponent += (fraction > 0.75) - 1;
  if (exponent > 127) return 0xFF;
  return static_cast<uint64_t>(std::max(exponent + 127, 0));
}

// Bits of v in the floating type t, rounded to nearest even.
uint64_t encode(DType t, double v) {
  if (t == DType::f64) return std::bit_cast<uint64_t>(v);
  if (t == DType::f8e8m0fnu) return encode_f8e8m0fnu(v);
  const Format f = format(t);
  if (std::isnan(v)) return f.nan;
  const uint64_t sign = static_cast<uint64_t>(std::signbit(v))
                        << (f.exponent_bits + f.mantissa_bits);
  const uint64_t infinity =
      f.has_inf ? ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits : f.nan;
  const uint64_t overflow = f.has_negative_zero ? sign | infinity : infinity;
  if (std::isinf(v)) return overflow;
  int exponent;
  std::frexp(v, &exponent);
  --exponent;  // |v| in [2^exponent, 2^(exponent+1))
  const int lowest = 1 - f.bias;
  const int scale = std::max(exponent, lowest) - f.mantissa_bits;
  // The significand as an integer. scale is a power of two, so only nearbyint rounds, to even.
  uint64_t significand =
      v == 0 ? 0 : static_cast<uint64_t>(std::nearbyint(std::ldexp(std::fabs(v), -scale)));
  if (significand == 0) return f.has_negative_zero ? sign : 0;
  // A subnormal's exponent field is 0; a normal one's hidden bit adds 1 to the field, and so does a
  // carry.
  const uint64_t biased = exponent < lowest ? 0 : static_cast<uint64_t>(exponent + f.bias - 1);
  const uint64_t bits = (biased << f.mantissa_bits) + significand;
  return bits > f.max_finite ? overflow : sign | bits;
}

std::string hex(uint64_t bits, int64_t nbytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string s = "0x";
  for (int64_t i = 2 * nbytes; i-- > 0;) s += kDigits[(bits >> (4 * i)) & 15];
  return s;
}

// A decimal that reads back as exactly v (MLIR reads a double, then rounds to the type: f32 values
// are doubles).
std::string decimal(double v) {
  char buffer[40];
  if (v == std::floor(v) && std::fabs(v) < 1e6) {
    std::string s(buffer,
                  std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed).ptr);
    return s + ".0";
  }
  std::string s(
      buffer, std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific).ptr);
  if (s.find('.') == std::string::npos) s.insert(s.find('e'), ".0");  // MLIR wants the point
  return s;
}

std::string floating_text(DType t, double v) {
  if (t == DType::f64 || t == DType::f32) {
    const double rounded = t == DType::f32 ? static_cast<double>(static_cast<float>(v)) : v;
    if (std::isfinite(rounded)) return decimal(rounded);
  }
  return hex(encode(t, v), itemsize(t));
}

std::string integer_text(DType t, int64_t v) {
  switch (t) {
    case DType::s8:
      return std::to_string(static_cast<int8_t>(v));
    case DType::s16:
      return std::to_string(static_cast<int16_t>(v));
    case DType::s32:
      return std::to_string(static_cast<int32_t>(v));
    case DType::s64:
      return std::to_string(v);
    case DType::u8:
      return std::to_string(static_cast<uint8_t>(v));
    case DType::u16:
      return std::to_string(static_cast<uint16_t>(v));
    case DType::u32:
      return std::to_string(static_cast<uint32_t>(v));
    default:
      return std::to_string(static_cast<uint64_t>(v));
  }
}

std::string complex_text(DType t, std::complex<double> v) {
  const DType part = real_type(t);
  return "(" + floating_text(part, v.real()) + ", " + floating_text(part, v.imag()) + ")";
}

// A double that rounds to t as v itself does: beyond 53 bits the dropped ones leave a sticky bit.
double odd_rounded(int64_t v) {
  constexpr int64_t kDropped = 0x7FF;
  if (v >= -(int64_t{1} << 53) && v <= (int64_t{1} << 53)) return static_cast<double>(v);
  return static_cast<double>(v & kDropped ? (v & ~kDropped) | (kDropped + 1) : v);
}

// How element v of dtype t is written inside dense<>.
std::string element_text(DType t, int64_t v) {
  if (t == DType::pred) return v ? "true" : "false";
  if (is_integral(t)) return integer_text(t, v);
  const double d = t == DType::f64 || t == DType::c128 ? static_cast<double>(v) : odd_rounded(v);
  return is_complex(t) ? complex_text(t, d) : floating_text(t, d);
}

std::string element_text(DType t, double v) {
  if (is_floating(t)) return floating_text(t, v);
  if (is_complex(t)) return complex_text(t, v);
  if (t == DType::pred) return v != 0 ? "true" : "false";
  if (v >= -0x1p63 && v < 0x1p63) return integer_text(t, static_cast<int64_t>(v));
  if (t == DType::u64 && v >= 0 && v < 0x1p64)
    return integer_text(t, static_cast<int64_t>(static_cast<uint64_t>(v)));
  throw Error("constant of " + std::string(name(t)) + ": " + std::to_string(v) +
              " is no integer of 64 bits");
}

Value emit_constant(Builder& b, const Type& type, const std::string& elements) {
  return b.emit("stablehlo.constant", {}, "value = dense<" + elements + "> : " + type.mlir(),
                {type})[0];
}

template <typename T>
Value emit_literal(Builder& b, DType t, const std::vector<T>& values) {
  std::string s;
  for (size_t i = 0; i < values.size(); ++i) s += (i ? ", " : "[") + element_text(t, values[i]);
  if (!values.empty()) s += ']';
  return emit_constant(b, {t, {static_cast<int64_t>(values.size())}}, s);
}

// Splat of the element with these bits in t.
Value from_bits(Builder& b, DType t, uint64_t bits) {
  return emit_constant(b, {t, {}}, hex(bits, itemsize(t)));
}

int64_t largest_integer(DType t) {
  const int nbits = static_cast<int>(8 * itemsize(t));
  if (t == DType::u64) return -1;  // all ones; integer_text prints it unsigned
  return is_unsigned(t) ? (int64_t{1} << nbits) - 1
                        : static_cast<int64_t>((uint64_t{1} << (nbits - 1)) - 1);
}

void require_ordered(DType t) {
  if (is_complex(t))
    throw Error("bound of " + std::string(name(t)) + ": complex numbers have no order");
}

int64_t smallest_integer(DType t) { return is_unsigned(t) ? 0 : -largest_integer(t) - 1; }

}  // namespace

Value full(Builder& b, const Type& type, double v) {
  return emit_constant(b, type, element_text(type.dtype, v));
}
Value full(Builder& b, const Type& type, int64_t v) {
  return emit_constant(b, type, element_text(type.dtype, v));
}
Value full_like(Value x, double v) { return full(x.builder(), x.type(), v); }

Value constant(Builder& b, DType t, double v) { return full(b, {t, {}}, v); }
Value constant(Builder& b, DType t, int64_t v) { return full(b, {t, {}}, v); }
Value constant(Builder& b, DType t, bool v) { return full(b, {t, {}}, static_cast<int64_t>(v)); }
Value constant(Builder& b, DType t, std::complex<double> v) {
  if (!is_complex(t)) {
    if (v.imag() != 0)
      throw Error("constant of " + std::string(name(t)) + ": the value is complex");
    return constant(b, t, v.real());
  }
  return emit_constant(b, {t, {}}, complex_text(t, v));
}

Value literal(Builder& b, DType t, const std::vector<int64_t>& values) {
  return emit_literal(b, t, values);
}
Value literal(Builder& b, DType t, const std::vector<double>& values) {
  return emit_literal(b, t, values);
}

Value iota(Builder& b, const Type& type, int64_t dimension) {
  if (type.dtype == DType::pred) throw Error("iota of " + type.str() + ": pred cannot count");
  if (type.rank() == 0) return full(b, type, 0);
  if (dimension < 0) dimension += type.rank();
  if (dimension < 0 || dimension >= type.rank()) {
    throw Error("iota of " + type.str() + ": dimension " + std::to_string(dimension) +
                " is out of range");
  }
  return b.emit("stablehlo.iota", {}, "iota_dimension = " + std::to_string(dimension) + " : i64",
                {type})[0];
}

Value highest(Builder& b, DType t) {
  require_ordered(t);
  if (t == DType::pred) return constant(b, t, true);
  if (is_integral(t)) return constant(b, t, largest_integer(t));
  if (t == DType::f8e8m0fnu || !format(t).has_inf) return max_finite(b, t);
  return constant(b, t, std::numeric_limits<double>::infinity());
}

Value lowest(Builder& b, DType t) {
  require_ordered(t);
  if (t == DType::pred) return constant(b, t, false);
  if (is_integral(t)) return constant(b, t, smallest_integer(t));
  if (t == DType::f8e8m0fnu || !format(t).has_inf) return min_finite(b, t);
  return constant(b, t, -std::numeric_limits<double>::infinity());
}

Value max_finite(Builder& b, DType t) {
  if (!is_floating(t)) return highest(b, t);
  if (t == DType::f8e8m0fnu) return from_bits(b, t, 0xFE);
  if (t == DType::f32)
    return constant(b, t, static_cast<double>(std::numeric_limits<float>::max()));
  if (t == DType::f64) return constant(b, t, std::numeric_limits<double>::max());
  return from_bits(b, t, format(t).max_finite);
}

Value min_finite(Builder& b, DType t) {
  if (!is_floating(t)) return lowest(b, t);
  if (t == DType::f8e8m0fnu) return from_bits(b, t, 0);
  if (t == DType::f32)
    return constant(b, t, static_cast<double>(std::numeric_limits<float>::lowest()));
  if (t == DType::f64) return constant(b, t, std::numeric_limits<double>::lowest());
  return from_bits(b, t, format(t).max_finite | uint64_t{1} << (8 * itemsize(t) - 1));
}

}  // namespace torch_tpu::hlo
