# SPDX-License-Identifier: Apache-2.0
"""Switches of how operators run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch_tpu import _C

__all__ = ["allow_host_fallback", "blocking"]


@contextmanager
def allow_host_fallback(enabled: bool = True) -> Iterator[None]:
    """Within the block, an operator that tpu has not runs on the CPU, with a download and an
    upload, and is counted.

    Off by default, and then such an operator raises NotImplementedError. For the whole process:
    TORCH_TPU_HOST_FALLBACK=1.
    See `fallback_stats`. The switch is the process's, not the thread's.
    """
    before = _C.host_fallback()
    _C.set_host_fallback(enabled)
    try:
        yield
    finally:
        _C.set_host_fallback(before)


@contextmanager
def blocking(enabled: bool = True) -> Iterator[None]:
    """Within the block every operator waits for its result, so what fails on the device is
    raised at its own line.

    For finding a fault: it is slow. For the whole process: TORCH_TPU_BLOCKING=1. The switch is
        the process's, not the thread's.
    """
    before = _C.blocking()
    _C.set_blocking(enabled)
    try:
        yield
    finally:
        _C.set_blocking(before)
