// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Complex numbers: parts, conjugates, polar form. A program's values carry no conjugate or negative
// bit: the lazy views of eager mode are computed here, and resolving them does nothing.
namespace torch_tpu::lower {
namespace {

Value conj(Value x) { return hlo::is_complex(x.dtype()) ? complex(real(x), -imag(x)) : x; }

// A last dimension of two: real, imaginary.
Value view_as_real(Value x) {
  return hlo::concatenate({unsqueeze(real(x), -1), unsqueeze(imag(x), -1)}, x.rank());
}
Value view_as_complex(Value x) {
  const int64_t last = x.rank() - 1;
  const auto part = [&](int64_t i) { return squeeze(slice_in_dim(x, last, i, i + 1), {last}); };
  return complex(part(0), part(1));
}

void require_parts(Value a, Value b) {
  const std::string t(scalar_type_name(a.dtype())), u(scalar_type_name(b.dtype()));
  if (!hlo::is_floating(a.dtype()) || !hlo::is_floating(b.dtype())) {
    throw UserError("Expected both inputs to be Half, Float or Double tensors but got " + t +
                    " and " + u);
  }
  if (t != u)
    throw UserError("Expected object of scalar type " + t + " but got scalar type " + u +
                    " for second argument");
}

Value complex_of(Value re, Value im) {
  require_parts(re, im);
  return complex(re, im);
}

Value polar(Value r, Value angle) {
  require_parts(r, angle);
  if (r.dtype() == DType::f16) refuse("polar_cpu", r.dtype());
  return complex(r * cosine(angle), r * sine(angle));
}

// atan2(imag, real); a real x is at 0 or pi, NaN stays. Integers in the default dtype.
Value angle(Context& ctx, Value x) {
  if (hlo::is_complex(x.dtype())) return atan2(imag(x), real(x));
  const Value y = convert(x, to_floating(x.dtype(), ctx.default_dtype));
  return select(is_nan(y), y, select(y < 0, scalar(y, std::numbers::pi), scalar(y, 0)));
}

// z / |z|, 0 at 0; the sign of a real x.
Value sgn(Value x) {
  if (!hlo::is_complex(x.dtype())) return signum(x);
  const Value r = abs(x);
  return select(r == 0, zeros_like(x), complex(real(x) / r, imag(x) / r));
}

Value identity(Value x) { return x; }

}  // namespace

void register_complex(Registry& r) {
  for (const char* name : {"_conj", "_conj_copy", "_conj_physical", "conj_physical", "conj"}) {
    r.add(std::string("aten::") + name, conj);
  }
  r.add("aten::_neg_view", hlo::negate);
  r.add("aten::_neg_view_copy", hlo::negate);
  r.add("aten::resolve_conj", identity);
  r.add("aten::resolve_neg", identity);
  r.add("aten::real", hlo::real);
  r.add("aten::imag", hlo::imag);
  for (const char* copy : {"", "_copy"}) {
    r.add(std::string("aten::view_as_real") + copy, view_as_real);
    r.add(std::string("aten::view_as_complex") + copy, view_as_complex);
  }
  r.add("aten::complex", complex_of);
  r.add("aten::polar", polar);
  r.add("aten::angle", angle);
  r.pointwise("aten::sgn", Promote::arithmetic, 1, sgn);
}

}  // namespace torch_tpu::lower
