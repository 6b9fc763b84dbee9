// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "hlo/builder.h"
#include "hlo/type.h"
#include "pjrt/client.h"

// Runs a program on XLA:CPU with host arrays in and out:
//   Builder b;
//   Module m = b.finish({b.parameter(0, {DType::f32, {2}}) * 2});
//   EXPECT_EQ(run(m, {array<float>({2}, {1, 2})})[0].values<float>(), (std::vector<float>{2, 4}));
namespace torch_tpu::test {

template <typename T>
constexpr hlo::DType dtype_of() {
  using hlo::DType;
  if constexpr (std::is_same_v<T, bool>)
    return DType::pred;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::s8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::s16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::s32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::s64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::u8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::u16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::u32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return DType::u64;
  else if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::c64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return DType::c128;
  else
    static_assert(sizeof(T) == 0, "no dtype for this C++ type");
}

// An array on the host: dense, row-major.
struct Array {
  hlo::Type type;
  std::string bytes;

  // The elements. T is the dtype's C++ type, or for f16, bf16 and f8 an unsigned integer of their
  // size (the bits).
  template <typename T>
  std::vector<T> values() const {
    const bool bits = std::is_unsigned_v<T> && hlo::is_floating(type.dtype);
    if ((dtype_of<T>() != type.dtype && !bits) ||
        static_cast<int64_t>(sizeof(T)) != hlo::itemsize(type.dtype)) {
      throw std::invalid_argument("values<T>() of " + type.str() + " read as another type");
    }
    std::vector<T> out(bytes.size() / sizeof(T));
    for (size_t i = 0; i < out.size(); ++i) {  // element by element: vector<bool> has no data()
      T element;
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = element;
    }
    return out;
  }
};

// An array of another dtype than T's own holds T's bits (f16 and bf16 from uint16_t, f8 from
// uint8_t).
template <typename T>
Array array(hlo::DType dtype, hlo::Dims dims, const std::vector<T>& values) {
  Array a{{dtype, std::move(dims)}, {}};
  if (static_cast<int64_t>(values.size() * sizeof(T)) != a.type.nbytes()) {
    throw std::invalid_argument(std::to_string(values.size()) + " values for " + a.type.str());
  }
  a.bytes.resize(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T element = values[i];
    std::memcpy(a.bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
  return a;
}

template <typename T>
Array array(hlo::Dims dims, const std::vector<T>& values) {
  return array(dtype_of<T>(), std::move(dims), values);
}

using Arrays = std::vector<Array>;

// Compiles `stablehlo` (once per text, client and process) and runs it on the client's device 0;
// nothing is donated. `inputs` are main's arguments in order. Throws pjrt::Error with the plugin's
// message. One thread at a time.
Arrays run(const pjrt::Client& client, const std::string& stablehlo, const Arrays& inputs);

// The same on testing/plugins.h's default client.
Arrays run(const std::string& stablehlo, const Arrays& inputs);

// The same for a built module. `inputs` are by parameter number; those that the program dropped are
// not passed.
Arrays run(const hlo::Module& module, const Arrays& inputs);

}  // namespace torch_tpu::test
