// SPDX-License-Identifier: Apache-2.0
#include <complex>

#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

constexpr DType f32 = DType::f32;

class Product : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Product);

TEST_P(Product, multiplies_matrices_of_every_dtype) {
  for (int k = 0; k < kNumDTypes; ++k) {
    const DType t = static_cast<DType>(k);
    if (t == DType::pred || t == DType::f8e8m0fnu) continue;
    Program p;
    Value a = convert(p.input<float>({2, 3}, {1, 2, 0, 1, 1, 1}), t),
          b = convert(p.input<float>({3, 2}, {1, 0, 1, 2, 3, 1}), t);
    Values results = {convert(dot(a, b, t), f32)};
    if (is_floating(t) && itemsize(t) <= 2) results.push_back(dot(a, b, f32, Precision::highest));
    if (is_integral(t) && itemsize(t) < 4) results.push_back(convert(dot(a, b, DType::s32), f32));
    for (const Array& out : p.run(client(), results))
      EXPECT_EQ(out.values<float>(), (Floats{3, 4, 5, 3})) << name(t);
  }
}

// The f32 sum of 16-bit operands must not pass through 16 bits.
TEST_P(Product, keeps_the_wider_result) {
  for (DType t : {DType::bf16, DType::f16}) {
    Program p;
    Value a = convert(p.input<float>({1, 2}, {1024, 1}), t),
          b = convert(p.input<float>({2, 1}, {4, 0.125f}), t);
    EXPECT_EQ(p.run(client(), {dot(a, b, f32)})[0].values<float>(), (Floats{4096.125f})) << name(t);
  }
}

TEST_P(Product, multiplies_large_matrices_of_integers_and_complex_numbers) {
  constexpr int64_t n = 64;
  std::vector<int64_t> longs(n * n);
  std::vector<std::complex<float>> complexes(n * n);
  for (int64_t i = 0; i < n * n; ++i) {
    longs[i] = (i * 7919 % 1000003) * 1000003;
    complexes[i] = {static_cast<float>(i % 7 - 3), static_cast<float>(i % 5 - 2)};
  }
  Program p;
  Value a = p.input<int64_t>({n, n}, longs), c = p.input<std::complex<float>>({n, n}, complexes);
  const Arrays out = p.run(client(), {dot(a, a, DType::s64), dot(c, c, DType::c64)});
  const auto got = out[0].values<int64_t>();
  const auto got_complex = out[1].values<std::complex<float>>();
  for (int64_t i = 0; i < n; i += 7) {
    for (int64_t j = 0; j < n; j += 5) {
      uint64_t sum = 0;
      std::complex<float> total = 0;
      for (int64_t k = 0; k < n; ++k) {
        sum += static_cast<uint64_t>(longs[i * n + k]) * static_cast<uint64_t>(longs[k * n + j]);
        total += complexes[i * n + k] * complexes[k * n + j];
      }
      EXPECT_EQ(got[i * n + j], static_cast<int64_t>(sum));
      EXPECT_EQ(got_complex[i * n + j], total);  // small integers: exact
    }
  }
}

TEST_P(Product, takes_batches_vectors_and_outer_products) {
  Program p;
  Value a = p.count<float>({2, 2, 3}), b = p.count<float>({2, 3, 1}), v = p.count<float>({3});
  DotDims inner, row;
  inner.lhs_contracting = inner.rhs_contracting = {0};
  row.lhs_contracting = {2};
  row.rhs_contracting = {0};
  Value none = slice_in_dim(v, 0, 0, 0);
  const Arrays out =
      p.run(client(), {dot(a, b, f32), dot_general(v, v, inner, f32), dot_general(a, v, row, f32),
                       dot_general(v, slice_in_dim(v, 0, 1, 3), {}, f32),
                       dot_general(none, none, inner, f32)});
  EXPECT_EQ(out[0].type.dims, (Dims{2, 2, 1}));
  EXPECT_EQ(out[0].values<float>(), (Floats{5, 14, 86, 122}));
  EXPECT_EQ(out[1].values<float>(), (Floats{5}));
  EXPECT_EQ(out[2].values<float>(), (Floats{5, 14, 23, 32}));
  EXPECT_EQ(out[3].values<float>(), (Floats{0, 0, 1, 2, 2, 4}));
  EXPECT_EQ(out[4].values<float>(), (Floats{0}));
}

