# SPDX-License-Identifier: Apache-2.0
"""Memory figures: bytes of the arrays that are alive on a device, by our own account. Nothing is
cached, so reserved is allocated.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from torch_tpu.tpu._utils import DeviceLike, _get_device_index
from torch_tpu.tpu.devices import _lazy_init

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
]


def memory_stats(device: DeviceLike = None) -> OrderedDict[str, Any]:
    """All figures by name ("allocated_bytes.all.current"), as torch.accelerator.memory_stats
    describes; empty before first use.
    """
    return torch.accelerator.memory_stats(_get_device_index(device, optional=True))


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes of the arrays that are alive on `device`.

    A tensor that was made and never written (`torch.empty`, `torch.zeros`) has no array yet, and a
    copy shares its source's until one of the two is written. So this is what the device holds, not
    the sum over tensors.
    """
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that were alive at once, since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: DeviceLike = None) -> int:
    """The same as `memory_allocated`: no memory is kept back."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: DeviceLike = None) -> int:
    """The same as `max_memory_allocated`."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Sets the peaks to the current figures."""
    torch.accelerator.reset_peak_memory_stats(_get_device_index(device, optional=True))


reset_max_memory_allocated = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Sets the sums of all that was ever allocated and freed to 0."""
    torch.accelerator.reset_accumulated_memory_stats(_get_device_index(device, optional=True))


def empty_cache() -> None:
    """Does nothing: no memory is cached."""


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """(free, total) bytes of `device` by its plugin; on XLA:CPU those of the host, which all
    devices share.
    """
    _lazy_init()
    return torch._C._accelerator_getMemoryInfo(_get_device_index(device, optional=True))


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """The figures as a table.

    Args:
        device: a tpu device; the current one if not given.
        abbreviated: only the first two rows.
    """
    index = _get_device_index(device, optional=True)
    stats = memory_stats(index)
    rows = [("Allocated memory", "allocated_bytes", True), ("Arrays", "allocation", False)]
    if not abbreviated:
        rows.append(("Reserved memory", "reserved_bytes", True))
    lines = [
        f"torch_tpu memory summary, device tpu:{index}",
        f"{'':18}{'current':>12}{'peak':>12}{'total made':>12}{'total freed':>12}",
    ]
    for title, name, is_bytes in rows:
        figures = [
            stats.get(f"{name}.all.{k}", 0) for k in ("current", "peak", "allocated", "freed")
        ]
        lines.append(
            f"{title:18}" + "".join(f"{_readable(n) if is_bytes else n:>12}" for n in figures)
        )
    return "\n".join(lines)


def _readable(nbytes: int) -> str:
    value = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
