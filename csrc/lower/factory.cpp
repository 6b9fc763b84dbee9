// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Tensors from nothing, and copies. Fill values are run-time operands. `empty` is zeros: a program
// has no undefined values. Layout, device, pin_memory and memory_format are the caller's metadata.
namespace torch_tpu::lower {
namespace {

using MaybeDType = std::optional<DType>;

Value filled(Context&, DType t, const Dims& sizes, Value v) {
  return broadcast_to(cast(v, t), sizes);
}
Value filled(Context& ctx, DType t, const Dims& sizes, int64_t v) {
  return hlo::full(ctx.builder, {t, sizes}, v);
}

// The dtype of a tensor made from a Python number of this kind: int64, bool, the default dtype or
// its complex.
DType inferred(Context& ctx, DType number) {
  if (hlo::is_complex(number)) return hlo::complex_type(ctx.default_dtype);
  return hlo::is_floating(number) ? ctx.default_dtype : number;
}
DType inferred(Context& ctx, const std::vector<Number>& numbers) {
  DType t = DType::s64;
  for (const Number& n : numbers) {
    if (n.kind == Number::Kind::floating) t = ctx.default_dtype;
  }
  return t;
}

// ---- ranges
// ----------------------------------------------------------------------------------------------------
// start + step i for i < length, in t's arithmetic type. start and step are run-time operands: a
// range that moves on, as positions in a decoding loop do, is one program.
Value range_of(Context& ctx, int64_t length, Value start, Value step, DType t) {
  const DType acc = hlo::accumulate_type(t);
  return cast(convert(start, acc) + convert(step, acc) * iota(ctx.builder, {acc, {length}}, 0), t);
}

Value number(Context& ctx, DType t, const Number& n) {
  return hlo::is_floating(t) ? hlo::constant(ctx.builder, t, n.to_double())
                             : hlo::constant(ctx.builder, t, n.to_int());
}

// ceil((end - start) / step): in integers where all three are, otherwise in double, as PyTorch
// computes it.
int64_t range_length(const Number& start, const Number& end, const Number& step) {
  const auto is_int = [](const Number& n) {
    return n.kind == Number::Kind::integer || n.kind == Number::Kind::boolean;
  };
  if (is_int(start) && is_int(end) && is_int(step)) {
    const int64_t sign = step.i > 0 ? 1 : -1;
    return std::max<int64_t>(0, (end.i - start.i + step.i - sign) / step.i);
  }
  return static_cast<int64_t>(std::ceil((end.to_double() - start.to_double()) / step.to_double()));
}

Value arange(Context& ctx, Number start, Number end, Number step, MaybeDType dtype) {
  const DType t = dtype.value_or(inferred(ctx, {start, end, step}));
  const DType acc = hlo::accumulate_type(t);
  return range_of(ctx, range_length(start, end, step), number(ctx, acc, start),
                  number(ctx, acc, step), t);
}

// The older torch.range: both ends, floating unless asked.
Value range(Context& ctx, Number start, Number end, Number step, MaybeDType dtype) {
  const DType t = dtype.value_or(ctx.default_dtype), acc = hlo::accumulate_type(t);
  const double length = std::floor((end.to_double() - start.to_double()) / step.to_double()) + 1;
  return range_of(ctx, static_cast<int64_t>(length), number(ctx, acc, start),
                  number(ctx, acc, step), t);
}

// `steps` values from start to end, both included, in dtype t: counted from the nearer end, so that
// both are exact. Integers step in double.
Value spaced(Context& ctx, Value start, Value end, int64_t steps, DType t) {
  if (steps == 0) return hlo::full(ctx.builder, {t, {0}}, 0);
  if (t == DType::pred) refuse("linspace_cpu", t);
  const DType acc = hlo::is_integral(t) ? DType::f64 : hlo::accumulate_type(t);
  start = convert(cast(start, t), acc);
  end = convert(cast(end, t), acc);
  if (steps == 1) return convert(reshape(start, {1}), t);
  const Value step = (end - start) / static_cast<double>(steps - 1);
  const Value i = iota(ctx.builder, {DType::s64, {steps}}, 0);
  const Value up = start + step * convert(i, acc);
  const Value down = end - step * convert(static_cast<double>(steps - 1) - i, acc);
  return cast(select(i < static_cast<double>(steps / 2), up, down), t);
}

DType spaced_type(Context& ctx, Value start, Value end, MaybeDType dtype) {
  const bool is_complex = hlo::is_complex(start.dtype()) || hlo::is_complex(end.dtype());
  return dtype.value_or(is_complex ? hlo::complex_type(ctx.default_dtype) : ctx.default_dtype);
}

Value linspace(Context& ctx, Value start, Value end, int64_t steps, MaybeDType dtype, Ignored,
               Ignored, Ignored) {
  return spaced(ctx, start, end, steps, spaced_type(ctx, start, end, dtype));
}

// base ^ linspace, in double: the power would multiply the exponent's rounding error.
Value logspace(Context& ctx, Value start, Value end, int64_t steps, Value base, MaybeDType dtype,
               Ignored, Ignored, Ignored) {
  const DType t = spaced_type(ctx, start, end, dtype);
  if (t == DType::pred) refuse("logspace_cpu", t);
  const DType acc = hlo::is_complex(t) ? DType::c128 : DType::f64;
  const Value exponent =
      spaced(ctx, convert(cast(start, t), acc), convert(cast(end, t), acc), steps, acc);
  return cast(power(broadcast_to(convert(base, acc), exponent.dims()), exponent), t);
}

// ---- matrices
// --------------------------------------------------------------------------------------------------
Value column_minus_row(Context& ctx, int64_t n, int64_t m) {
  const Type index{DType::s64, {n, m}};
  return iota(ctx.builder, index, 1) - iota(ctx.builder, index, 0);
}

Value eye(Context& ctx, int64_t n, int64_t m, MaybeDType t) {
  return convert(column_minus_row(ctx, n, m) == 0, t.value_or(ctx.default_dtype));
}

// The (row, column) pairs, [2, k], of the elements on one side of diagonal `offset`, in row-major
// order: a stable sort brings the flat indices of the chosen elements to the front; how many there
// are is known.
template <bool upper>
Value triangle_indices(Context& ctx, int64_t n, int64_t m, int64_t offset, MaybeDType dtype,
                       Ignored, Ignored, Ignored) {
  const DType t = dtype.value_or(DType::s64);
  int64_t k = 0;
  for (int64_t row = 0; row < n; ++row) {
    const int64_t below =
        std::clamp<int64_t>(row + offset + (upper ? 0 : 1), 0, m);  // columns before the boundary
    k += upper ? m - below : below;
  }
  if (k == 0) return hlo::full(ctx.builder, {t, {2, 0}}, 0);
  const Value d = column_minus_row(ctx, n, m);
  const Value outside =
      flatten(upper ? d < static_cast<double>(offset) : d > static_cast<double>(offset));
  const Value flat = iota(ctx.builder, {DType::s64, {n * m}}, 0);
  const auto less = [](const Values& a, const Values& b) { return a[0] < b[0]; };
  const Value chosen =
      slice_in_dim(hlo::sort({convert(outside, DType::s32), flat}, 0, true, less)[1], 0, 0, k);
  const double width = static_cast<double>(m);
  const Value row = chosen / width, column = remainder(chosen, scalar(chosen, width));
  return convert(hlo::concatenate({unsqueeze(row, 0), unsqueeze(column, 0)}, 0), t);
}

// ---- copies
// ----------------------------------------------------------------------------------------------------
Value copy(Value self, Value src, bool /*non_blocking*/) {
  return broadcast_to(cast(src, self.dtype()), self.dims());
}
Value fill(Value self, Value value) { return broadcast_to(cast(value, self.dtype()), self.dims()); }
Value to_copy(Value self, MaybeDType t, Ignored, Ignored, Ignored, bool /*non_blocking*/, Ignored) {
  return cast(self, t.value_or(self.dtype()));
}

// zeros, zeros_like and new_zeros, under the names that `op` makes of them.
void register_constant(Registry& r, const std::string& op, int64_t v,
                       const std::string& overload = "") {
  r.add("aten::" + op + "_like",
        [v](Context& ctx, Value self, MaybeDType t, Ignored, Ignored, Ignored, Ignored) {
          return filled(ctx, t.value_or(self.dtype()), self.dims(), v);
        });
  r.add("aten::new_" + op,
        [v](Context& ctx, Value self, Dims sizes, MaybeDType t, Ignored, Ignored, Ignored) {
          return filled(ctx, t.value_or(self.dtype()), sizes, v);
        });
  if (!overload.empty()) {
    r.add("aten::" + op + overload,
          [v](Context& ctx, Dims sizes, MaybeDType t, Ignored, Ignored, Ignored, Ignored) {
            return filled(ctx, t.value_or(ctx.default_dtype), sizes, v);
          });
    return;
  }
  r.add("aten::" + op, [v](Context& ctx, Dims sizes, MaybeDType t, Ignored, Ignored, Ignored) {
    return filled(ctx, t.value_or(ctx.default_dtype), sizes, v);
  });
}

}  // namespace

void register_factory(Registry& r) {
  register_constant(r, "zeros", 0);
  register_constant(r, "ones", 1);
  register_constant(r, "empty", 0, ".memory_format");
  const auto strided = [](Context& ctx, Dims sizes, Dims /*strides*/, MaybeDType t, Ignored,
                          Ignored,
                          Ignored) { return filled(ctx, t.value_or(ctx.default_dtype), sizes, 0); };
  r.add("aten::empty_strided", strided);
  r.add("aten::empty_permuted", strided);
  r.add("aten::new_empty_strided",
        [](Context& ctx, Value self, Dims sizes, Dims, MaybeDType t, Ignored, Ignored, Ignored) {
          return filled(ctx, t.value_or(self.dtype()), sizes, 0);
        });
  r.add("aten::_efficientzerotensor",
        [](Context& ctx, Dims sizes, MaybeDType t, Ignored, Ignored, Ignored) {
          return filled(ctx, t.value_or(ctx.default_dtype), sizes, 0);
        });

  r.add("aten::full",
        [](Context& ctx, Dims sizes, Value v, MaybeDType t, Ignored, Ignored, Ignored) {
          return filled(ctx, t.value_or(inferred(ctx, v.dtype())), sizes, v);
        });
  r.add("aten::full_like",
        [](Context& ctx, Value self, Value v, MaybeDType t, Ignored, Ignored, Ignored, Ignored) {
          return filled(ctx, t.value_or(self.dtype()), self.dims(), v);
        });
  r.add("aten::new_full",
        [](Context& ctx, Value self, Dims sizes, Value v, MaybeDType t, Ignored, Ignored, Ignored) {
          return filled(ctx, t.value_or(self.dtype()), sizes, v);
        });
  r.add("aten::scalar_tensor", [](Context& ctx, Value v, MaybeDType t, Ignored, Ignored, Ignored) {
    return cast(v, t.value_or(ctx.default_dtype));
  });

  const Number zero = Number::of(int64_t{0}), one = Number::of(int64_t{1});
  r.add("aten::arange", [=](Context& ctx, Number end, MaybeDType t, Ignored, Ignored, Ignored) {
    return arange(ctx, zero, end, one, t);
  });
  r.add("aten::arange.start", [=](Context& ctx, Number start, Number end, MaybeDType t, Ignored,
                                  Ignored, Ignored) { return arange(ctx, start, end, one, t); });
  r.add("aten::arange.start_step",
        [](Context& ctx, Number start, Number end, Number step, MaybeDType t, Ignored, Ignored,
           Ignored) { return arange(ctx, start, end, step, t); });
  // arange for a caller that knows the length: eager's arange is this one, called by the glue.
  r.add("torch_tpu::range_of", range_of);
  r.add("aten::range", [=](Context& ctx, Number start, Number end, MaybeDType t, Ignored, Ignored,
                           Ignored) { return range(ctx, start, end, one, t); });
  r.add("aten::range.step",
        [](Context& ctx, Number start, Number end, Number step, MaybeDType t, Ignored, Ignored,
           Ignored) { return range(ctx, start, end, step, t); });
  for (const char* overload : {"", ".Tensor_Tensor", ".Tensor_Scalar", ".Scalar_Tensor"}) {
    r.add(std::string("aten::linspace") + overload, linspace);
    r.add(std::string("aten::logspace") + overload, logspace);
  }

  r.add("aten::eye", [](Context& ctx, int64_t n, MaybeDType t, Ignored, Ignored, Ignored) {
    return eye(ctx, n, n, t);
  });
  r.add("aten::eye.m", [](Context& ctx, int64_t n, int64_t m, MaybeDType t, Ignored, Ignored,
                          Ignored) { return eye(ctx, n, m, t); });
  r.add("aten::tril_indices", triangle_indices<false>);
  r.add("aten::triu_indices", triangle_indices<true>);

  r.add("aten::copy", copy);
  r.add("aten::clone", [](Value self, Ignored) { return self; });
  r.add("aten::_to_copy", to_copy);
  // What Dynamo makes of a Python float that changes between calls.
  r.add("prims::convert_element_type", [](Value a, DType t) { return cast(a, t); });
  r.add("aten::lift_fresh_copy", [](Value self) { return self; });
  r.add("aten::fill.Scalar", fill);
  r.add("aten::fill.Tensor", fill);
  r.add("aten::zero", hlo::zeros_like);
}

}  // namespace torch_tpu::lower
