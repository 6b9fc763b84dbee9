// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/registry.h"
#include "lower/require.h"

// Discrete Fourier transforms over any dimensions, one dimension after another.
//   normalization  0: none, 1: 1 / sqrt(n), 2: 1 / n, n the number of elements transformed together
namespace torch_tpu::lower {
namespace {

using hlo::FftType;

// `f` along x's last dimension, put back at `dim`.
Value along(Value x, int64_t dim, FftType type, int64_t n) {
  Dims order = all_dims(x);
  std::swap(order[dim], order.back());  // its own inverse
  return transpose(hlo::fft(transpose(x, order), type, {n}), order);
}

Value scaled(Value x, double by) {
  if (by == 1) return x;
  Value factor = hlo::full(x.builder(), {hlo::real_type(x.dtype()), x.dims()}, by);
  if (!hlo::is_complex(x.dtype())) return x * factor;
  return hlo::complex(hlo::real(x) * factor, hlo::imag(x) * factor);
}

double factor(double n, int64_t normalization) {
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

// Unnormalised: sum_j x_j exp(-+2 pi i jk / n), minus if forward.
Value transformed(Value x, int64_t dim, bool forward) {
  const int64_t n = x.dim(dim);
  return forward ? along(x, dim, FftType::fft, n)
                 : scaled(along(x, dim, FftType::ifft, n), static_cast<double>(n));
}

// The dims in [0, rank), in the caller's order.
Dims wrapped(const Dims& dims, Value x) {
  Dims out;
  for (int64_t d : dims) out.push_back(wrap(d, x.rank()));
  return out;
}

// complex -> complex, same shape
Value fft_c2c(Value self, Dims dim, int64_t normalization, bool forward) {
  double n = 1;
  Value x = self;
  if (x.numel() == 0) return x;
  for (int64_t d : wrapped(dim, self)) {
    n *= static_cast<double>(self.dim(d));
    x = transformed(x, d, forward);
  }
  return scaled(x, factor(n, normalization));
}

// real -> complex; `onesided` keeps only the first n/2 + 1 elements of the last of `dim`: the rest
// are their conjugates
Value fft_r2c(Value self, Dims dim, int64_t normalization, bool onesided) {
  require_floating("_fft_r2c_mkl", self);
  const Dims dims = wrapped(dim, self);
  if (!onesided || self.numel() == 0) {
    Value x = fft_c2c(convert(self, hlo::complex_type(self.dtype())), dim, normalization, true);
    return onesided ? slice_in_dim(x, dims.back(), 0, x.dim(dims.back()) / 2 + 1) : x;
  }
  double n = static_cast<double>(self.dim(dims.back()));
  Value x = along(self, dims.back(), FftType::rfft, self.dim(dims.back()));
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    n *= static_cast<double>(self.dim(dims[i]));
    x = transformed(x, dims[i], true);
  }
  return scaled(x, factor(n, normalization));
}

// Half a conjugate-symmetric spectrum -> real, `last_dim_size` elements along the last of `dim`
// (backward transform)
Value fft_c2r(Value self, Dims dim, int64_t normalization, int64_t last_dim_size) {
  const Dims dims = wrapped(dim, self);
  double n = static_cast<double>(last_dim_size);
  Value x = self;
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    n *= static_cast<double>(self.dim(dims[i]));
    x = transformed(x, dims[i], false);
  }
  x = slice_in_dim(x, dims.back(), 0, last_dim_size / 2 + 1);
  x = scaled(along(x, dims.back(), FftType::irfft, last_dim_size),
             static_cast<double>(last_dim_size));
  return scaled(x, factor(n, normalization));
}

}  // namespace

void register_fft(Registry& r) {
  r.add("aten::_fft_c2c", fft_c2c);
  r.add("aten::_fft_r2c", fft_r2c);
  r.add("aten::_fft_c2r", fft_c2r);
}

}  // namespace torch_tpu::lower
