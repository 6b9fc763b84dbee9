// SPDX-License-Identifier: Apache-2.0
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/PixelShuffle.h>
#include <ATen/native/Pool.h>

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

template <int N>
void adaptive_avg_pool(CheckArgs a) {
  const at::Tensor& x = a[0].toTensor();
  TORCH_CHECK(x.dim() == N + 1 || x.dim() == N + 2, "adaptive_avg_pool", N, "d(): Expected ", N + 1,
              "D or ", N + 2, "D tensor, but got ", x.sizes());
}

template <int N>
void max_unpool(CheckArgs a) {
  const at::Tensor &x = a[0].toTensor(), &indices = a[1].toTensor();
  if (indices.scalar_type() != at::kLong || a[2].toIntVector().size() != N) return;
  if (x.dim() != N + 1 && x.dim() != N + 2) return;
  TORCH_CHECK(x.sizes() == indices.sizes(),
              "Expected shape of indices to be same as that of the input tensor (", x.sizes(),
              ") but got indices tensor with shape: ", indices.sizes());
}

// self, kernel_size, stride, padding, dilation, ceil_mode.
void max_pool3d(CheckArgs a) {
  const at::Tensor& x = a[0].toTensor();
  int64_t of[5][3];  // [argument][T, H, W]
  for (int i = 1; i < 5; ++i) {
    auto given = a[i].toIntVector();
    if (i == 2 && given.empty()) given = a[1].toIntVector();
    if (given.size() != 1 && given.size() != 3) return;  // the meta function's matter
    for (size_t d = 0; d < 3; ++d) of[i][d] = given[given.size() == 1 ? 0 : d];
  }
  if (x.dim() != 4 && x.dim() != 5) return;
  int64_t out[3];
  for (int d = 0; d < 3; ++d)
    out[d] = at::native::pooling_output_shape<int64_t>(x.size(d - 3), of[1][d], of[3][d], of[2][d],
                                                       of[4][d], a[5].toBool());
  const auto n = [&](int i, int d) { return static_cast<int>(of[i][d]); };
  at::native::pool3d_shape_check(x, x.size(-4), n(1, 0), n(1, 1), n(1, 2), n(2, 0), n(2, 1),
                                 n(2, 2), n(3, 0), n(3, 1), n(3, 2), n(4, 0), n(4, 1), n(4, 2),
                                 x.size(-3), x.size(-2), x.size(-1), out[0], out[1], out[2],
                                 "max_pool3d_with_indices_out_cpu_template()");
}

void require_grid_dtype(CheckArgs a) {
  const at::ScalarType x = a[0].toTensor().scalar_type(), grid = a[1].toTensor().scalar_type();
  TORCH_CHECK(x == grid, "expected scalar type ", x, " but found ", grid);
}

void grid_sampler_2d(CheckArgs a) {
  at::native::check_grid_sampler_common(a[0].toTensor(), a[1].toTensor());
  at::native::check_grid_sampler_2d(a[0].toTensor(), a[1].toTensor());
  require_grid_dtype(a);
}

void grid_sampler_3d(CheckArgs a) {
  at::native::check_grid_sampler_common(a[0].toTensor(), a[1].toTensor());
  at::native::check_grid_sampler_3d(a[0].toTensor(), a[1].toTensor(), a[2].toInt());
  require_grid_dtype(a);
}

void pixel_shuffle(CheckArgs a) {
  at::native::check_pixel_shuffle_shapes(a[0].toTensor(), a[1].toInt());
}

void pixel_unshuffle(CheckArgs a) {
  at::native::check_pixel_unshuffle_shapes(a[0].toTensor(), a[1].toInt());
}

// PyTorch's meta functions read the paddings that they expect, and no fewer.
template <int N, int kAt>
void paddings(CheckArgs a) {
  const auto given = a[kAt].toIntVector().size();
  TORCH_CHECK(given == 2 * N, "padding size is expected to be ", 2 * N, ", but got: ", given);
}

}  // namespace

void add_pooling_checks(CheckTable& table) {
  table.insert({
      {"aten::_adaptive_avg_pool2d", adaptive_avg_pool<2>},
      {"aten::_adaptive_avg_pool3d", adaptive_avg_pool<3>},
      {"aten::max_pool3d_with_indices", max_pool3d},
      {"aten::max_unpool2d", max_unpool<2>},
      {"aten::max_unpool3d", max_unpool<3>},
      {"aten::grid_sampler_2d", grid_sampler_2d},
      {"aten::grid_sampler_3d", grid_sampler_3d},
      {"aten::reflection_pad1d_backward", paddings<1, 2>},
      {"aten::reflection_pad2d_backward", paddings<2, 2>},
      {"aten::reflection_pad3d_backward", paddings<3, 2>},
      {"aten::replication_pad1d_backward", paddings<1, 2>},
      {"aten::replication_pad2d_backward", paddings<2, 2>},
      {"aten::replication_pad3d_backward", paddings<3, 2>},
      {"aten::pixel_shuffle", pixel_shuffle},
      {"aten::pixel_unshuffle", pixel_unshuffle},
  });
}

}  // namespace torch_tpu::aten
