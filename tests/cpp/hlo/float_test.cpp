// SPDX-License-Identifier: Apache-2.0
#include <complex>
#include <limits>

#include "hlo/program.h"

// Element-wise operations on floating and complex arrays against the C++ library.
namespace torch_tpu::hlo {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

struct Unary {
  const char* name;
  Value (*op)(Value);
  double (*want)(double);
  double relative;       // error allowed in f32; f64 is allowed 1e-7 of it. 0: exact
  double floor = 1e-30;  // results smaller than this are allowed the error of one as large
};

double digamma_by_recurrence(double x) {
  double sum = 0;
  if (x <= 0 && x == std::floor(x)) return kNaN;
  if (x < 0) return digamma_by_recurrence(1 - x) - M_PI / std::tan(M_PI * x);
  for (; x < 30; ++x) sum -= 1 / x;
  const double y = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252));
}

double erf_inv_by_bisection(double y) {
  if (!(std::fabs(y) < 1)) return std::fabs(y) == 1 ? y * kInf : kNaN;
  double lo = -6, hi = 6;
  for (int i = 0; i < 200; ++i) (std::erf((lo + hi) / 2) < y ? lo : hi) = (lo + hi) / 2;
  return (lo + hi) / 2;
}

double sign_of(double x) { return std::isnan(x) ? x : (x > 0) - (x < 0); }

// The C library's erf(inf) and the like are taken as they are: XLA agrees at the points below.
const std::vector<Unary> kUnary = {
    {"abs", abs, std::fabs, 0},
    {"negate", negate, [](double x) { return -x; }, 0},
    {"floor", floor, std::floor, 0},
    {"ceil", ceil, std::ceil, 0},
    {"round_nearest_even", round_nearest_even, std::nearbyint, 0},
    {"round_nearest_afz", round_nearest_afz, std::round, 0},
    {"sign", sign, sign_of, 1e-9},
    {"sqrt", sqrt, std::sqrt, 1e-6},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1e-6},
    {"cbrt", cbrt, std::cbrt, 1e-6},
    {"exponential", exponential, std::exp, 2e-6},
    {"exponential_minus_one", exponential_minus_one, std::expm1, 2e-6},
    {"log", log, std::log, 1e-6},
    {"log_plus_one", log_plus_one, std::log1p, 1e-6},
    {"logistic", logistic, [](double x) { return 1 / (1 + std::exp(-x)); }, 2e-6},
    {"tanh", tanh, std::tanh, 1e-6},
    {"tan", tan, std::tan, 2e-6},
    {"sine", sine, std::sin, 2e-6},
    {"cosine", cosine, std::cos, 2e-6},
    {"erf", erf, std::erf, 2e-6},
    {"erfc", erfc, std::erfc, 1e-5},
    {"erf_inv", erf_inv, erf_inv_by_bisection, 1e-5},
    {"lgamma", lgamma, std::lgamma, 1e-5, 1},
    {"digamma", digamma, digamma_by_recurrence, 1e-4, 1},
    {"sinh", sinh, std::sinh, 1e-5},
    {"cosh", cosh, std::cosh, 1e-5},
    {"asin", asin, std::asin, 1e-5},
    {"acos", acos, std::acos, 1e-5},
    {"atan", atan, std::atan, 1e-5},
    {"asinh", asinh, std::asinh, 1e-5},
    {"acosh", acosh, std::acosh, 1e-5},
    {"atanh", atanh, std::atanh, 1e-5},
};

struct Binary {
  const char* name;
  Value (*op)(Value, Value);
  double (*want)(double, double);
  double relative;
};

double maximum_of(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, b);
}
double minimum_of(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNaN : std::min(a, b);
}

