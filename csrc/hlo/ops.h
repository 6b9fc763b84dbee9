// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "hlo/builder.h"

// StableHLO's operations as functions on Values, under StableHLO's names, and the few composites
// that every lowering needs. All infer and check shapes and throw hlo::Error naming the operation,
// dtypes and shapes.
//
// Element-wise operations of several operands broadcast as NumPy does (size 1 stretches, missing
// leading dimensions are added) and demand equal dtypes: promotion is the caller's
// (lower/promote.h).
namespace torch_tpu::hlo {

// ---- constants and sources
// -------------------------------------------------------------------------------------
Value constant(Builder& b, DType t,
               double v);  // rank 0; inf and NaN allowed; exact for every dtype
Value constant(Builder& b, DType t, int64_t v);  // rank 0
inline Value constant(Builder& b, DType t, int v) {
  return constant(b, t, static_cast<int64_t>(v));
}
Value constant(Builder& b, DType t, std::complex<double> v);
Value constant(Builder& b, DType t, bool v);
Value full(Builder& b, const Type& type, double v);  // splat
Value full(Builder& b, const Type& type, int64_t v);
inline Value full(Builder& b, const Type& type, int v) {
  return full(b, type, static_cast<int64_t>(v));
}
Value full_like(Value x, double v);  // x's dtype and shape
inline Value zeros_like(Value x) { return full_like(x, 0.0); }
inline Value ones_like(Value x) { return full_like(x, 1.0); }
Value literal(Builder& b, DType t,
              const std::vector<int64_t>& values);  // rank 1, small: printed in the program
Value literal(Builder& b, DType t, const std::vector<double>& values);
Value iota(Builder& b, const Type& type, int64_t dimension);
Value lowest(Builder& b, DType t);      // -inf, or the smallest integer, or false; rank 0
Value highest(Builder& b, DType t);     // +inf, or the largest integer, or true; rank 0
Value max_finite(Builder& b, DType t);  // largest finite value; rank 0
Value min_finite(Builder& b, DType t);  // smallest (most negative) finite value; rank 0

// ---- element-wise
// ----------------------------------------------------------------------------------------------
Value add(Value a, Value b);
Value subtract(Value a, Value b);
Value multiply(Value a, Value b);
Value divide(Value a, Value b);     // integers: truncates; x / 0 is -1 (all ones) and never traps
Value remainder(Value a, Value b);  // sign of the dividend (C's fmod and %)
Value power(Value a, Value b);
Value maximum(Value a, Value b);  // NaN if either is NaN
Value minimum(Value a, Value b);
Value atan2(Value a, Value b);
Value and_(Value a, Value b);  // logical for pred, bitwise for integers
Value or_(Value a, Value b);
Value xor_(Value a, Value b);
Value not_(Value x);
Value shift_left(Value a, Value b);
Value shift_right_arithmetic(Value a, Value b);
Value shift_right_logical(Value a, Value b);
Value abs(Value x);  // complex -> its real type
Value negate(Value x);
Value sign(Value x);  // NaN stays NaN; unsigned: min(x, 1)
Value floor(Value x);
Value ceil(Value x);
Value round_nearest_even(Value x);
Value round_nearest_afz(Value x);
Value exponential(Value x);
Value exponential_minus_one(Value x);
Value log(Value x);
Value log_plus_one(Value x);
Value logistic(Value x);
Value tanh(Value x);
Value tan(Value x);
Value sine(Value x);
Value cosine(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value cbrt(Value x);
Value popcnt(Value x);
Value count_leading_zeros(Value x);
Value is_finite(Value x);  // pred; integers give true
Value real(Value x);       // real x unchanged
Value imag(Value x);       // real x: zeros
Value complex(Value re, Value im);
Value convert(Value x, DType t);  // same dtype: x itself. Floating to pred is x != 0; to integer
                                  // truncates. complex -> real drops imag
Value bitcast_convert(Value x, DType t);  // equal sizes keep the shape; a smaller t adds a last
                                          // dimension, a larger one takes it away
Value reduce_precision(Value x, int exponent_bits, int mantissa_bits);
inline Value exp(Value x) { return exponential(x); }

enum class Compare { eq, ne, lt, le, gt, ge };
// Floating comparisons are IEEE's (NaN is unequal to all). Complex: eq and ne only.
Value compare(Value a, Value b, Compare direction);
Value compare_total_order(Value a, Value b,
                          Compare direction);  // floating: -NaN < -inf < ... < inf < NaN
Value select(Value p, Value a, Value b);       // p pred; the three broadcast together
Value clamp(Value lo, Value x, Value hi);

// chlo, legalised by the plugin
Value erf(Value x);
Value erfc(Value x);
Value erf_inv(Value x);
Value lgamma(Value x);
Value digamma(Value x);  // at 0, -1, ..: NaN or -inf, as the plugin has it
Value polygamma(Value n, Value x);
Value zeta(Value x, Value q);
Value sinh(Value x);
Value cosh(Value x);
Value asin(Value x);
Value acos(Value x);
Value atan(Value x);
Value asinh(Value x);
Value acosh(Value x);
Value atanh(Value x);
Value bessel_i1e(Value x);
Value next_after(Value a, Value b);
std::pair<Value, Value> top_k(
    Value x, int64_t k);  // last dimension, descending; NaN first; (values, s32 indices)

// operators: same meaning as the functions; a number takes the Value's dtype
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator-(Value x);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator+(double a, Value b);
Value operator-(double a, Value b);
Value operator*(double a, Value b);
Value operator/(double a, Value b);
Value operator==(Value a, Value b);
Value operator!=(Value a, Value b);
Value operator<(Value a, Value b);
Value operator<=(Value a, Value b);
Value operator>(Value a, Value b);
Value operator>=(Value a, Value b);
Value operator==(Value a, double b);
Value operator!=(Value a, double b);
Value operator<(Value a, double b);
Value operator<=(Value a, double b);
Value operator>(Value a, double b);
Value operator>=(Value a, double b);
Value operator&(Value a, Value b);
Value operator|(Value a, Value b);
Value operator^(Value a, Value b);
Value operator~(Value p);  // not_; there is no operator!, so that `if (!v)` asks whether v is null
Value is_nan(Value x);     // pred; integers give false
Value is_inf(Value x);

// ---- shape
// -----------------------------------------------------------------------------------------------------
Value reshape(Value x, const Dims& dims);           // no-op when dims are x's own
Value transpose(Value x, const Dims& permutation);  // result dim i is x's dim permutation[i]
Value broadcast_in_dim(Value x, const Dims& dims, const Dims& broadcast_dimensions);
Value broadcast_to(Value x, const Dims& dims);        // NumPy rule
std::pair<Value, Value> broadcast(Value a, Value b);  // both to their common shape
Dims broadcast_dims(const Dims& a, const Dims& b);    // throws hlo::Error
Value slice(Value x, const Dims& start, const Dims& limit, const Dims& strides);
Value slice_in_dim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride = 1);
Value dynamic_slice(
    Value x, const Values& starts,
    const Dims& sizes);  // starts: one rank-0 integer a dimension; clamped into range
Value dynamic_update_slice(Value x, Value update, const Values& starts);
Value pad(Value x, Value value, const Dims& low, const Dims& high,
          const Dims& interior);  // low and high may be negative
Value concatenate(const Values& xs, int64_t dim);
Value reverse(Value x, const Dims& dims);
Value squeeze(Value x, const Dims& dims);  // drops these size-1 dimensions
Value unsqueeze(
    Value x,
    int64_t dim);        // adds a size-1 dimension at `dim` (negative: from the end of the result)
Value flatten(Value x);  // rank 1

// ---- reductions, windows, sorting
// ------------------------------------------------------------------------------
enum Keep : bool { drop_dims = false, keep_dims = true };
using Combine = std::function<Values(const Values& left, const Values& right)>;  // rank-0 values
// General reduction of several arrays of one shape; each has its own initial value (rank 0).
Values reduce(const Values& xs, const Values& inits, const Dims& dims, const Combine& combine);
Value sum(Value x, const Dims& dims,
          Keep keep = drop_dims);  // in x's own dtype: convert first for 16-bit floats
Value prod(Value x, const Dims& dims, Keep keep = drop_dims);
Value max(Value x, const Dims& dims, Keep keep = drop_dims);  // empty: lowest()
// max, but any value in place of the maximum of elements with a NaN among them: for callers to
// whose result the NaN finds another way, as the sum of e^(x - max) does. Cheaper on XLA:CPU.
Value max_unless_nan(Value x, const Dims& dims, Keep keep = drop_dims);
Value min(Value x, const Dims& dims, Keep keep = drop_dims);
Value any(Value x, const Dims& dims, Keep keep = drop_dims);  // pred
Value all(Value x, const Dims& dims, Keep keep = drop_dims);

struct Window {  // one entry a dimension of the operand
  Dims sizes, strides, base_dilations, window_dilations;
  std::vector<std::pair<int64_t, int64_t>> padding;
  static Window of_rank(int64_t rank);  // all ones, no padding
};
Values reduce_window(const Values& xs, const Values& inits, const Window& window,
                     const Combine& combine);
// For each window of `x`, adds `source`'s element to the place that `select` (ge for max pooling)
// chose.
Value select_and_scatter(Value x, Value source, Value init, const Window& window, Compare select);

// Sorts along `dim` by comparator(left elements, right elements of xs[0], xs[1], ...) -> pred.
using Less = std::function<Value(const Values& left, const Values& right)>;
Values sort(const Values& xs, int64_t dim, bool is_stable, const Less& less);

// ---- gather and scatter
// ----------------------------------------------------------------------------------------
struct GatherDims {
  Dims offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims,
      start_index_map;
  int64_t index_vector_dim = 0;
};
Value gather(Value x, Value start_indices, const GatherDims& dims, const Dims& slice_sizes,
             bool indices_are_sorted = false);
struct ScatterDims {
  Dims update_window_dims, inserted_window_dims, input_batching_dims, scatter_indices_batching_dims,
      scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
};
Values scatter(const Values& xs, Value indices, const Values& updates, const ScatterDims& dims,
               const Combine& combine, bool indices_are_sorted = false,
               bool unique_indices = false);
// x.flat[index] for an integer array `index` of any shape; out of range is clamped by the plugin.
Value take(Value x, Value index);
// x indexed along one dimension by rank-1 integers: result dim `dim` has index's length.
Value index_select(Value x, int64_t dim, Value index);

// ---- products
// --------------------------------------------------------------------------------------------------
enum class Precision { default_, high, highest };
struct DotDims {
  Dims lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
};
// Result dims: batch, lhs's rest, rhs's rest. `result` may be wider than the operands' dtype (f32
// for bf16).
Value dot_general(Value a, Value b, const DotDims& dims, DType result,
                  Precision precision = Precision::default_);
// [.., n, k] @ [.., k, m], batch dimensions equal
Value dot(Value a, Value b, DType result, Precision precision = Precision::default_);

struct ConvolutionDims {  // dimension numbers of input, kernel, output
  int64_t input_batch, input_feature;
  Dims input_spatial;
  int64_t kernel_input_feature, kernel_output_feature;
  Dims kernel_spatial;
  int64_t output_batch, output_feature;
  Dims output_spatial;
};
struct ConvolutionWindow {
  Dims strides, lhs_dilation, rhs_dilation;
  std::vector<std::pair<int64_t, int64_t>> padding;
  std::vector<bool> reversal;
};
Value convolution(Value x, Value kernel, const ConvolutionDims& dims,
                  const ConvolutionWindow& window, int64_t feature_group_count,
                  int64_t batch_group_count, DType result,
                  Precision precision = Precision::default_);

// ---- linear algebra, FFT, random
// -------------------------------------------------------------------------------
Value cholesky(Value x, bool lower);
enum class Transpose { no_transpose, transpose, adjoint };
Value triangular_solve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal,
                       Transpose transpose_a);
enum class FftType { fft, ifft, rfft, irfft };
Value fft(Value x, FftType type, const Dims& fft_length);
// THREE_FRY: the same bits on every platform. state u64[2]; returns (new state, bits of `type`, an
// unsigned dtype).
std::pair<Value, Value> rng_bit_generator(Value state, const Type& type);

// ---- control flow and others
// -----------------------------------------------------------------------------------
Values while_(const Values& inits, const std::function<Value(const Values&)>& condition,
              const Builder::Body& body);
Values if_(Value p, const std::function<Values()>& then_, const std::function<Values()>& else_);
Values custom_call(Builder& b, std::string_view target, const Values& operands,
                   const std::vector<Type>& results, std::string_view backend_config,
                   int api_version, bool has_side_effect = false);
Values optimization_barrier(const Values& xs);

}  // namespace torch_tpu::hlo
