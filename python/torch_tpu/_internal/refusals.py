# SPDX-License-Identifier: Apache-2.0
"""What CPU's kernels refuse and PyTorch's meta functions let through, in the kernels' words."""

from __future__ import annotations

from collections.abc import Container

import torch


def type_name(dtype: torch.dtype) -> str:
    """As c10 prints it: "Long", "ComplexFloat"."""
    return torch.empty(0, dtype=dtype, device="cpu").type().removeprefix("torch.")[: -len("Tensor")]


def require_dtype(kernel: str, dtype: torch.dtype, allowed: Container[torch.dtype]) -> None:
    """`kernel` is the name that AT_DISPATCH was given there."""
    if dtype not in allowed:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(dtype)}'")


def require(holds: bool, text: str) -> None:
    if not holds:
        raise RuntimeError(text)
