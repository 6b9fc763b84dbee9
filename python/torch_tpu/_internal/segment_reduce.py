# SPDX-License-Identifier: Apache-2.0
"""torch.segment_reduce, said in other operators: elements go to their segment's place by a scatter.

Segments lie along `axis`, given by `lengths` [.., n] or by `offsets` [.., n + 1]; what comes before
that axis has segments of its own. An empty segment gives `initial`, and without it -inf (max), inf
(min), 0 (sum), 1 (prod), NaN (mean).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_tpu._internal.refusals import require, require_dtype

aten = torch.ops.aten
_SCATTER = {"max": "amax", "min": "amin", "sum": "sum", "mean": "sum", "prod": "prod"}
_START = {"max": -torch.inf, "min": torch.inf, "sum": 0.0, "mean": 0.0, "prod": 1.0}

Number = int | float


def _checked(
    data: Tensor, reduce: str, lengths: Tensor | None, offsets: Tensor | None, axis: int
) -> int:
    given, name = (lengths, "lengths") if offsets is None else (offsets, "offsets")
    require(
        reduce in _START,
        f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}",
    )
    require(given is not None, "segment_reduce(): Either lengths or offsets must be defined.")
    assert given is not None
    axis = axis + data.dim() if axis < 0 else axis
    require(
        axis == given.dim() - 1,
        f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.",
    )
    require_dtype(f"_segment_reduce_{name}_cpu_kernel1", given.dtype, (torch.int32, torch.int64))
    floating = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
    require_dtype("_segment_reduce_cpu", data.dtype, floating)
    return axis


def _offsets(lengths: Tensor | None, offsets: Tensor | None) -> Tensor:
    if offsets is not None:
        return offsets
    assert lengths is not None
    return torch.nn.functional.pad(lengths.cumsum(-1), (1, 0))


def _segments(data: Tensor, offsets: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """For each element its segment, in data's shape (n for an element outside of all), and each
    segment's length, [.., n, 1..].
    """
    n = offsets.shape[-1] - 1
    size = data.shape[axis]
    places = torch.arange(size, dtype=offsets.dtype, device=data.device)
    places = places.expand(*offsets.shape[:-1], size).contiguous()
    at = torch.searchsorted(offsets.contiguous(), places, right=True) - 1
    at = at.masked_fill(at < 0, n)
    rest = [1] * (data.dim() - axis - 1)
    lengths = offsets.diff().reshape(*offsets.shape[:-1], n, *rest)
    return at.reshape(*at.shape, *rest).expand(data.shape), lengths


def _reduce(data: Tensor, at: Tensor, axis: int, n: int, reduce: str, start: Number) -> Tensor:
    shape = list(data.shape)
    shape[axis] = n + 1
    return data.new_full(shape, start).scatter_reduce(axis, at, data, reduce).narrow(axis, 0, n)


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Number | None = None,
) -> Tensor:
    axis = _checked(data, reduce, lengths, offsets, axis)
    if offsets is None and lengths is not None and not unsafe:
        token = aten._functional_assert_async.msg(
            (lengths >= 0).all(), "lengths contains negative value!", lengths
        )
        lengths = aten._functional_assert_async.msg(
            (lengths.sum(-1) == data.shape[axis]).all(),
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            "data.size(lengths.dim()-1) when !unsafe.",
            token,
        )
    bounds = _offsets(lengths, offsets)
    at, sizes = _segments(data, bounds, axis)
    n = bounds.shape[-1] - 1
    start = _START[reduce] if initial is None else initial
    out = _reduce(data, at, axis, n, _SCATTER[reduce], start)
    if reduce != "mean":
        return out
    mean = out / sizes.to(data.dtype)
    if initial is None:  # 0 / 0
        return mean
    return torch.where(sizes > 0, mean, out)


def segment_reduce_backward(
    grad: Tensor,
    output: Tensor,
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    initial: Number | None = None,
) -> Tensor:
    """sum: g. mean: g / length. prod: g times the product of the others. max and min: g shared
    among the elements that are the result; where g is negative each has it whole, as on CPU.
    """
    axis = _checked(data, reduce, lengths, offsets, axis)
    bounds = _offsets(lengths, offsets)
    at, sizes = _segments(data, bounds, axis)
    n = bounds.shape[-1] - 1
    inside = at < n
    at_one = at.clamp(max=max(n - 1, 0))

    def spread(per_segment: Tensor) -> Tensor:
        return per_segment.gather(axis, at_one)

    def total(x: Tensor) -> Tensor:
        return _reduce(x, at, axis, n, "sum", 0)

    if n == 0:
        return torch.zeros_like(data)
    g = spread(grad)
    if reduce == "mean":
        g = g / spread(sizes.expand(grad.shape)).to(data.dtype)
    elif reduce in ("max", "min"):
        chosen = data.isnan() | (data == spread(output))
        shared = spread(total(chosen.to(data.dtype)))
        g = torch.where(g > 0, g / shared, g)
        g = g.masked_fill(~chosen, 0)
    elif reduce == "prod":
        nan, zero = data.isnan(), data == 0
        special = nan | zero
        others = data.masked_fill(special, 1)
        product = spread(_reduce(others, at, axis, n, "prod", 1 if initial is None else initial))
        nans, zeros = spread(total(nan.to(data.dtype))), spread(total(zero.to(data.dtype)))
        product = product.masked_fill(zeros - zero.to(data.dtype) > 0, 0)
        product = product.masked_fill(nans - nan.to(data.dtype) > 0, torch.nan)
        g = torch.where(special, g * product, g * spread(output) / data)
    return g.masked_fill(~inside, 0)


TABLE: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    aten.segment_reduce.default: segment_reduce,
    aten._segment_reduce_backward.default: segment_reduce_backward,
}