const std::vector<Binary> kBinary = {
    {"add", add, [](double a, double b) { return a + b; }, 1e-6},
    {"subtract", subtract, [](double a, double b) { return a - b; }, 1e-6},
    {"multiply", multiply, [](double a, double b) { return a * b; }, 1e-6},
    {"divide", divide, [](double a, double b) { return a / b; }, 1e-6},
    {"remainder", remainder, [](double a, double b) { return std::fmod(a, b); }, 1e-6},
    {"power", power, [](double a, double b) { return std::pow(a, b); }, 4e-6},
    {"maximum", maximum, maximum_of, 1e-9},
    {"minimum", minimum, minimum_of, 1e-9},
    {"atan2", atan2, [](double a, double b) { return std::atan2(a, b); }, 2e-6},
};

const std::vector<double> kPoints = {0,   0.25,  -0.25, 0.5, -0.5, 0.75, 1,    -1,    1.5, -1.5,
                                     2.5, -2.75, 3,     10,  -10,  30.5, kInf, -kInf, kNaN};

class Float : public test::OnEachPlugin {
 protected:
  template <typename T>
  void check_unary(double scale) {
    const std::vector<T> xs(kPoints.begin(), kPoints.end());
    Program p;
    Value x = p.input<T>({static_cast<int64_t>(xs.size())}, xs);
    Values results;
    for (const Unary& u : kUnary) results.push_back(u.op(x));
    const Arrays out = p.run(client(), results);
    for (size_t u = 0; u < kUnary.size(); ++u) {
      const auto got = out[u].values<T>();
      for (size_t i = 0; i < xs.size(); ++i) {
        // The pole: NaN on one plugin, -inf on the other.
        if (kUnary[u].op == &digamma && xs[i] == 0) continue;
        EXPECT_TRUE(close(got[i], static_cast<T>(kUnary[u].want(xs[i])), kUnary[u].relative * scale,
                          kUnary[u].floor))
            << kUnary[u].name << '(' << xs[i] << ')';
      }
    }
  }

  template <typename T>
  void check_binary(double scale) {
    std::vector<T> as, bs;
    for (double a : kPoints) {
      for (double b : kPoints) {
        as.push_back(static_cast<T>(a));
        bs.push_back(static_cast<T>(b));
      }
    }
    const Dims dims = {static_cast<int64_t>(as.size())};
    Program p;
    Value a = p.input<T>(dims, as), b = p.input<T>(dims, bs);
    Values results;
    for (const Binary& op : kBinary) results.push_back(op.op(a, b));
    const Arrays out = p.run(client(), results);
    for (size_t k = 0; k < kBinary.size(); ++k) {
      const auto got = out[k].values<T>();
      for (size_t i = 0; i < as.size(); ++i) {
        EXPECT_TRUE(close(got[i], static_cast<T>(kBinary[k].want(as[i], bs[i])),
                          kBinary[k].relative * scale))
            << kBinary[k].name << '(' << as[i] << ", " << bs[i] << ')';
      }
    }
  }
};
TT_ON_EACH_CPU_PLUGIN(Float);

TEST_P(Float, unary_f32) { check_unary<float>(1); }
TEST_P(Float, unary_f64) { check_unary<double>(1e-7); }
TEST_P(Float, binary_f32) { check_binary<float>(1); }
TEST_P(Float, binary_f64) { check_binary<double>(1e-7); }

TEST_P(Float, compares_as_ieee_and_in_total_order) {
  const Floats points = {-static_cast<float>(kNaN), -static_cast<float>(kInf), -1, -0.0f, 0, 1,
                         static_cast<float>(kInf),  static_cast<float>(kNaN)};
  const int64_t n = static_cast<int64_t>(points.size());
  Program p;
  Value a = p.input<float>({n, 1}, points), b = p.input<float>({n}, points);
  Values results;
  for (Compare c : {Compare::eq, Compare::ne, Compare::lt, Compare::le, Compare::gt, Compare::ge}) {
    results.push_back(compare(a, b, c));
    results.push_back(compare_total_order(a, b, c));
  }
  const Arrays out = p.run(client(), results);
  const auto holds = [](auto x, auto y) {
    return Bools{x == y, x != y, x<y, x <= y, x> y, x >= y};
  };
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const Bools ieee = holds(points[i], points[j]), total = holds(i, j);
      for (size_t c = 0; c < 6; ++c) {
        EXPECT_EQ(out[2 * c].values<bool>()[i * n + j], ieee[c])
            << points[i] << ' ' << points[j] << " direction " << c;
        EXPECT_EQ(out[2 * c + 1].values<bool>()[i * n + j], total[c])
            << i << ' ' << j << " total, direction " << c;
      }
    }
  }
}

