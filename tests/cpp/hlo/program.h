// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "hlo/ops.h"
#include "testing/on_each_plugin.h"
#include "testing/run.h"

namespace torch_tpu::hlo {

using test::Array;
using test::array;
using test::Arrays;

// A program under construction, with the arrays to run it on:
//   Program p;
//   Value x = p.input<float>({2}, {1, 2});
//   EXPECT_EQ(p.run(client(), {x + x})[0].values<float>(), (Floats{2, 4}));
class Program {
 public:
  Builder b;

  template <typename T>
  Value input(const Dims& dims, const std::vector<T>& values) {
    return input(array<T>(dims, values));
  }
  Value input(const Array& a) {
    inputs_.push_back(a);
    return b.parameter(static_cast<int>(inputs_.size()) - 1, a.type);
  }
  // 0, 1, 2, .. in this shape
  template <typename T>
  Value count(const Dims& dims) {
    std::vector<T> values(static_cast<size_t>(numel(dims)));
    std::iota(values.begin(), values.end(), T{0});
    return input<T>(dims, values);
  }
  Arrays run(const pjrt::Client& client, const Values& results) {
    const Module m = b.finish(results);
    Arrays arguments;
    for (int i : m.inputs) arguments.push_back(inputs_[i]);
    Arrays out = test::run(client, m.text, arguments);
    EXPECT_EQ(out.size(), m.outputs.size());
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i].type.str(), m.outputs[i].str());
    return out;
  }

 private:
  Arrays inputs_;
};

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
using Longs = std::vector<int64_t>;
using Bools = std::vector<bool>;

// What `f` throws as hlo::Error, or "" if it throws nothing.
template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Equal up to `relative` of the larger of `want` and `floor`, NaN equal to NaN, infinities and
// zeros exactly (sign included when relative is 0).
template <typename T>
::testing::AssertionResult close(T got, T want, double relative, double floor = 1e-30) {
  if (std::isnan(want) || std::isnan(got)) {
    if (std::isnan(want) && std::isnan(got)) return ::testing::AssertionSuccess();
  } else if (got == want) {
    if (relative != 0 || std::signbit(got) == std::signbit(want))
      return ::testing::AssertionSuccess();
  } else if (std::isfinite(want) &&
             std::fabs(got - want) <= relative * std::max<double>(std::fabs(want), floor)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "got " << got << ", want " << want;
}

}  // namespace torch_tpu::hlo
