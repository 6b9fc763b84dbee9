// SPDX-License-Identifier: Apache-2.0
#include "lower/families.h"
#include "lower/product.h"
#include "lower/registry.h"
#include "lower/require.h"

// Matrix and vector products. Every sum is kept in the accumulating dtype and rounded once, at the
// end; an empty sum is 0. Integers wrap, as on CPU; bool is refused, as there.
namespace torch_tpu::lower {
namespace {

using hlo::broadcast_to;
using hlo::convert;
using hlo::DotDims;
using hlo::select;

std::string title(Value x) { return std::string(scalar_type_name(x.dtype())); }

void same_dtypes(bool same, const std::string& text) {
  if (!same) throw UserError(text);
}

// A coefficient (beta, alpha) in the dtype of the sum.
Value coefficient(Value c, DType acc) {
  if (hlo::is_complex(c.dtype()) && !hlo::is_complex(acc)) {
    refuse_overflow(acc);
  }
  return convert(c, acc);
}

// alpha * sum + beta * input, in sum's (accumulating) dtype; rounded to the dtype of `input`, which
// broadcasts. PyTorch does not look at `input` when beta is 0, NaN and inf in it included: so
// select, not 0 * input.
Value accumulate(Value input, Value sum, Value beta, Value alpha) {
  const DType acc = sum.dtype();
  beta = coefficient(beta, acc);
  Value bias = broadcast_to(convert(input, acc), sum.dims());
  bias = select(beta == 0, hlo::zeros_like(bias), beta * bias);
  return convert(coefficient(alpha, acc) * sum + bias, input.dtype());
}

// [n, k] @ [k, m]
Value matrix_product(const Context& ctx, Value a, Value b) {
  same_dtypes(a.dtype() == b.dtype(),
              "expected m1 and m2 to have the same dtype, but got: " + cpp_type_name(a.dtype()) +
                  " != " + cpp_type_name(b.dtype()));
  require_not_bool("addmm_impl_cpu_", a);
  return product(ctx, a, b, {{}, {}, {1}, {0}});
}

// [b, n, k] @ [b, k, m]
Value batch_product(const Context& ctx, Value a, Value b, std::string_view kernel) {
  same_dtypes(a.dtype() == b.dtype(),
              "expected scalar type " + title(a) + " but found " + title(b));
  require_not_bool(kernel, a);
  return product(ctx, a, b, {{0}, {0}, {2}, {1}});
}

// out = a @ b, in a's dtype.
Value mm(Context& ctx, Value a, Value b) { return convert(matrix_product(ctx, a, b), a.dtype()); }
Value bmm(Context& ctx, Value a, Value b) {
  return convert(batch_product(ctx, a, b, "bmm"), a.dtype());
}

// out = a @ b for 8-bit integers, summed in s32.
Value int_mm(Value a, Value b) {
  if (a.dtype() != DType::s8 && a.dtype() != DType::u8) {
    throw UserError("int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got " +
                    cpp_type_name(a.dtype()));
  }
  const DotDims dims{{}, {}, {1}, {0}};
  return hlo::dot_general(convert(a, DType::s32), convert(b, DType::s32), dims, DType::s32);
}

// out = beta * input + alpha * (a @ b), rounded once.
//   input  broadcasts to [n, m]     a  [n, k]     b  [k, m]     all of one dtype
//   beta, alpha  rank-0 operands: every value of them shares one program
Value addmm(Context& ctx, Value input, Value a, Value b, Value beta, Value alpha) {
  same_dtypes(input.dtype() == b.dtype(), "self and mat2 must have the same dtype, but got " +
                                              title(input) + " and " + title(b));
  same_dtypes(a.dtype() == b.dtype(),
              "mat1 and mat2 must have the same dtype, but got " + title(a) + " and " + title(b));
  return accumulate(input, matrix_product(ctx, a, b), beta, alpha);
}

// The same a batch: input broadcasts to [b, n, m].
Value baddbmm(Context& ctx, Value input, Value a, Value b, Value beta, Value alpha) {
  same_dtypes(input.dtype() == a.dtype(), "Input dtypes must be the same, got: input " +
                                              cpp_type_name(input.dtype()) +
                                              ", batch1: " + cpp_type_name(a.dtype()) +
                                              ", batch2: " + cpp_type_name(b.dtype()));
  return accumulate(input, batch_product(ctx, a, b, "baddbmm"), beta, alpha);
}

// out = beta * input + alpha * sum_b (a_b @ b_b); input broadcasts to [n, m].
Value addbmm(Context& ctx, Value input, Value a, Value b, Value beta, Value alpha) {
  same_dtypes(input.dtype() == b.dtype(), "self and mat2 must have the same dtype, but got " +
                                              title(input) + " and " + title(b));
  same_dtypes(a.dtype() == b.dtype(),
              "mat1 and mat2 must have the same dtype, but got " + title(a) + " and " + title(b));
  require_not_bool("addmm_impl_cpu_", a);
  return accumulate(input, product(ctx, a, b, {{}, {}, {0, 2}, {0, 1}}), beta, alpha);
}

// PyTorch's refusals of sizes in products with a vector.
void require_matching_vector(Value matrix, Value vector, int64_t out) {
  if (matrix.rank() == 2 && vector.rank() == 1 && matrix.dim(1) == vector.dim(0)) return;
  auto size = [](Value x, int64_t d) { return std::to_string(x.rank() > d ? x.dim(d) : 1); };
  throw UserError("size mismatch, got input (" + std::to_string(out) + "), mat (" +
                  size(matrix, 0) + "x" + size(matrix, 1) + "), vec (" + size(vector, 0) + ")");
}
void require_equal_vectors(Value a, Value b) {
  if (a.rank() != 1 || b.rank() != 1) {
    throw UserError("1D tensors expected, but got " + std::to_string(a.rank()) + "D and " +
                    std::to_string(b.rank()) + "D tensors");
  }
  if (a.dim(0) == b.dim(0)) return;
  const std::string x = std::to_string(a.dim(0)), y = std::to_string(b.dim(0));
  throw UserError("inconsistent tensor size, expected tensor [" + x + "] and src [" + y +
                  "] to have the same number of elements, but got " + x + " and " + y +
                  " elements respectively");
}

// out = beta * input + alpha * (matrix @ vector); input broadcasts to [n].
Value addmv(Context& ctx, Value input, Value matrix, Value vector, Value beta, Value alpha) {
  same_dtypes(matrix.dtype() == vector.dtype() && input.dtype() == matrix.dtype(),
              "addmv input tensors must have the same dtype, but got " + title(matrix) + ", " +
                  title(vector) + ", and " + title(input));
  require_not_bool("addmv_impl_cpu", matrix);
  return accumulate(input, product(ctx, matrix, vector, {{}, {}, {1}, {0}}), beta, alpha);
}

Value mv(Context& ctx, Value matrix, Value vector) {
  require_matching_vector(matrix, vector, matrix.dim(0));
  same_dtypes(matrix.dtype() == vector.dtype(),
              "addmv input tensors must have the same dtype, but got " + title(matrix) + ", " +
                  title(vector) + ", and " + title(vector));
  require_not_bool("addmv_impl_cpu", matrix);
  return convert(product(ctx, matrix, vector, {{}, {}, {1}, {0}}), matrix.dtype());
}

// out = sum_i a_i b_i
Value dot(Context& ctx, Value a, Value b) {
  require_equal_vectors(a, b);
  same_dtypes(a.dtype() == b.dtype(), "dot : expected both vectors to have same dtype, but found " +
                                          title(a) + " and " + title(b));
  require_not_bool("dot", a);
  return convert(product(ctx, a, b, {{}, {}, {0}, {0}}), a.dtype());
}

// out = sum_i conj(a_i) b_i
Value vdot(Context& ctx, Value a, Value b) { return dot(ctx, conj(a), b); }

// out = input @ weight^T + bias
//   input  [..., k] or [k]     weight  [m, k] or [k]     bias  broadcasts to the result
Value linear(Context& ctx, Value input, Value weight, std::optional<Value> bias) {
  same_dtypes(input.dtype() == weight.dtype(),
              "expected m1 and m2 to have the same dtype, but got: " +
                  cpp_type_name(input.dtype()) + " != " + cpp_type_name(weight.dtype()));
  require_not_bool("addmm_impl_cpu_", input);
  if (input.rank() >= 2 && weight.rank() == 2 && input.dim(-1) != weight.dim(1)) {
    int64_t rows = 1;
    for (int64_t d = 0; d + 1 < input.rank(); ++d) rows *= input.dim(d);
    throw UserError("mat1 and mat2 shapes cannot be multiplied (" + std::to_string(rows) + "x" +
                    std::to_string(input.dim(-1)) + " and " + std::to_string(weight.dim(1)) + "x" +
                    std::to_string(weight.dim(0)) + ")");
  }
  Value out = product(ctx, input, weight, {{}, {}, {input.rank() - 1}, {weight.rank() - 1}});
  if (bias) {
    same_dtypes(bias->dtype() == weight.dtype(),
                "self and mat2 must have the same dtype, but got " + title(*bias) + " and " +
                    title(weight));
    out = out + convert(*bias, out.dtype());
  }
  return convert(out, input.dtype());
}

// Gradients of linear for a [m, k] weight: (grad @ weight, grad^T @ input, sum of grad), those
// asked for.
Values linear_backward(Context& ctx, Value input, Value grad, Value weight,
                       const std::vector<bool>& mask) {
  const int64_t last = input.rank() - 1;
  Dims rows(last);
  for (int64_t d = 0; d < last; ++d) rows[d] = d;
  Value grad_input, grad_weight, grad_bias;
  if (mask[0])
    grad_input = convert(product(ctx, grad, conj(weight), {{}, {}, {last}, {0}}), input.dtype());
  if (mask[1])
    grad_weight = convert(product(ctx, grad, conj(input), {{}, {}, rows, rows}), weight.dtype());
  if (mask[2])
    grad_bias =
        convert(hlo::sum(convert(grad, hlo::accumulate_type(grad.dtype())), rows), grad.dtype());
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace

void register_matmul(Registry& r) {
  r.add("aten::mm", mm);
  r.add("aten::bmm", bmm);
  r.add("aten::mm.dtype", [](Context& ctx, Value a, Value b, DType out) {
    return convert(matrix_product(ctx, a, b), out);
  });
  r.add("aten::bmm.dtype", [](Context& ctx, Value a, Value b, DType out) {
    return convert(batch_product(ctx, a, b, "bmm"), out);
  });
  r.add("aten::_int_mm", int_mm);
  r.add("aten::addmm", addmm);
  r.add("aten::baddbmm", baddbmm);
  r.add("aten::addbmm", addbmm);
  r.add("aten::addmv", addmv);
  r.add("aten::mv", mv);
  r.add("aten::dot", dot);
  r.add("aten::vdot", vdot);
  r.add("aten::linear", linear);
  r.add("aten::linear_backward", linear_backward);
}

}  // namespace torch_tpu::lower