TEST_P(Float, knows_nan_inf_and_finite) {
  const float inf = static_cast<float>(kInf), nan = static_cast<float>(kNaN);
  Program p;
  Value x = p.input<float>({4}, {1, -inf, nan, 0});
  Value c = p.input<std::complex<float>>({3}, {{1, inf}, {nan, 0}, {1, 2}});
  Value n = p.input<int32_t>({1}, {7});
  const Arrays out = p.run(client(), {is_nan(x), is_inf(x), is_finite(x), is_nan(c), is_inf(c),
                                      is_finite(c), is_nan(n), is_inf(n), is_finite(n)});
  EXPECT_EQ(out[0].values<bool>(), (Bools{false, false, true, false}));
  EXPECT_EQ(out[1].values<bool>(), (Bools{false, true, false, false}));
  EXPECT_EQ(out[2].values<bool>(), (Bools{true, false, false, true}));
  EXPECT_EQ(out[3].values<bool>(), (Bools{false, true, false}));
  EXPECT_EQ(out[4].values<bool>(), (Bools{true, false, false}));
  EXPECT_EQ(out[5].values<bool>(), (Bools{false, false, true}));
  EXPECT_EQ(out[6].values<bool>(), (Bools{false}));
  EXPECT_EQ(out[7].values<bool>(), (Bools{false}));
  EXPECT_EQ(out[8].values<bool>(), (Bools{true}));
}

TEST_P(Float, selects_and_clamps_with_broadcasting) {
  Program p;
  Value x = p.input<float>({2, 2}, {1, 2, static_cast<float>(kNaN), 4});
  Value row = p.input<bool>({2}, {true, false});
  Value lo = constant(p.b, DType::f32, 1.5), hi = p.input<float>({2, 1}, {1.75f, 3});
  const Arrays out =
      p.run(client(), {select(row, x, constant(p.b, DType::f32, 9)),
                       select(constant(p.b, DType::pred, false), x, zeros_like(x)),
                       clamp(lo, x, constant(p.b, DType::f32, 3)), clamp(lo, x, hi)});
  EXPECT_TRUE(std::isnan(out[0].values<float>()[2]));
  EXPECT_EQ(out[0].values<float>()[1], 9);
  EXPECT_EQ(out[1].values<float>(), (Floats{0, 0, 0, 0}));
  EXPECT_TRUE(std::isnan(out[2].values<float>()[2]));
  EXPECT_EQ(out[2].values<float>()[3], 3);
  EXPECT_EQ(out[3].values<float>()[1], 1.75f);
}

TEST_P(Float, reduces_precision_and_steps_to_neighbours) {
  Program p;
  Value x = p.input<float>({3}, {3.14159f, 1, -1});
  Value to = p.input<float>({3}, {100, 0, 0});
  const Arrays out = p.run(client(), {reduce_precision(x, 8, 7), next_after(x, to)});
  EXPECT_EQ(out[0].values<float>(), (Floats{3.140625f, 1, -1}));
  EXPECT_EQ(out[1].values<float>(), (Floats{std::nextafterf(3.14159f, 100), std::nextafterf(1, 0),
                                            std::nextafterf(-1, 0)}));
}

