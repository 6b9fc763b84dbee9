# SPDX-License-Identifier: Apache-2.0
"""Fractional max pooling, said in other operators: windows of one size whose starts are drawn, so
known only on the device, hence a gather.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_tpu._internal.refusals import require, require_dtype

aten = torch.ops.aten


def _starts(sample: Tensor, size: int, out: int, kernel: int) -> Tensor:
    """[.., out]: int((i + u) a) - int(u a), a = (size - kernel) / (out - 1), of draws u [..]; the
    last window ends with the input.
    """
    last = sample.new_full((*sample.shape, 1), size - kernel, dtype=torch.int64)
    if out == 1:
        return last
    alpha = sample.new_full((), size - kernel) / sample.new_full(
        (), out - 1
    )  # rounded to u's dtype
    u = sample.unsqueeze(-1)
    i = torch.arange(out - 1, dtype=sample.dtype, device=sample.device)
    starts = ((i + u) * alpha).to(torch.int64) - (u * alpha).to(torch.int64)
    return torch.cat([starts, last], -1)


def _check(x: Tensor, samples: Tensor, n: int) -> None:
    require(x.dtype == samples.dtype, "Expect _random_samples to have the same dtype as input")
    require(
        samples.dim() == 3,
        f"Expect _random_samples to have 3 dimensions got, {samples.dim()}",
    )
    require(
        samples.shape[0] >= x.shape[0],
        "Expect _random_samples.size(0) no less then input batch size.",
    )
    require(
        samples.shape[1] == x.shape[1],
        "Expect _random_samples.size(1) equals to input channel size.",
    )
    require(
        samples.shape[2] == n,
        f"Expect _random_samples.size(2) equals to {n}; got {samples.shape[2]}.",
    )
    floating = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
    require_dtype(f"fractional_max_pool{n}d_out_frame", x.dtype, floating)


def _pool(
    x: Tensor, kernel: Sequence[int], out: Sequence[int], samples: Tensor, order: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Maxima and their flat places of the windows over x's last dimensions. `samples`
    [batch, channels, n]: dimension d's draw is number order[d].
    """
    n = len(kernel)
    sizes = x.shape[-n:]
    batched = x.reshape(-1, *x.shape[-n - 1 :])
    _check(batched, samples, n)
    samples = samples[: batched.shape[0]]
    place = torch.zeros((), dtype=torch.int64, device=x.device)
    for d, (size, k, o) in enumerate(zip(sizes, kernel, out, strict=True)):
        at = _starts(samples[..., order[d]], size, o, k)  # [batch, channels, o]
        at = at.unsqueeze(-1) + torch.arange(k, device=x.device)
        shape = [1] * (2 * n)
        shape[d], shape[n + d] = o, k
        place = place * size + at.reshape(*at.shape[:2], *shape)
    place = place.flatten(2 + n)  # [batch, channels, out.., elements of a window]
    values = batched.flatten(2).gather(-1, place.flatten(2)).reshape(place.shape)
    most, which = values.max(-1)
    where = place.gather(-1, which.unsqueeze(-1)).squeeze(-1)
    result = (*x.shape[:-n], *out)
    return most.reshape(result), where.reshape(result)


def fractional_max_pool2d(
    self: Tensor, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Tensor
) -> tuple[Tensor, Tensor]:
    return _pool(self, kernel_size, output_size, random_samples, (1, 0))


def fractional_max_pool3d(
    self: Tensor, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Tensor
) -> tuple[Tensor, Tensor]:
    return _pool(self, kernel_size, output_size, random_samples, (0, 1, 2))


def fractional_max_pool_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    indices: Tensor,
) -> Tensor:
    """Each gradient at the place that its maximum came from, added up; of any number of pooled
    dimensions.
    """
    n = len(kernel_size)
    zeros = torch.zeros_like(self, memory_format=torch.contiguous_format).flatten(-n)
    sums = zeros.scatter_add(-1, indices.flatten(-n), grad_output.flatten(-n))
    return sums.reshape(self.shape)


TABLE: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    aten.fractional_max_pool2d.default: fractional_max_pool2d,
    aten.fractional_max_pool3d.default: fractional_max_pool3d,
    aten.fractional_max_pool2d_backward.default: fractional_max_pool_backward,
    aten.fractional_max_pool3d_backward.default: fractional_max_pool_backward,
}
