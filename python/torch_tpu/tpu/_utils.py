# SPDX-License-Identifier: Apache-2.0
"""The device index that a device argument means."""

from __future__ import annotations

from typing import TypeAlias

import torch

from torch_tpu import _C

__all__ = ["DeviceLike"]

DeviceLike: TypeAlias = torch.device | str | int | None


def _get_device_index(device: DeviceLike, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of `device`.

    Args:
        device: a tpu device, its name or its index. None, and a device without an index, mean
            the current one.
        optional: whether None is allowed.
        allow_cpu: whether a CPU device is; its index is -1.

    Raises:
        ValueError: `device` is of another type, or None where that is not allowed.
    """
    if device is None:
        if not optional:
            raise ValueError(
                "Expected a torch.device with a specified index or an integer, but got: None"
            )
        return _C.current_device()
    if isinstance(device, int):
        return _C.current_device() if device == -1 else device
    if isinstance(device, str):
        device = torch.device(device)
    if allow_cpu and device.type == "cpu":
        return -1
    if device.type != "tpu":
        raise ValueError(f"Expected a tpu device, but got: {device}")
    return _C.current_device() if device.index is None else device.index