TEST_P(Float, computes_special_functions_of_two_arguments) {
  Program p;
  Value n = p.input<double>({3}, {0, 1, 2}), x = p.input<double>({3}, {2.5, 2.5, 0.5});
  Value s = p.input<double>({2}, {2, 4}), q = p.input<double>({2}, {1, 1});
  Value y = p.input<float>({3}, {0, 1, -2});
  const Arrays out = p.run(client(), {polygamma(n, x), zeta(s, q), bessel_i1e(y)});
  const double polygammas[] = {digamma_by_recurrence(2.5), 0.4903577561002348,
                               -16.8287966442343199956};
  const double zetas[] = {M_PI * M_PI / 6, std::pow(M_PI, 4) / 90};
  const float bessels[] = {0, 0.20791042f, -0.21526929f};
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(close(out[0].values<double>()[i], polygammas[i], 1e-9)) << i;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(close(out[1].values<double>()[i], zetas[i], 1e-9)) << i;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(out[2].values<float>()[i], bessels[i], 1e-5)) << i;
}

TEST_P(Float, computes_in_small_formats) {
  for (DType t : {DType::f16, DType::bf16, DType::f8e5m2, DType::f8e4m3fn, DType::f8e5m2fnuz,
                  DType::f8e4m3fnuz}) {
    Program p;
    Value x = convert(p.input<float>({4}, {0.25f, 0.5f, 1, 2}), t);
    Values results;
    for (Value y : {x + x, x * x, exp(x), log(x), erf(x), erfc(x), bessel_i1e(x), tanh(x),
                    power(x, x), maximum(x, negate(x))}) {
      results.push_back(convert(y, DType::f32));
    }
    const Arrays out = p.run(client(), results);
    EXPECT_EQ(out[0].values<float>(), (Floats{0.5f, 1, 2, 4})) << name(t);
    EXPECT_EQ(out[1].values<float>(), (Floats{0.0625f, 0.25f, 1, 4})) << name(t);
    EXPECT_EQ(out[9].values<float>(), (Floats{0.25f, 0.5f, 1, 2})) << name(t);
    const double tolerance = itemsize(t) == 2 ? 0.01 : 0.13;
    const auto near = [&](size_t k, size_t i, double want) {
      EXPECT_NEAR(out[k].values<float>()[i], want, tolerance * std::fabs(want))
          << name(t) << ' ' << k;
    };
    near(2, 2, std::exp(1.0));
    near(3, 3, std::log(2.0));
    near(4, 1, std::erf(0.5));
    near(5, 1, std::erfc(0.5));
    near(6, 3, 0.21526929);
    near(7, 1, std::tanh(0.5));
    near(8, 1, std::sqrt(0.5));
  }
}

