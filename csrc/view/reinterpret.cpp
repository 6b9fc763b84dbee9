// SPDX-License-Identifier: Apache-2.0
#include "view/reinterpret.h"

namespace torch_tpu::view {

using hlo::Dims;
using hlo::DType;
using hlo::Type;
using hlo::Value;

namespace {

// XLA's bitcast_convert takes neither complex numbers nor preds: what stands for them in it.
DType word(DType t) { return t == DType::pred ? DType::u8 : hlo::real_type(t); }

// Rank 1, dtype word(x.dtype()).
Value to_words(Value x) {
  x = flatten(x);
  if (x.dtype() == DType::pred) return convert(x, DType::u8);
  if (!hlo::is_complex(x.dtype())) return x;
  return hlo::flatten(hlo::concatenate({unsqueeze(real(x), -1), unsqueeze(imag(x), -1)}, 1));
}

// Rank 1 to rank 1; elements that do not fill a wider one are dropped.
Value recast(Value words, DType t) {
  const int64_t from = hlo::itemsize(words.dtype()), to = hlo::itemsize(t);
  if (from < to) {
    const int64_t ratio = to / from, n = words.numel() / ratio;
    words = reshape(slice_in_dim(words, 0, 0, n * ratio), {n, ratio});
  }
  return words.dtype() == t ? words : flatten(bitcast_convert(words, t));
}

Value from_words(Value words, DType t) {
  if (t == DType::pred) return words != zeros_like(words);
  if (!hlo::is_complex(t)) return words;
  const int64_t n = words.numel() / 2;
  const Value pairs = reshape(slice_in_dim(words, 0, 0, 2 * n), {n, 2});
  return complex(reshape(slice_in_dim(pairs, 1, 0, 1), {n}),
                 reshape(slice_in_dim(pairs, 1, 1, 2), {n}));
}

}  // namespace

Dims reinterpreted_dims(const Type& base, DType t) {
  const int64_t from = hlo::itemsize(base.dtype), to = hlo::itemsize(t);
  Dims dims = base.dims;
  if (from > to) {
    dims.push_back(from / to);
  } else if (from < to) {
    const int64_t ratio = to / from;
    if (dims.empty() || dims.back() % ratio != 0) return {base.numel() / ratio};
    dims.back() /= ratio;
  }
  return dims;
}

Value reinterpret(Value x, DType t) {
  if (x.dtype() == t) return x;
  const Dims dims = reinterpreted_dims(x.type(), t);
  return reshape(from_words(recast(to_words(x), word(t)), t), dims);
}

Value reinterpret_back(Value base, Value x) {
  if (x.dtype() == base.dtype()) return reshape(x, base.dims());
  Value out = from_words(recast(to_words(x), word(base.dtype())), base.dtype());
  if (out.numel() < base.numel()) {
    out = hlo::concatenate({out, slice_in_dim(flatten(base), 0, out.numel(), base.numel())}, 0);
  }
  return reshape(out, base.dims());
}

}  // namespace torch_tpu::view
