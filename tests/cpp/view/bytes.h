// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "testing/run.h"
#include "view/model.h"

// Arrays of random bytes, the values of views by copying bytes, and views' programs run on them.
namespace torch_tpu::view::model {

// A pred is 0 or 1; other bytes are 1 to 63, so that no float is a NaN, whose bits hardware may
// change on the way, or an f32 or f64 too small for a processor that flushes those to 0.
inline test::Array random_array(Rng& rng, const Type& type) {
  test::Array a{type, std::string(type.nbytes(), 0)};
  for (char& c : a.bytes)
    c = static_cast<char>(type.dtype == DType::pred ? uniform(rng, 0, 1) : uniform(rng, 1, 63));
  return a;
}

inline void normalise_preds(test::Array& a) {
  if (a.type.dtype != DType::pred) return;
  for (char& c : a.bytes) c = c != 0;
}

inline test::Array read(const test::Array& base, const View& v) {
  test::Array out{{v.dtype, v.sizes}, {}};
  const int64_t size = hlo::itemsize(v.dtype);
  for (int64_t at : indices(v)) out.bytes += base.bytes.substr(at * size, size);
  normalise_preds(out);
  return out;
}

inline test::Array written(test::Array base, const View& v, const test::Array& data) {
  const int64_t size = hlo::itemsize(v.dtype);
  int64_t from = 0;
  for (int64_t at : indices(v))
    base.bytes.replace(at * size, size, data.bytes.substr(size * from++, size));
  normalise_preds(base);
  return base;
}

// Element-wise comparable: the bytes as numbers.
inline Dims numbers(const test::Array& a) { return Dims(a.bytes.begin(), a.bytes.end()); }

// Parameters 1, 2, ... of a program: the plan's operands.
inline hlo::Values declare_starts(hlo::Builder& b, const Plan& p) {
  hlo::Values starts;
  for (int i = 1; i <= p.num_operands(); ++i) starts.push_back(b.parameter(i, {DType::s64, {}}));
  return starts;
}

// base, starts -> the view's value
inline hlo::Module read_program(const Type& base, const View& v) {
  const Plan p = plan(base, v);
  hlo::Builder b;
  const Value x = b.parameter(0, base);
  return b.finish({view::read(x, v, p, declare_starts(b, p))});
}

// base, starts, data -> the new base
inline hlo::Module write_program(const Type& base, const View& v) {
  const Plan p = plan(base, v);
  hlo::Builder b;
  const Value x = b.parameter(0, base);
  const hlo::Values starts = declare_starts(b, p);
  const Value data = b.parameter(static_cast<int>(starts.size()) + 1, {v.dtype, v.sizes});
  return b.finish({view::write(x, v, p, starts, data)});
}

inline test::Arrays base_and_starts(const test::Array& base, const View& v) {
  test::Arrays inputs = {base};
  for (int64_t start : plan(base.type, v).operands()) {
    inputs.push_back(test::array<int64_t>({}, {start}));
  }
  return inputs;
}

inline test::Array run_read(const test::Array& base, const View& v) {
  return test::run(read_program(base.type, v), base_and_starts(base, v)).at(0);
}

inline test::Array run_write(const test::Array& base, const View& v, const test::Array& data) {
  test::Arrays inputs = base_and_starts(base, v);
  inputs.push_back(data);
  return test::run(write_program(base.type, v), inputs).at(0);
}

}  // namespace torch_tpu::view::model
