// SPDX-License-Identifier: Apache-2.0
#include "hlo/type.h"

#include <array>

namespace torch_tpu::hlo {
namespace {

enum class Kind : uint8_t { pred, signed_integer, unsigned_integer, floating, complex };

struct Traits {
  std::string_view name, mlir;
  int8_t itemsize;
  Kind kind;
};

// In DType's order.
constexpr std::array<Traits, kNumDTypes> kTraits = {{
    {"pred", "i1", 1, Kind::pred},
    {"s8", "i8", 1, Kind::signed_integer},
    {"s16", "i16", 2, Kind::signed_integer},
    {"s32", "i32", 4, Kind::signed_integer},
    {"s64", "i64", 8, Kind::signed_integer},
    {"u8", "ui8", 1, Kind::unsigned_integer},
    {"u16", "ui16", 2, Kind::unsigned_integer},
    {"u32", "ui32", 4, Kind::unsigned_integer},
    {"u64", "ui64", 8, Kind::unsigned_integer},
    {"f16", "f16", 2, Kind::floating},
    {"bf16", "bf16", 2, Kind::floating},
    {"f32", "f32", 4, Kind::floating},
    {"f64", "f64", 8, Kind::floating},
    {"c64", "complex<f32>", 8, Kind::complex},
    {"c128", "complex<f64>", 16, Kind::complex},
    {"f8e5m2", "f8E5M2", 1, Kind::floating},
    {"f8e4m3fn", "f8E4M3FN", 1, Kind::floating},
    {"f8e5m2fnuz", "f8E5M2FNUZ", 1, Kind::floating},
    {"f8e4m3fnuz", "f8E4M3FNUZ", 1, Kind::floating},
    {"f8e8m0fnu", "f8E8M0FNU", 1, Kind::floating},
}};

const Traits& traits(DType t) { return kTraits[static_cast<size_t>(t)]; }

}  // namespace

void past_the_end(size_t i, size_t size) {
  throw Error("number " + std::to_string(static_cast<int64_t>(i)) + " is read of " +
              std::to_string(size));
}

int64_t itemsize(DType t) { return traits(t).itemsize; }
std::string_view name(DType t) { return traits(t).name; }
std::string_view mlir_name(DType t) { return traits(t).mlir; }

bool is_floating(DType t) { return traits(t).kind == Kind::floating; }
bool is_complex(DType t) { return traits(t).kind == Kind::complex; }
bool is_signed_integral(DType t) { return traits(t).kind == Kind::signed_integer; }
bool is_unsigned(DType t) { return traits(t).kind == Kind::unsigned_integer; }
bool is_integral(DType t) { return is_signed_integral(t) || is_unsigned(t); }

DType real_type(DType t) {
  if (t == DType::c64) return DType::f32;
  if (t == DType::c128) return DType::f64;
  return t;
}

DType complex_type(DType t) {
  if (is_complex(t)) return t;
  return t == DType::f64 ? DType::c128 : DType::c64;
}

DType accumulate_type(DType t) { return is_floating(t) && itemsize(t) <= 2 ? DType::f32 : t; }

int64_t numel(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

int64_t Type::numel() const { return hlo::numel(dims); }

std::string Type::str() const {
  std::string s(name(dtype));
  s += '[';
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) s += ',';
    s += std::to_string(dims[i]);
  }
  return s += ']';
}

std::string Type::mlir() const {
  std::string s = "tensor<";
  for (int64_t d : dims) {
    s += std::to_string(d);
    s += 'x';
  }
  s += mlir_name(dtype);
  return s += '>';
}

std::string str(const Dims& dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) s += ", ";
    s += std::to_string(dims[i]);
  }
  return s += ']';
}

}  // namespace torch_tpu::hlo
