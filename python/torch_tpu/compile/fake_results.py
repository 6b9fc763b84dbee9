# SPDX-License-Identifier: Apache-2.0
"""Results' shapes in a trace, where PyTorch's own refuse for tpu what eager code takes."""

from __future__ import annotations

import functools
from typing import Any

import torch

__all__ = ["register"]


def _grouped_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    torch._check(
        a.dim() in (2, 3) and b.dim() in (2, 3),
        lambda: f"Multiplicands must be 2D or 3D but got {a.dim()} and {b.dim()}",
    )
    if a.dim() == 3 or b.dim() == 3:
        torch._check(
            a.size(-1) == b.size(-2),
            lambda: "contraction dimension of mat_a and mat_b must match",
        )
    torch._check(
        (offs is None) == (a.dim() == b.dim() == 3),
        lambda: (
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        ),
    )
    groups = [a.size(0)] if a.dim() == b.dim() == 3 else []
    if offs is not None and a.dim() == b.dim() == 2:
        groups = [offs.size(0)]
    return a.new_empty([*groups, a.size(-2), b.size(-1)], dtype=out_dtype or a.dtype)


def _ctc_loss(log_probs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    frames, n = log_probs.size(0), log_probs.size(1)
    places = 2 * targets.size(1) + 1
    return log_probs.new_empty([n]), log_probs.new_empty([n, frames, places])


@functools.cache
def register() -> None:
    """2.13: the meta function of `_grouped_mm` takes bfloat16 only; CPU's kernel and ours take
    float32. For tensors of tpu; those of other devices as before. Once a process.
    """
    from torch._subclasses.fake_impls import register_op_impl

    op = torch.ops.aten._grouped_mm.default

    @register_op_impl(op)
    def grouped_mm(fake_mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        if args[0].fake_device.type != "tpu":
            return NotImplemented
        with fake_mode:
            return _grouped_mm(*args, **kwargs)

    # PyTorch sizes log_alpha by the longest target, a number in a tensor; our lowering by the rows.
    @register_op_impl(torch.ops.aten._ctc_loss.Tensor)
    def ctc_loss(fake_mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        if args[0].fake_device.type != "tpu" or args[0].dim() != 3 or args[1].dim() != 2:
            return NotImplemented
        with fake_mode:
            return _ctc_loss(args[0], args[1])
