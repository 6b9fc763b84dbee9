// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of lowering families: add `X(family) \` here, the source to CMakeLists.txt, and define
// `void register_family(Registry&)` in family.cpp. One line a family, alphabetical, only families
// that exist.
#define TORCH_TPU_FAMILIES(X) \
  X(activation)               \
  X(attention)                \
  X(avg_pool)                 \
  X(bessel)                   \
  X(complex)                  \
  X(conv)                     \
  X(ctc_loss)                 \
  X(distance)                 \
  X(eigen)                    \
  X(embedding)                \
  X(embedding_bag)            \
  X(factory)                  \
  X(fake_quantize)            \
  X(fft)                      \
  X(foreach)                  \
  X(gamma)                    \
  X(grid_sampler)             \
  X(grouped_mm)               \
  X(index)                    \
  X(internal)                 \
  X(linalg)                   \
  X(loss)                     \
  X(matmul)                   \
  X(max_pool)                 \
  X(norm)                     \
  X(optim)                    \
  X(orthogonal_polynomial)    \
  X(pad)                      \
  X(pointwise_arithmetic)     \
  X(pointwise_bitwise)        \
  X(pointwise_compare)        \
  X(pointwise_math)           \
  X(random)                   \
  X(reduce)                   \
  X(rnn)                      \
  X(sampling)                 \
  X(scan)                     \
  X(scatter)                  \
  X(shape)                    \
  X(softmax)                  \
  X(sort)                     \
  X(special)                  \
  X(unique)                   \
  X(upsample)                 \
  X(window_function)          \
  /* end of the list */

namespace torch_tpu::lower {

class Registry;

#define TORCH_TPU_DECLARE_FAMILY(family) void register_##family(Registry& r);
TORCH_TPU_FAMILIES(TORCH_TPU_DECLARE_FAMILY)
#undef TORCH_TPU_DECLARE_FAMILY

// Registers every family: how `Registry::global` is filled.
inline void register_families(Registry& r) {
  (void)r;
#define TORCH_TPU_REGISTER_FAMILY(family) register_##family(r);
  TORCH_TPU_FAMILIES(TORCH_TPU_REGISTER_FAMILY)
#undef TORCH_TPU_REGISTER_FAMILY
}

}  // namespace torch_tpu::lower