// Sliding products of x [batch, feature, n] and kernel [out, feature / groups, k], any stride,
// dilation and padding.
Floats convolve(const Floats& x, const Floats& kernel, int64_t batch, int64_t features, int64_t n,
                int64_t outs, int64_t k, const ConvolutionWindow& w, int64_t groups) {
  const int64_t in_group = features / groups, out_group = outs / groups, low = w.padding[0].first;
  const int64_t length = ((n - 1) * w.lhs_dilation[0] + 1 + low + w.padding[0].second -
                          (k - 1) * w.rhs_dilation[0] - 1) /
                             w.strides[0] +
                         1;
  Floats y;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t o = 0; o < outs; ++o) {
      for (int64_t i = 0; i < length; ++i) {
        float sum = 0;
        for (int64_t f = 0; f < in_group; ++f) {
          for (int64_t j = 0; j < k; ++j) {
            const int64_t at = i * w.strides[0] + j * w.rhs_dilation[0] - low;
            if (at < 0 || at % w.lhs_dilation[0] != 0 || at / w.lhs_dilation[0] >= n) continue;
            const int64_t tap = !w.reversal.empty() && w.reversal[0] ? k - 1 - j : j;
            sum += x[(b * features + o / out_group * in_group + f) * n + at / w.lhs_dilation[0]] *
                   kernel[(o * in_group + f) * k + tap];
          }
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST_P(Product, convolves) {
  const ConvolutionDims dims{0, 1, {2}, 1, 0, {2}, 0, 1, {2}};
  struct Case {
    ConvolutionWindow window;
    int64_t groups;
  };
  const std::vector<Case> cases = {
      {{{1}, {1}, {1}, {{0, 0}}, {}}, 1},     {{{2}, {1}, {1}, {{1, 2}}, {}}, 1},
      {{{1}, {2}, {1}, {{2, 1}}, {true}}, 1}, {{{1}, {1}, {2}, {{0, 3}}, {}}, 2},
      {{{2}, {3}, {2}, {{-1, 1}}, {}}, 4},    {{{1}, {1}, {1}, {{2, 2}}, {false}}, 4},
  };
  Program p;
  Floats xs(2 * 4 * 6), taps(4 * 4 * 3);
  for (size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<float>(i * 7 % 11) - 5;
  for (size_t i = 0; i < taps.size(); ++i) taps[i] = static_cast<float>(i * 5 % 7) - 3;
  Value x = p.input<float>({2, 4, 6}, xs);
  Values results;
  for (const Case& c : cases) {
    const int64_t in_group = 4 / c.groups;
    Value kernel =
        p.input<float>({4, in_group, 3}, Floats(taps.begin(), taps.begin() + 4 * in_group * 3));
    results.push_back(convolution(x, kernel, dims, c.window, c.groups, 1, f32));
  }
  const Arrays out = p.run(client(), results);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(out[i].values<float>(),
              convolve(xs, taps, 2, 4, 6, 4, 3, cases[i].window, cases[i].groups))
        << i;
  }
}

TEST_P(Product, convolves_in_two_and_no_dimensions_and_in_other_layouts) {
  Program p;
  Value x = p.count<float>({1, 2, 3, 3}), ones = full(p.b, {f32, {1, 2, 2, 2}}, 1);
  const ConvolutionDims nchw{0, 1, {2, 3}, 1, 0, {2, 3}, 0, 1, {2, 3}},
      nhwc{0, 3, {1, 2}, 2, 3, {0, 1}, 0, 3, {1, 2}};
  const ConvolutionWindow w{{1, 1}, {1, 1}, {1, 1}, {{0, 0}, {0, 0}}, {}};
  Value plain = convolution(x, ones, nchw, w, 1, 1, f32);
  Value last =
      convolution(transpose(x, {0, 2, 3, 1}), transpose(ones, {2, 3, 1, 0}), nhwc, w, 1, 1, f32);
  Value half = convolution(convert(x, DType::bf16), convert(ones, DType::bf16), nchw, w, 1, 1, f32);
  const ConvolutionDims none{0, 1, {}, 1, 0, {}, 0, 1, {}};
  Value dense = convolution(p.count<float>({2, 3}), p.count<float>({1, 3}), none, {}, 1, 1, f32);
  const Arrays out = p.run(client(), {plain, last, half, dense});
  const Floats want = {52, 60, 76, 84};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(out[i].values<float>(), want) << i;
  EXPECT_EQ(out[1].type.dims, (Dims{1, 2, 2, 1}));
  EXPECT_EQ(out[3].values<float>(), (Floats{5, 14}));
}

TEST(ProductErrors, name_operation_and_shapes) {
  Builder b;
  Value x = b.parameter(0, {f32, {2, 3}}), y = b.parameter(1, {f32, {2, 3}}),
        h = b.parameter(2, {DType::bf16, {3, 2}});
  EXPECT_EQ(error_of([&] { dot(x, y, f32); }),
            "dot_general of f32[2,3], f32[2,3]: batch [], [], contracting [1], [0]");
  EXPECT_EQ(error_of([&] { dot(x, h, f32); }), "dot_general of f32[2,3], bf16[3,2]: dtypes differ");
  EXPECT_EQ(error_of([&] { dot(x, constant(b, f32, 0), f32); }),
            "dot of f32[2,3], f32[]: equal ranks of at least 2 are needed");
  const ConvolutionDims none{0, 1, {}, 1, 0, {}, 0, 1, {}}, twice{0, 0, {}, 1, 0, {}, 0, 1, {}};
  EXPECT_EQ(error_of([&] { convolution(x, y, twice, {}, 1, 1, f32); }),
            "convolution of f32[2,3]: dimension numbers do not name each dimension once");
  EXPECT_EQ(error_of([&] { convolution(x, y, none, {}, 3, 1, f32); }),
            "convolution of f32[2,3], f32[2,3]: features do not fit: feature_group_count 3, "
            "batch_group_count 1");
}

}  // namespace
}  // namespace torch_tpu::hlo
