# SPDX-License-Identifier: Apache-2.0
"""torch.histogram and torch.histogramdd, said in other operators.

Bins are half open but the last, which is closed; what lies outside of them, NaN included, is not
counted. CPU's refusals, in its words; what only the device knows is raised when the host next
waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_tpu._internal.refusals import require_dtype

aten = torch.ops.aten
_CPP = {torch.float32: "float", torch.float64: "double"}


def _refuse(text: str) -> None:
    raise RuntimeError(f"torch.histogramdd: {text}")


def _check_input(x: Tensor, dims: int, weight: Tensor | None) -> None:
    if x.dim() < 2:
        _refuse("input tensor should have at least 2 dimensions")
    if x.shape[-1] != dims:
        _refuse(
            f"expected {x.shape[-1]} sequences of bin edges for a {x.shape[-1]}-dimensional "
            f"histogram but got {dims}"
        )
    require_dtype("histogramdd", x.dtype, _CPP)
    if weight is None:
        return
    if weight.dtype != x.dtype:
        _refuse(
            "if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({_CPP[x.dtype]}), and weight"
            f"({_CPP.get(weight.dtype, weight.dtype)})"
        )
    if weight.shape != x.shape[:-1]:
        _refuse(
            "if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(x.shape)} and "
            f"weight with shape {list(weight.shape)}"
        )


def _edges(x: Tensor, bins: Sequence[int], limits: Sequence[float] | None) -> list[Tensor]:
    """Equal bins over `limits` (low, high of each dimension), or from the smallest element to the
    greatest; half a unit to each side where these are equal, and 0 to 1 where there is none.
    """
    dims = x.shape[-1]
    if limits is not None and len(limits) != 2 * dims:
        _refuse(
            f"for a {dims}-dimensional histogram range should have {2 * dims} elements, but got "
            f"{len(limits)}"
        )
    columns = x.reshape(-1, dims)
    out = []
    for d, n in enumerate(bins):
        if n <= 0:
            raise RuntimeError(
                f"torch.histogram(): bins must be > 0, but got {n} for dimension {d}"
            )
        if limits is not None:
            least, most = limits[2 * d : 2 * d + 2]
            if not (math.isfinite(least) and math.isfinite(most)):
                _refuse(f"dimension {d}'s range [{least:g}, {most:g}] is not finite")
            if least > most:
                _refuse(
                    f"min should not exceed max, but got min {least:g} max {most:g} "
                    f"for dimension {d}"
                )
            low, high = x.new_full((), least), x.new_full((), most)
        elif columns.shape[0] == 0:
            low, high = x.new_zeros(()), x.new_ones(())
        else:
            low, high = columns[:, d].aminmax()
            finite = low.isfinite() & high.isfinite()
            text = f"torch.histogramdd: dimension {d}'s range is not finite"
            low = aten._functional_assert_async.msg(finite, text, low)
        same = low == high
        low, high = torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high)
        out.append(torch.linspace(low, high, n + 1, dtype=x.dtype, device=x.device))
    return out


def _counts(x: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """How many rows of x (or how much weight) each bin holds; of all, by volume, with `density`."""
    _check_input(x, len(edges), weight)
    sizes = [e.shape[0] - 1 for e in edges]
    columns = x.reshape(-1, len(edges))
    place = torch.zeros((), dtype=torch.int32, device=x.device)
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    total = 1
    for d, (e, n) in enumerate(zip(edges, sizes, strict=True)):
        v = columns[:, d].contiguous()
        at = torch.searchsorted(e, v, right=True, out_int32=True) - 1
        place = place * n + at.clamp(max=n - 1)
        inside = inside & (v >= e[0]) & (v <= e[-1])
        total *= n
    place = place.masked_fill(~inside, total)  # a bin for what is outside, dropped
    if weight is None:
        ones = torch.ones(columns.shape[0], dtype=torch.int32, device=x.device)
        hist = ones.new_zeros(total + 1).index_add(0, place, ones).to(x.dtype)
    else:
        hist = x.new_zeros(total + 1).index_add(0, place, weight.reshape(-1))
    hist = hist[:total].reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(edges):
            hist = hist / e.diff().reshape([-1 if k == d else 1 for k in range(len(edges))])
    return hist


def _check_edges(x: Tensor, edges: Sequence[Tensor]) -> None:
    for d, e in enumerate(edges):
        if e.dtype != x.dtype:
            _refuse(
                "input tensor and bins tensors should have the same dtype, but got input with "
                f"dtype {_CPP.get(x.dtype, x.dtype)} and bins for dimension {d} with dtype "
                f"{_CPP.get(e.dtype, e.dtype)}"
            )
        if e.dim() != 1:
            _refuse(
                f"bins tensor should have one dimension, but got {e.dim()} dimensions in the bins "
                f"tensor for dimension {d}"
            )
        if e.numel() == 0:
            _refuse(
                "bins tensor should have at least 1 element, but got 0 elements in the bins tensor "
                f"for dimension {d}"
            )
        if e.numel() == 1:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for dimension {d}")


def _rows(x: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """histogram's arguments as histogramdd's of one dimension."""
    return x.reshape(-1, 1), None if weight is None else weight.reshape(-1)


def histogram_bin_ct(
    self: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    x, w = _rows(self, weight)
    _check_input(x, 1, w)
    edges = _edges(x, [bins], range)
    return _counts(x, edges, w, density), edges[0]


def histogram_bins_tensor(
    self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    x, w = _rows(self, weight)
    _check_edges(x, [bins])
    return _counts(x, [bins], w, density), bins.clone()


def _count(x: Tensor, bins: Sequence[int]) -> int:
    if x.dim() > 1 and x.shape[-1] != len(bins):
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    return len(bins)


def histogramdd_bin_edges(
    self: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> list[Tensor]:
    _check_input(self, _count(self, bins), weight)
    return _edges(self, bins, range)


def histogramdd_from_bin_cts(
    self: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:
    _check_input(self, _count(self, bins), weight)
    return _counts(self, _edges(self, bins, range), weight, density)


def histogramdd_from_bin_tensors(
    self: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False
) -> Tensor:
    _check_edges(self, bins)
    return _counts(self, bins, weight, density)


TABLE: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    aten.histogram.bin_ct: histogram_bin_ct,
    aten.histogram.bins_tensor: histogram_bins_tensor,
    aten._histogramdd_bin_edges.default: histogramdd_bin_edges,
    aten._histogramdd_from_bin_cts.default: histogramdd_from_bin_cts,
    aten._histogramdd_from_bin_tensors.default: histogramdd_from_bin_tensors,
}
