// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>
#include <type_traits>

#include "hlo/program.h"

// Element-wise operations on integers and pred, every pair of some values, against C++ with
// wrapping arithmetic.
namespace torch_tpu::hlo {
namespace {

template <typename T>
std::vector<T> points() {
  using L = std::numeric_limits<T>;
  return {0,
          1,
          2,
          3,
          7,
          static_cast<T>(-1),
          static_cast<T>(-2),
          static_cast<T>(-7),
          L::min(),
          L::max(),
          static_cast<T>(L::max() / 2 + 1),
          5};
}

template <typename T>
T shifted(T a, T b, char how) {
  using U = std::make_unsigned_t<T>;
  constexpr int kBits = 8 * sizeof(T);
  const U n = static_cast<U>(b);
  if (how == 'l') return n >= kBits ? 0 : static_cast<T>(static_cast<U>(a) << n);
  if (how == 'r') return n >= kBits ? 0 : static_cast<T>(static_cast<U>(a) >> n);
  const auto s = static_cast<std::make_signed_t<T>>(a);
  return static_cast<T>(s >> (n >= kBits ? kBits - 1 : static_cast<int>(n)));
}

template <typename T>
class IntegerOps {
  using U = std::make_unsigned_t<T>;

 public:
  static T divide(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return static_cast<T>(U{0} - static_cast<U>(a));
    return static_cast<T>(a / b);
  }
  static T remainder(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
  static T sign(T a) { return static_cast<T>((a > 0) - (a < 0)); }
  static T abs(T a) { return a < 0 ? static_cast<T>(U{0} - static_cast<U>(a)) : a; }
  static T wrap(uint64_t v) { return static_cast<T>(static_cast<U>(v)); }
};

class Integer : public test::OnEachPlugin {
 protected:
  template <typename T>
  void check() {
    using Ops = IntegerOps<T>;
    const std::vector<T> xs = points<T>();
    std::vector<T> as, bs;
    for (T a : xs) {
      for (T b : xs) {
        as.push_back(a);
        bs.push_back(b);
      }
    }
    const Dims dims = {static_cast<int64_t>(as.size())};
    Program p;
    Value a = p.input<T>(dims, as), b = p.input<T>(dims, bs);
    const Values results = {add(a, b),
                            subtract(a, b),
                            multiply(a, b),
                            divide(a, b),
                            remainder(a, b),
                            maximum(a, b),
                            minimum(a, b),
                            and_(a, b),
                            or_(a, b),
                            xor_(a, b),
                            shift_left(a, b),
                            shift_right_arithmetic(a, b),
                            shift_right_logical(a, b),
                            not_(a),
                            negate(a),
                            abs(a),
                            sign(a),
                            popcnt(a),
                            count_leading_zeros(a),
                            convert(a == b, a.dtype()),
                            convert(a < b, a.dtype()),
                            convert(a >= b, a.dtype()),
                            clamp(constant(p.b, a.dtype(), 1), a, constant(p.b, a.dtype(), 5)),
                            power(a, constant(p.b, a.dtype(), 3))};
    const Arrays out = p.run(client(), results);
    std::vector<std::vector<T>> got;
    for (const Array& o : out) got.push_back(o.values<T>());
    for (size_t i = 0; i < as.size(); ++i) {
      const T x = as[i], y = bs[i];
      const uint64_t ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
      const std::vector<T> want = {
          Ops::wrap(ux + uy),
          Ops::wrap(ux - uy),
          Ops::wrap(ux * uy),
          Ops::divide(x, y),
          Ops::remainder(x, y),
          std::max(x, y),
          std::min(x, y),
          static_cast<T>(x & y),
          static_cast<T>(x | y),
          static_cast<T>(x ^ y),
          shifted(x, y, 'l'),
          shifted(x, y, 'a'),
          shifted(x, y, 'r'),
          static_cast<T>(~x),
          Ops::wrap(-ux),
          Ops::abs(x),
          Ops::sign(x),
          static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(x))),
          static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(x))),
          x == y,
          x < y,
          x >= y,
          std::clamp<T>(x, 1, 5),
          Ops::wrap(ux * ux * ux)};
      ASSERT_EQ(want.size(), got.size());
      for (size_t k = 0; k < want.size(); ++k) {
        EXPECT_EQ(+got[k][i], +want[k])
            << "operation " << k << " of " << +x << ", " << +y << ' ' << name(a.dtype());
      }
    }
  }
};
TT_ON_EACH_CPU_PLUGIN(Integer);

TEST_P(Integer, s8) { check<int8_t>(); }
TEST_P(Integer, s16) { check<int16_t>(); }
TEST_P(Integer, s32) { check<int32_t>(); }
TEST_P(Integer, s64) { check<int64_t>(); }
TEST_P(Integer, u8) { check<uint8_t>(); }
TEST_P(Integer, u16) { check<uint16_t>(); }
TEST_P(Integer, u32) { check<uint32_t>(); }
TEST_P(Integer, u64) { check<uint64_t>(); }

// A constant divisor takes another way through the compiler than one that comes at run time.
TEST_P(Integer, divides_by_a_constant_zero) {
  Program p;
  Value x = p.input<int32_t>({3}, {7, -7, 0});
  const Arrays out = p.run(client(), {x / 0.0, remainder(x, constant(p.b, DType::s32, 0))});
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{-1, -1, -1}));
  EXPECT_EQ(out[1].values<int32_t>(), (Ints{7, -7, 0}));
}

TEST_P(Integer, pred) {
  Program p;
  Value a = p.input<bool>({4}, {false, false, true, true}),
        b = p.input<bool>({4}, {false, true, false, true});
  const Arrays out = p.run(client(), {a & b, a | b, a ^ b, ~a, add(a, b), multiply(a, b),
                                      maximum(a, b), minimum(a, b), a == b, a < b, a >= b});
  const std::vector<Bools> want = {{0, 0, 0, 1}, {0, 1, 1, 1}, {0, 1, 1, 0}, {1, 1, 0, 0},
                                   {0, 1, 1, 1}, {0, 0, 0, 1}, {0, 1, 1, 1}, {0, 0, 0, 1},
                                   {1, 0, 0, 1}, {0, 1, 0, 0}, {1, 0, 1, 1}};
  for (size_t k = 0; k < want.size(); ++k)
    EXPECT_EQ(out[k].values<bool>(), want[k]) << "operation " << k;
}

TEST_P(Integer, null_test_is_not_an_operation) {
  Value null;
  EXPECT_TRUE(!null);
  Program p;
  Value x = p.input<bool>({1}, {true});
  EXPECT_FALSE(!x);
  EXPECT_EQ(p.run(client(), {x})[0].values<bool>(), (Bools{true}));
}

}  // namespace
}  // namespace torch_tpu::hlo
