# SPDX-License-Identifier: Apache-2.0
"""What was compiled, and what ran on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch_tpu import _C

__all__ = [
    "CompileRecord",
    "compile_records",
    "compile_stats",
    "fallback_stats",
    "reset_compile_stats",
    "reset_fallback_stats",
]


class CompileRecord(NamedTuple):
    """One program that this process had to get.

    Attributes:
        name: the operator or graph.
        seconds: how long it took.
        source: "compiled", or "disk" where an earlier process had compiled it.
    """

    name: str
    seconds: float
    source: str


def compile_stats() -> dict[str, Any]:
    """Counts since the start or `reset_compile_stats`: "compiles", "memory_hits", "disk_hits",
    "compile_seconds", "disk_seconds".
    """
    return _C.compile_stats()


def compile_records(since: int = 0) -> list[CompileRecord]:
    """The programs compiled or loaded from disk, in order, without the first `since`."""
    return [CompileRecord(*r) for r in _C.compile_records(since)]


def reset_compile_stats() -> None:
    """Sets the counts to 0 and forgets the records; programs stay."""
    _C.reset_compile_stats()


def fallback_stats() -> dict[str, int]:
    """How often each operator ran on the CPU because `allow_host_fallback` was on. Empty:
    everything ran on the device.
    """
    return dict(_C.fallback_counts())


def reset_fallback_stats() -> None:
    """Forgets the counts of `fallback_stats`."""
    _C.reset_fallback_counts()
