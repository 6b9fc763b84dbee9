# SPDX-License-Identifier: Apache-2.0
"""What of PyTorch is replaced or helped at run time, each with its reason and the versions it is
needed for.
"""

from __future__ import annotations

import atexit
import functools
import time
from collections.abc import Callable
from typing import Any

import torch

from torch_tpu import _C, backends

__all__ = ["apply"]


def apply() -> None:
    """Applies all patches; call once."""
    _follow_float32_matmul_precision()
    _refuse_sharing_between_processes()
    atexit.register(_let_autograd_finish)


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


def _refuse_sharing_between_processes() -> None:
    """2.13: a queue of torch.multiprocessing says "_share_fd_: only available on CPU" of a tensor
    that no other process can reach. Names the device and the way."""
    for name in ("_share_fd_cpu_", "_share_filename_cpu_"):
        setattr(torch.UntypedStorage, name, _on_cpu_only(getattr(torch.UntypedStorage, name)))


def _on_cpu_only(share: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(share)
    def checked(self: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "tpu":
            raise RuntimeError(
                "a tpu tensor cannot be sent to another process: its memory belongs to this one. "
                "Send x.cpu() and move it there."
            )
        return share(self, *args, **kwargs)

    return checked


def _let_autograd_finish() -> None:
    """2.13: a device's autograd thread drops its last task after `backward` has returned, and with
    it a Python object (the caller's contextvars). Where the interpreter is being torn down by then,
    taking the GIL ends the thread inside a destructor: a program that ends in `backward()` printed
    "terminate called without an active exception" and aborted 13 times out of 20. Releasing the GIL
    before the end lets the thread finish.
    """
    if _C.is_initialized():
        time.sleep(0.01)