TEST_P(Float, computes_complex_numbers) {
  using C = std::complex<float>;
  const std::vector<C> xs = {{1, 2}, {-0.5f, 0.25f}, {0.75f, -3}};
  const std::vector<C> ys = {{2, -1}, {0.5f, 1}, {-1, 0.5f}};
  struct Case {
    const char* name;
    Value (*op)(Value);
    C (*want)(C);
  };
  const std::vector<Case> unary = {
      {"exp", exponential, [](C z) { return std::exp(z); }},
      {"log", log, [](C z) { return std::log(z); }},
      {"sqrt", sqrt, [](C z) { return std::sqrt(z); }},
      {"rsqrt", rsqrt, [](C z) { return C(1) / std::sqrt(z); }},
      {"tanh", tanh, [](C z) { return std::tanh(z); }},
      {"tan", tan, [](C z) { return std::tan(z); }},
      {"sine", sine, [](C z) { return std::sin(z); }},
      {"cosine", cosine, [](C z) { return std::cos(z); }},
      {"sinh", sinh, [](C z) { return std::sinh(z); }},
      {"cosh", cosh, [](C z) { return std::cosh(z); }},
      {"asin", asin, [](C z) { return std::asin(z); }},
      {"acos", acos, [](C z) { return std::acos(z); }},
      {"atan", atan, [](C z) { return std::atan(z); }},
      {"asinh", asinh, [](C z) { return std::asinh(z); }},
      {"acosh", acosh, [](C z) { return std::acosh(z); }},
      {"atanh", atanh, [](C z) { return std::atanh(z); }},
      {"negate", negate, [](C z) { return -z; }},
      {"sign", sign, [](C z) { return z / std::abs(z); }},
      {"logistic", logistic, [](C z) { return C(1) / (C(1) + std::exp(-z)); }},
      {"expm1", exponential_minus_one, [](C z) { return std::exp(z) - C(1); }},
      {"log1p", log_plus_one, [](C z) { return std::log(C(1) + z); }},
  };
  Program p;
  Value x = p.input<C>({3}, xs), y = p.input<C>({3}, ys);
  Values results = {x + y,
                    x - y,
                    x * y,
                    x / y,
                    power(x, y),
                    abs(x),
                    real(x),
                    imag(x),
                    compare(x, x, Compare::eq),
                    complex(real(x), imag(y))};
  for (const Case& c : unary) results.push_back(c.op(x));
  const Arrays out = p.run(client(), results);
  const auto expect = [&](size_t k, size_t i, C want, const char* what) {
    const C got = out[k].values<C>()[i];
    EXPECT_LE(std::abs(got - want), 1e-5 * (1 + std::abs(want)))
        << what << ' ' << got << ' ' << want;
  };
  for (size_t i = 0; i < 3; ++i) {
    expect(0, i, xs[i] + ys[i], "add");
    expect(1, i, xs[i] - ys[i], "subtract");
    expect(2, i, xs[i] * ys[i], "multiply");
    expect(3, i, xs[i] / ys[i], "divide");
    expect(4, i, std::pow(xs[i], ys[i]), "power");
    EXPECT_NEAR(out[5].values<float>()[i], std::abs(xs[i]), 1e-5);
    EXPECT_EQ(out[6].values<float>()[i], xs[i].real());
    EXPECT_EQ(out[7].values<float>()[i], xs[i].imag());
    EXPECT_TRUE(out[8].values<bool>()[i]);
    expect(9, i, {xs[i].real(), ys[i].imag()}, "complex");
    for (size_t k = 0; k < unary.size(); ++k)
      expect(10 + k, i, unary[k].want(xs[i]), unary[k].name);
  }
}

TEST(FloatErrors, name_operation_and_types) {
  Builder b;
  Value f = b.parameter(0, {DType::f32, {2}}), n = b.parameter(1, {DType::s32, {3}}),
        c = b.parameter(2, {DType::c64, {2}});
  EXPECT_EQ(error_of([&] { exp(n); }), "exponential of s32[3]: dtype is not supported");
  EXPECT_EQ(error_of([&] { erf(c); }), "erf of c64[2]: dtype is not supported");
  EXPECT_EQ(error_of([&] { cbrt(c); }), "cbrt of c64[2]: dtype is not supported");
  EXPECT_EQ(error_of([&] { maximum(c, c); }), "maximum of c64[2], c64[2]: dtype is not supported");
  EXPECT_EQ(error_of([&] { and_(f, f); }), "and of f32[2], f32[2]: dtype is not supported");
  EXPECT_EQ(error_of([&] { (void)(c < c); }),
            "compare of c64[2], c64[2]: complex numbers have no order");
  EXPECT_EQ(error_of([&] { select(f, f, f); }),
            "select of f32[2], f32[2], f32[2]: the first operand must be pred");
  EXPECT_EQ(error_of([&] { add(f, b.parameter(3, {DType::f32, {3}})); }),
            "add of f32[2], f32[3]: shapes do not broadcast");
  EXPECT_EQ(error_of([&] { complex(n, n); }), "complex of s32[3], s32[3]: f32 or f64 is needed");
}

}  // namespace
}  // namespace torch_tpu::hlo
