// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lower/args.h"

// What PyTorch's CPU kernels refuse by dtype and its meta functions let through, in the kernels'
// own words:
// `"lerp_kernel_scalar" not implemented for 'Long'`. `kernel` is the name that AT_DISPATCH was
// given there.
namespace torch_tpu::lower {

// c10::toString: "Long", "Bool", "ComplexFloat".
inline std::string_view scalar_type_name(DType t) {
  switch (t) {
    case DType::pred:
      return "Bool";
    case DType::s8:
      return "Char";
    case DType::s16:
      return "Short";
    case DType::s32:
      return "Int";
    case DType::s64:
      return "Long";
    case DType::u8:
      return "Byte";
    case DType::u16:
      return "UInt16";
    case DType::u32:
      return "UInt32";
    case DType::u64:
      return "UInt64";
    case DType::f16:
      return "Half";
    case DType::bf16:
      return "BFloat16";
    case DType::f32:
      return "Float";
    case DType::f64:
      return "Double";
    case DType::c64:
      return "ComplexFloat";
    case DType::c128:
      return "ComplexDouble";
    case DType::f8e5m2:
      return "Float8_e5m2";
    case DType::f8e4m3fn:
      return "Float8_e4m3fn";
    case DType::f8e5m2fnuz:
      return "Float8_e5m2fnuz";
    case DType::f8e4m3fnuz:
      return "Float8_e4m3fnuz";
    case DType::f8e8m0fnu:
      return "Float8_e8m0fnu";
  }
  return "Undefined";
}

// The C++ type, as PyTorch's TypeMeta prints it: "long int", "c10::Half".
inline std::string cpp_type_name(DType t) {
  switch (t) {
    case DType::pred:
      return "bool";
    case DType::s8:
      return "signed char";
    case DType::s16:
      return "short int";
    case DType::s32:
      return "int";
    case DType::s64:
      return "long int";
    case DType::u8:
      return "unsigned char";
    case DType::u16:
      return "short unsigned int";
    case DType::u32:
      return "unsigned int";
    case DType::u64:
      return "long unsigned int";
    case DType::f16:
      return "c10::Half";
    case DType::bf16:
      return "c10::BFloat16";
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::c64:
      return "c10::complex<float>";
    case DType::c128:
      return "c10::complex<double>";
    default:
      return std::string(scalar_type_name(t));
  }
}

// What a number that does not fit says: its type as C++ spells it in PyTorch's sources.
[[noreturn]] inline void refuse_overflow(DType t) {
  const std::string name = t == DType::s8    ? "int8_t"
                           : t == DType::s16 ? "int16_t"
                           : t == DType::s64 ? "int64_t"
                                             : cpp_type_name(t);
  throw UserError("value cannot be converted to type " + name + " without overflow");
}

[[noreturn]] inline void refuse(std::string_view kernel, DType t) {
  throw UserError("\"" + std::string(kernel) + "\" not implemented for '" +
                      std::string(scalar_type_name(t)) + "'",
                  UserError::Kind::not_implemented);
}

// What TensorIterator says where it promotes nothing.
inline void require_dtype(DType expected, Value x) {
  if (x.dtype() == expected) return;
  throw UserError("Found dtype " + std::string(scalar_type_name(x.dtype())) + " but expected " +
                  std::string(scalar_type_name(expected)));
}
inline void require_single_or_double(std::string_view kernel, Value x) {
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64) refuse(kernel, x.dtype());
}

inline void require_floating(std::string_view kernel, Value x) {
  if (!hlo::is_floating(x.dtype())) refuse(kernel, x.dtype());
}
inline void require_inexact(std::string_view kernel, Value x) {
  if (!hlo::is_floating(x.dtype()) && !hlo::is_complex(x.dtype())) refuse(kernel, x.dtype());
}
// What CPU says in a sentence of its own rather than by the kernel's name.
inline void require_not_complex_or(const std::string& text, Value x,
                                   UserError::Kind kind = UserError::Kind::runtime) {
  if (hlo::is_complex(x.dtype())) throw UserError(text, kind);
}
inline void require_not_bool(std::string_view kernel, Value x) {
  if (x.dtype() == DType::pred) refuse(kernel, x.dtype());
}
inline void require_not_complex(std::string_view kernel, Value x) {
  if (hlo::is_complex(x.dtype())) refuse(kernel, x.dtype());
}
inline void require_real_number(std::string_view kernel, Value x) {
  require_not_bool(kernel, x);
  require_not_complex(kernel, x);
}
inline void require_integral(std::string_view kernel, Value x) {
  if (!hlo::is_integral(x.dtype())) refuse(kernel, x.dtype());
}
inline void require_integral_or_bool(std::string_view kernel, Value x) {
  if (x.dtype() != DType::pred) require_integral(kernel, x);
}

}  // namespace torch_tpu::lower
