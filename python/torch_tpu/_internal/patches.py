# SPDX-License-Identifier: Apache-2.0
"""What of PyTorch is replaced at run time, each with its reason and the versions it is needed
for.
"""

from __future__ import annotations

import functools

import torch

from torch_tpu import backends

__all__ = ["apply"]


def apply() -> None:
    """Applies all patches; call once."""
    _follow_float32_matmul_precision()


def _follow_float32_matmul_precision() -> None:
    """2.13: no hook tells a backend that the precision changed, and asking for it costs 0.25 us,
    as much as our whole share of
    a small operator. So the setter passes it on."""
    original = torch.set_float32_matmul_precision

    @functools.wraps(original)
    def set_float32_matmul_precision(precision: str) -> None:
        original(precision)
        backends.follow_torch()

    torch.set_float32_matmul_precision = set_float32_matmul_precision
    backends.follow_torch()
