# SPDX-License-Identifier: Apache-2.0
"""What tests of code on `tpu` want to say: which programs were compiled, and that an error reads as
on the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from torch_tpu import tpu

__all__ = ["assert_same_error", "count_compiles"]


@contextmanager
def count_compiles() -> Iterator[list[str]]:
    """Gives a list that holds, after the block, the name of each program that it had to make.

    A program that was found on disk counts too: it is one that this process did not have, so a call
    that should have reused a program shows up whatever an earlier run left in the cache.

    Example:
        >>> x = torch.ones(3, device="tpu")
        >>> _ = torch.add(x, 1.0)
        >>> with count_compiles() as compiled:
        ...     _ = torch.add(x, 2.0)
        >>> compiled
        []
    """
    before = len(tpu.compile_records())
    names: list[str] = []
    yield names
    names.extend(record.name for record in tpu.compile_records(before))


def assert_same_error(call: Callable[[str], object], device: str = "tpu") -> None:
    """Asserts that `call("cpu")` and `call(device)` raise the same type with the same text.

    Args:
        call: makes its tensors on the device that it is given, and fails. device: the device that
            is compared with the CPU. Its name and the CPU's are the same word for the comparison.

    An error that the device reports late (an index found to be out of range by the running program)
    counts: the call is followed by a synchronization.

    Raises:
        AssertionError: one of the calls did not raise, or type or text differ.
    """
    expected = _error(call, "cpu")
    actual = _error(call, device)
    if expected is None:
        raise AssertionError("the call raises nothing on cpu")
    if actual is None:
        raise AssertionError(f"{device} raises nothing; cpu raises {_show(expected)}")
    if type(actual) is not type(expected) or _text(actual) != _text(expected):
        raise AssertionError(
            f"cpu and {device} differ:\n  cpu: {_show(expected)}\n  {device}: {_show(actual)}"
        )


def _error(call: Callable[[str], object], device: str) -> Exception | None:
    try:
        call(device)
        if torch.device(device).type != "cpu":
            torch.accelerator.synchronize()
    except Exception as error:
        return error
    return None


def _text(error: Exception) -> str:
    return re.sub(r"\b(cpu|tpu)(:\d+)?\b", "<device>", str(error), flags=re.IGNORECASE)


def _show(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
