# SPDX-License-Identifier: Apache-2.0
"""torch.backends.tpu: process-wide settings of the device.

    torch.backends.tpu.matmul.precision = "high"     # "highest", "high", "medium", or None:
    torch's own setting
    with torch.backends.tpu.flags(precision="medium"):
        ...

A TPU multiplies bfloat16. "highest" makes a float32 product of six bfloat16 ones and is as exact
as float32 on a CPU, "high" of
three, "medium" of one. XLA:CPU multiplies float32 whatever is set.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import torch

from torch_tpu import _C

__all__ = ["flags", "follow_torch", "install", "is_available", "is_built", "matmul"]

_LEVELS = {"medium": 0, "high": 1, "highest": 2}
_own: str | None = None


class _Matmul:
    """Settings of float32 matrix products and convolutions."""

    @property
    def precision(self) -> str | None:
        """The precision set here, or None while torch.get_float32_matmul_precision() decides."""
        return _own

    @precision.setter
    def precision(self, value: str | None) -> None:
        global _own
        if value is not None and value not in _LEVELS:
            raise ValueError(
                "torch.backends.tpu.matmul.precision: "
                f"expected one of {list(_LEVELS)} or None, got {value!r}"
            )
        _own = value
        follow_torch()


matmul = _Matmul()


def follow_torch() -> None:
    """Tells the core which precision holds now: ours if set, else torch's."""
    _C.set_matmul_precision(_LEVELS[_own or torch.get_float32_matmul_precision()])


@contextmanager
def flags(precision: str | None = None) -> Iterator[None]:
    """Sets the precision of float32 products within the block."""
    before = matmul.precision
    matmul.precision = precision
    try:
        yield
    finally:
        matmul.precision = before


def is_built() -> bool:
    """True: this package is the build."""
    return True


def is_available() -> bool:
    """Whether there is a device. Creates no client."""
    return _C.device_count() > 0


def install() -> None:
    """Puts this module where PyTorch's own backends have theirs."""
    module: ModuleType = sys.modules[__name__]
    vars(torch.backends)["tpu"] = module
    sys.modules["torch.backends.tpu"] = module
