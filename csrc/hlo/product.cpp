// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/attribute.h"
#include "hlo/ops.h"

namespace torch_tpu::hlo {
namespace {

std::string precision_config(Precision precision) {
  const std::string p = std::string("#stablehlo<precision ") +
                        (precision == Precision::default_ ? "DEFAULT"
                         : precision == Precision::high   ? "HIGH"
                                                          : "HIGHEST") +
                        ">";
  return "precision_config = [" + p + ", " + p + "]";
}

bool contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// Dimensions that neither list names, in order.
Dims rest(Value x, const Dims& a, const Dims& b) {
  Dims out;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!contains(a, i) && !contains(b, i)) out.push_back(i);
  }
  return out;
}

// "[b, 0, 1, f]": what each dimension is.
std::string layout(int64_t first, char first_name, int64_t second, char second_name,
                   const Dims& spatial) {
  std::vector<std::string> names(spatial.size() + 2);
  names[first] = first_name;
  names[second] = second_name;
  for (size_t i = 0; i < spatial.size(); ++i) names[spatial[i]] = std::to_string(i);
  std::string s = "[";
  for (size_t i = 0; i < names.size(); ++i) s += (i ? ", " : "") + names[i];
  return s + "]";
}

void require_layout(Value x, int64_t first, int64_t second, const Dims& spatial) {
  Dims all = spatial;
  all.insert(all.end(), {first, second});
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != static_cast<int64_t>(i))
      fail("convolution", {x}, "dimension numbers do not name each dimension once");
  }
  if (static_cast<int64_t>(all.size()) != x.rank())
    fail("convolution", {x}, "dimension numbers are for another rank");
}

int64_t dilated(int64_t n, int64_t dilation) { return n == 0 ? 0 : (n - 1) * dilation + 1; }

}  // namespace

Value dot_general(Value a, Value b, const DotDims& d, DType result, Precision precision) {
  const std::string_view op = "dot_general";
  require_same_dtype(op, {a, b});
  const auto bad = [&] {
    fail(op, {a, b},
         "batch " + str(d.lhs_batch) + ", " + str(d.rhs_batch) + ", contracting " +
             str(d.lhs_contracting) + ", " + str(d.rhs_contracting));
  };
  const auto match = [&](const Dims& l, const Dims& r) {
    if (l.size() != r.size()) bad();
    for (size_t i = 0; i < l.size(); ++i) {
      if (l[i] < 0 || r[i] < 0 || l[i] >= a.rank() || r[i] >= b.rank() ||
          a.dims()[l[i]] != b.dims()[r[i]])
        bad();
    }
  };
  match(d.lhs_batch, d.rhs_batch);
  match(d.lhs_contracting, d.rhs_contracting);
  Dims dims;
  for (int64_t i : d.lhs_batch) dims.push_back(a.dims()[i]);
  for (int64_t i : rest(a, d.lhs_batch, d.lhs_contracting)) dims.push_back(a.dims()[i]);
  for (int64_t i : rest(b, d.rhs_batch, d.rhs_contracting)) dims.push_back(b.dims()[i]);
  const auto field = [](std::string_view name, const Dims& v) {
    return v.empty() ? "" : std::string(name) + " = " + str(v) + ", ";
  };
  std::string numbers = field("lhs_batching_dimensions", d.lhs_batch) +
                        field("rhs_batching_dimensions", d.rhs_batch) +
                        field("lhs_contracting_dimensions", d.lhs_contracting) +
                        field("rhs_contracting_dimensions", d.rhs_contracting);
  if (!numbers.empty()) numbers.resize(numbers.size() - 2);
  return emit1(
      "stablehlo.dot_general", {a, b},
      "dot_dimension_numbers = #stablehlo.dot<" + numbers + ">, " + precision_config(precision),
      {result, dims});
}

Value dot(Value a, Value b, DType result, Precision precision) {
  if (a.rank() != b.rank() || a.rank() < 2)
    fail("dot", {a, b}, "equal ranks of at least 2 are needed");
  DotDims d;
  for (int64_t i = 0; i < a.rank() - 2; ++i) d.lhs_batch.push_back(i);
  d.rhs_batch = d.lhs_batch;
  d.lhs_contracting = {a.rank() - 1};
  d.rhs_contracting = {b.rank() - 2};
  return dot_general(a, b, d, result, precision);
}

Value convolution(Value x, Value kernel, const ConvolutionDims& dims,
                  const ConvolutionWindow& window, int64_t feature_group_count,
                  int64_t batch_group_count, DType result, Precision precision) {
  const std::string_view op = "convolution";
  require_same_dtype(op, {x, kernel});
  require_layout(x, dims.input_batch, dims.input_feature, dims.input_spatial);
  require_layout(kernel, dims.kernel_input_feature, dims.kernel_output_feature,
                 dims.kernel_spatial);
  const size_t n = dims.input_spatial.size();
  if (dims.kernel_spatial.size() != n || dims.output_spatial.size() != n ||
      window.strides.size() != n || window.lhs_dilation.size() != n ||
      window.rhs_dilation.size() != n || window.padding.size() != n ||
      (!window.reversal.empty() && window.reversal.size() != n)) {
    fail(op, {x, kernel}, "the window has not the operands' rank");
  }
  if (feature_group_count < 1 || batch_group_count < 1 ||
      x.dim(dims.input_feature) != kernel.dim(dims.kernel_input_feature) * feature_group_count ||
      x.dim(dims.input_batch) % batch_group_count != 0 ||
      kernel.dim(dims.kernel_output_feature) % (feature_group_count * batch_group_count) != 0) {
    fail(op, {x, kernel},
         "features do not fit: feature_group_count " + std::to_string(feature_group_count) +
             ", batch_group_count " + std::to_string(batch_group_count));
  }
  Dims out(n + 2);
  out[dims.output_batch] = x.dim(dims.input_batch) / batch_group_count;
  out[dims.output_feature] = kernel.dim(dims.kernel_output_feature);
  for (size_t i = 0; i < n; ++i) {
    const int64_t size = dilated(x.dim(dims.input_spatial[i]), window.lhs_dilation[i]) +
                         window.padding[i].first + window.padding[i].second;
    const int64_t k = dilated(kernel.dim(dims.kernel_spatial[i]), window.rhs_dilation[i]);
    out[dims.output_spatial[i]] = size < k ? 0 : (size - k) / window.strides[i] + 1;
  }
  const std::vector<bool> reversal =
      window.reversal.empty() ? std::vector<bool>(n, false) : window.reversal;
  return emit1(
      "stablehlo.convolution", {x, kernel},
      "batch_group_count = " + std::to_string(batch_group_count) +
          " : i64, dimension_numbers = #stablehlo.conv<" +
          layout(dims.input_batch, 'b', dims.input_feature, 'f', dims.input_spatial) + "x" +
          layout(dims.kernel_input_feature, 'i', dims.kernel_output_feature, 'o',
                 dims.kernel_spatial) +
          "->" + layout(dims.output_batch, 'b', dims.output_feature, 'f', dims.output_spatial) +
          ">, feature_group_count = " + std::to_string(feature_group_count) +
          " : i64, lhs_dilation = " + i64_array(window.lhs_dilation) +
          ", padding = " + pair_matrix(window.padding) + ", " + precision_config(precision) +
          ", rhs_dilation = " + i64_array(window.rhs_dilation) + ", window_reversal = " +
          i1_array(reversal) + ", window_strides = " + i64_array(window.strides),
      {result, out});
}

}  // namespace torch_tpu::hlo
