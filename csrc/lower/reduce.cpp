// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Reductions. 16-bit floats accumulate in f32, integers and bool in int64; `dtype` is applied to
// the input. A list of dims that is None or empty means all of them, save for any and all, where an
// empty list reduces nothing.
namespace torch_tpu::lower {
namespace {

using hlo::Keep;
using MaybeDType = std::optional<DType>;
using MaybeDims = std::optional<Dims>;

Keep keep(bool keepdim) { return keepdim ? hlo::keep_dims : hlo::drop_dims; }
bool is_whole(DType t) { return t == DType::pred || hlo::is_integral(t); }
DType sum_type(Value x, MaybeDType dtype) {
  return dtype.value_or(is_whole(x.dtype()) ? DType::s64 : x.dtype());
}

// ---- sums
// ------------------------------------------------------------------------------------------------------
// Empty: 0.
Value sum_dims(Value x, MaybeDims dims, bool keepdim, MaybeDType dtype) {
  const DType t = sum_type(x, dtype);
  const Value y = convert(cast(x, t), hlo::accumulate_type(t));
  if (t == DType::pred) return any(y, wrap_or_all(dims, x), keep(keepdim));
  return convert(sum(y, wrap_or_all(dims, x), keep(keepdim)), t);
}

Value mean(Value y, const Dims& dims, Keep k) {
  return sum(y, dims, k) / static_cast<double>(count(y, dims));
}

// Empty: NaN (0 / 0).
Value mean_dims(Value x, MaybeDims dims, bool keepdim, MaybeDType dtype) {
  const DType t = dtype.value_or(x.dtype());
  if (is_whole(t)) {
    throw UserError(
        "mean(): could not infer output dtype. Input dtype must be either a floating point or "
        "complex dtype. "
        "Got: " +
        std::string(scalar_type_name(t)));
  }
  return convert(mean(convert(x, hlo::accumulate_type(t)), wrap_or_all(dims, x), keep(keepdim)), t);
}

Value nansum(Value x, MaybeDims dims, bool keepdim, MaybeDType dtype) {
  if (hlo::is_complex(x.dtype())) throw UserError("nansum on CPU does not support complex inputs");
  if (hlo::is_floating(x.dtype())) x = select(is_nan(x), zeros_like(x), x);
  return sum_dims(x, dims, keepdim, dtype);
}

// Empty: 1.
Value prod_dims(Value x, const Dims& dims, Keep k, MaybeDType dtype) {
  const DType t = sum_type(x, dtype);
  const Value y = convert(cast(x, t), hlo::accumulate_type(t));
  return t == DType::pred ? all(y, dims, k) : convert(prod(y, dims, k), t);
}

// m + log(sum(e^(x - m))), m the largest (real part; 0 where that is infinite). Integers in the
// default dtype. Empty: -inf.
Value logsumexp(Context& ctx, Value x, Dims dims, bool keepdim) {
  const DType t = to_floating(x.dtype(), ctx.default_dtype);
  const Dims over = wrap_or_all(dims, x);
  const Value y = convert(x, hlo::accumulate_type(t));
  const Value largest = max_unless_nan(real(y), over, hlo::keep_dims);
  const Value m = convert(select(is_finite(largest), largest, zeros_like(largest)), y.dtype());
  const Value kept = log(sum(exp(y - m), over, hlo::keep_dims)) + m;
  return convert(keepdim ? kept : squeeze(kept, over), t);
}

// ---- variance
// --------------------------------------------------------------------------------------------------
// (var, mean): mean |x - mean(x)|^2 n / max(n - correction, 0), in two passes; real for complex x.
// `correction` is a run-time operand, 1 by default; where it is n or more the result is NaN or inf.
std::pair<Value, Value> moments(const std::string& name, Value x, MaybeDims dims,
                                std::optional<Value> correction, bool keepdim) {
  if (is_whole(x.dtype()))
    throw UserError(name + " only support floating point and complex dtypes");
  const Dims over = wrap_or_all(dims, x);
  const Value y = convert(x, hlo::accumulate_type(x.dtype()));
  const Value mu = mean(y, over, hlo::keep_dims);
  const Value d = y - mu;
  const Value squares = hlo::is_complex(d.dtype()) ? square(real(d)) + square(imag(d)) : square(d);
  const Value c = correction ? convert(*correction, squares.dtype()) : scalar(squares, 1);
  const Value degrees = maximum(static_cast<double>(count(x, over)) - c, 0);
  const Value variance = sum(squares, over, keep(keepdim)) / degrees;
  return {convert(variance, hlo::real_type(x.dtype())),
          convert(keepdim ? mu : squeeze(mu, over), x.dtype())};
}

Value var(Value x, MaybeDims dims, std::optional<Value> correction, bool keepdim) {
  return moments("std and var", x, dims, correction, keepdim).first;
}
std::pair<Value, Value> var_mean(Value x, MaybeDims dims, std::optional<Value> correction,
                                 bool keepdim) {
  return moments("var_mean", x, dims, correction, keepdim);
}

// The root is taken before the rounding to 16 bits.
std::pair<Value, Value> root_moments(const std::string& name, Value x, MaybeDims dims,
                                     std::optional<Value> correction, bool keepdim) {
  const DType t = x.dtype();
  const auto [variance, mu] =
      moments(name, convert(x, hlo::accumulate_type(t)), dims, correction, keepdim);
  return {convert(sqrt(variance), hlo::real_type(t)), convert(mu, t)};
}
Value std_dims(Value x, MaybeDims dims, std::optional<Value> correction, bool keepdim) {
  return root_moments("std and var", x, dims, correction, keepdim).first;
}
std::pair<Value, Value> std_mean(Value x, MaybeDims dims, std::optional<Value> correction,
                                 bool keepdim) {
  return root_moments("std_mean", x, dims, correction, keepdim);
}

// ---- norms
// -----------------------------------------------------------------------------------------------------
// (sum |x|^p)^(1/p);  p = inf, -inf: the largest, smallest |x|;  p = 0: how many are not 0. Real
// for complex x.
Value vector_norm(Value x, Number ord, MaybeDims dims, bool keepdim, MaybeDType dtype) {
  const DType t = dtype.value_or(x.dtype());
  if (is_whole(x.dtype())) {
    throw UserError(
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got " +
        std::string(scalar_type_name(x.dtype())));
  }
  const Dims over = wrap_or_all(dims, x);
  const Keep k = keep(keepdim);
  const Value y = abs(convert(convert(x, t), hlo::accumulate_type(t)));
  const double p = ord.to_double();
  const auto norm = [&]() -> Value {
    if (p == 0) return sum(convert(y != 0, y.dtype()), over, k);
    if (p == 1) return sum(y, over, k);
    if (p == 2) return sqrt(sum(y * y, over, k));
    if (p == INFINITY) return max(y, over, k);
    if (p == -INFINITY) return min(y, over, k);
    const Value powers = sum(power(y, full_like(y, p)), over, k);
    return power(powers, full_like(powers, 1 / p));
  };
  return convert(norm(), hlo::real_type(t));
}

// powsum(x, ord) = sum |x|^ord over `dim` (None, []: all): a norm without its root.
//   x      floating or complex; the sum is in `dtype`, real for a complex one
//   ord    real, any sign, inf too: a run-time operand
// pow's edges: |x|^0 is 1 for 0 and NaN too, 0^-1 is inf. Empty: 0.
Value powsum(Value x, Value ord, MaybeDims dims, bool keepdim, MaybeDType dtype) {
  const DType t = sum_type(x, dtype);
  if (is_whole(t)) refuse("powsum_cpu", t);
  if (hlo::is_complex(ord.dtype()))
    throw UserError("value cannot be converted to type double without overflow");
  const Value y = abs(convert(convert(x, t), hlo::accumulate_type(t)));
  const Value p = convert(ord, y.dtype());
  const auto squares = [&] { return Values{y * y}; };  // exact where power is not
  const auto powers = [&] { return Values{power(y, p)}; };
  const Value terms = hlo::if_(p == 2, squares, powers)[0];
  return convert(sum(terms, wrap_or_all(dims, x), keep(keepdim)), hlo::real_type(t));
}

// ---- extremes
// --------------------------------------------------------------------------------------------------
// NaN wins. PyTorch's meta functions refuse an empty range.
Value largest(Value x, const Dims& dims, Keep k, const char* kernel = "max_values_cpu") {
  require_not_complex(kernel, x);
  return x.dtype() == DType::pred ? any(x, dims, k) : max(x, dims, k);
}
Value smallest(Value x, const Dims& dims, Keep k, const char* kernel = "min_values_cpu") {
  require_not_complex(kernel, x);
  return x.dtype() == DType::pred ? all(x, dims, k) : min(x, dims, k);
}

// Over all elements: there must be some.
Value whole(const std::string& name, Value x, Value (*f)(Value, const Dims&, Keep, const char*)) {
  if (x.numel() == 0) {
    throw UserError(name +
                    "(): Expected reduction dim to be specified for input.numel() == 0. "
                    "Specify the reduction dim with the 'dim' argument.");
  }
  return f(x, all_dims(x), hlo::drop_dims, (name + "_all").c_str());
}

std::pair<Value, Value> aminmax(Value x, std::optional<int64_t> dim, bool keepdim) {
  const Dims dims = dim ? wrap(*dim, x) : all_dims(x);
  require_not_complex("aminmax_cpu", x);
  return {smallest(x, dims, keep(keepdim)), largest(x, dims, keep(keepdim))};
}

// (value, index) of the largest (smallest) along one dimension: of equals the first, and the first
// NaN before all.
template <bool greatest>
std::pair<Value, Value> extreme(Value x, int64_t dim, bool keepdim) {
  require_not_complex_or(
      std::string(greatest ? "max" : "min") + "(): does not support complex input", x);
  if (x.rank() == 0) return {x, hlo::full(x.builder(), {DType::s64, {}}, 0)};
  dim = wrap(dim, x.rank());
  const Value y = x.dtype() == DType::pred ? convert(x, DType::u8) : x;
  const DType index_type = x.dim(dim) < INT32_MAX ? DType::s32 : DType::s64;
  const Value index = iota(x.builder(), {index_type, x.dims()}, dim);
  const auto better = [](const Values& l, const Values& r) -> Values {
    const Value nan_l = is_nan(l[0]), nan_r = is_nan(r[0]);
    const Value beats = (greatest ? l[0] > r[0] : l[0] < r[0]) | (nan_l & ~nan_r);
    const Value equal = (l[0] == r[0]) | (nan_l & nan_r);
    const Value left = beats | (equal & (l[1] < r[1]));
    return {select(left, l[0], r[0]), select(left, l[1], r[1])};
  };
  hlo::Builder& b = x.builder();
  const Value worst = greatest ? lowest(b, y.dtype()) : highest(b, y.dtype());
  Values out = hlo::reduce({y, index}, {worst, highest(b, index_type)}, {dim}, better);
  if (keepdim) out = {unsqueeze(out[0], dim), unsqueeze(out[1], dim)};
  return {convert(out[0], x.dtype()), convert(out[1], DType::s64)};
}

// The index alone; with no dim, into the flat order.
template <bool greatest>
Value arg_extreme(Value x, std::optional<int64_t> dim, bool keepdim) {
  const std::string name = greatest ? "argmax" : "argmin";
  require_not_complex_or(name + "(): does not support complex input", x);
  if (x.dtype() == DType::pred) throw UserError(name + "(): does not support bool input");
  if (dim) return extreme<greatest>(x, *dim, keepdim).second;
  const Value i = extreme<greatest>(flatten(x), 0, false).second;
  return keepdim ? reshape(i, Dims(x.rank(), 1)) : i;
}

// ---- logic
// -----------------------------------------------------------------------------------------------------
// NaN counts as true. uint8 in, uint8 out: older than PyTorch's bool.
template <Value (*f)(Value, const Dims&, Keep)>
Value logical(Value x, const Dims& dims, bool keepdim) {
  return convert(f(convert(x, DType::pred), dims, keep(keepdim)),
                 x.dtype() == DType::u8 ? DType::u8 : DType::pred);
}

template <Value (*f)(Value, const Dims&, Keep)>
void register_logical(Registry& r, const std::string& op) {
  r.add("aten::" + op, [](Value x) { return logical<f>(x, all_dims(x), false); });
  r.add("aten::" + op + ".dim",
        [](Value x, int64_t dim, bool keepdim) { return logical<f>(x, wrap(dim, x), keepdim); });
  r.add("aten::" + op + ".dims", [](Value x, MaybeDims dims, bool keepdim) {
    return logical<f>(x, dims ? wrap(*dims, x) : all_dims(x), keepdim);
  });
}

Value count_nonzero(Value x, const Dims& dims) {
  return sum(convert(convert(x, DType::pred), DType::s64), dims);
}

// The bits of all elements, as int64 or float64, xor-ed together.
Value hash_tensor(Value x, Dims dims, bool keepdim, int64_t /*mode*/) {
  require_not_complex("xor_sum_cpu", x);
  const Value y = hlo::is_floating(x.dtype()) ? bitcast_convert(convert(x, DType::f64), DType::s64)
                                              : convert(x, DType::s64);
  const Value bits = convert(y, DType::u64);
  const auto combine = [](const Values& l, const Values& r) -> Values { return {l[0] ^ r[0]}; };
  const Dims over = wrap_or_all(dims, x);
  const Value h = hlo::reduce({bits}, {scalar(bits, 0)}, over, combine)[0];
  return keepdim ? reshape(h, reduced_sizes(x.dims(), over, true)) : h;
}

}  // namespace

void register_reduce(Registry& r) {
  r.add("aten::sum.dim_IntList", sum_dims);
  r.add("aten::sum", [](Value x, MaybeDType t) { return sum_dims(x, std::nullopt, false, t); });
  r.add("aten::mean.dim", mean_dims);
  r.add("aten::mean", [](Value x, MaybeDType t) { return mean_dims(x, std::nullopt, false, t); });
  r.add("aten::nansum", nansum);
  r.add("aten::prod",
        [](Value x, MaybeDType t) { return prod_dims(x, all_dims(x), hlo::drop_dims, t); });
  r.add("aten::prod.dim_int", [](Value x, int64_t dim, bool keepdim, MaybeDType t) {
    return prod_dims(x, wrap(dim, x), keep(keepdim), t);
  });
  r.add("aten::logsumexp", logsumexp);

  r.add("aten::var.correction", var);
  r.add("aten::std.correction", std_dims);
  r.add("aten::var_mean.correction", var_mean);
  r.add("aten::std_mean.correction", std_mean);

  r.add("aten::linalg__powsum", powsum);
  r.add("aten::linalg_vector_norm", vector_norm);
  const auto p_or_2 = [](const std::optional<Number>& p) { return p.value_or(Number::of(2.0)); };
  r.add("aten::norm.Scalar", [](Value x, Number p) { return vector_norm(x, p, {}, false, {}); });
  r.add("aten::norm.ScalarOpt_dtype", [=](Value x, std::optional<Number> p, DType t) {
    return vector_norm(x, p_or_2(p), {}, false, t);
  });
  r.add("aten::norm.ScalarOpt_dim", [=](Value x, std::optional<Number> p, Dims dims, bool keepdim) {
    return vector_norm(x, p_or_2(p), dims, keepdim, {});
  });
  r.add("aten::norm.ScalarOpt_dim_dtype",
        [=](Value x, std::optional<Number> p, Dims dims, bool keepdim, DType t) {
          return vector_norm(x, p_or_2(p), dims, keepdim, t);
        });

  r.add("aten::amax", [](Value x, Dims dims, bool keepdim) {
    return largest(x, wrap_or_all(dims, x), keep(keepdim));
  });
  r.add("aten::amin", [](Value x, Dims dims, bool keepdim) {
    return smallest(x, wrap_or_all(dims, x), keep(keepdim));
  });
  r.add("aten::aminmax", aminmax);
  r.add("aten::max", [](Value x) { return whole("max", x, largest); });
  r.add("aten::min", [](Value x) { return whole("min", x, smallest); });
  r.add("aten::max.dim", extreme<true>);
  r.add("aten::min.dim", extreme<false>);
  r.add("aten::argmax", arg_extreme<true>);
  r.add("aten::argmin", arg_extreme<false>);

  register_logical<hlo::any>(r, "any");
  register_logical<hlo::all>(r, "all");
  r.add("aten::count_nonzero.dim_IntList",
        [](Value x, Dims dims) { return count_nonzero(x, wrap_or_all(dims, x)); });
  r.add("aten::count_nonzero", [](Value x, std::optional<int64_t> dim) {
    return count_nonzero(x, dim ? wrap(*dim, x) : all_dims(x));
  });
  r.add("aten::hash_tensor", hash_tensor);
}

}  // namespace torch_tpu::lower
