# SPDX-License-Identifier: Apache-2.0
"""Which devices there are, which one is current, what they are, and waiting for them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from torch_tpu import _C
from torch_tpu._internal import platform
from torch_tpu.tpu._utils import DeviceLike, _get_device_index

__all__ = [
    "DeviceProperties",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_initialized",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a device: a plugin is installed, and for TORCH_TPU_PLATFORM=tpu a TPU
    too. Creates no client.
    """
    return device_count() > 0


def device_count() -> int:
    """The number of devices. Creates no client, so a parent may ask before it forks."""
    return _C.device_count()


def is_initialized() -> bool:
    """Whether the client exists, that is, whether a device has been used in this process."""
    return _C.is_initialized()


def _is_in_bad_fork() -> bool:
    """True in a child forked after the parent used a device: the plugin's threads are not here,
    so no device can be used.
    """
    return _C.is_forked()


def _lazy_init() -> None:
    """Creates the client at the first use of a device; PyTorch calls it before it makes a tensor.

    Raises:
        RuntimeError: no usable plugin, or a fork after use.
    """
    if _C.is_initialized():
        return
    if not _C.is_forked():
        platform.configure(_C)
        why = platform.failure()
        if why is not None:
            raise RuntimeError(f"tpu is not available: {why}")
        platform.announce()
    _C.init()


def init() -> None:
    """Creates the client now instead of at the first use."""
    _lazy_init()


def current_device() -> int:
    """The index that "tpu" without one means in this thread."""
    return _C.current_device()


def set_device(device: DeviceLike) -> None:
    """Makes `device` this thread's current one. A negative index changes nothing.

    Raises:
        RuntimeError: there is no such device.
    """
    index = _get_device_index(device)
    if index >= 0:
        _C.set_device(index)


def _exchange_device(index: int) -> int:
    """Makes device `index` current and returns the one that was; a negative index changes
    nothing and gives -1.
    """
    if index < 0:
        return -1
    before = _C.current_device()
    _C.set_device(index)
    return before


_maybe_exchange_device = _exchange_device


class device:
    """Makes a device current within a `with` block. None, or a negative index, changes nothing.

    Example:
        >>> with torch.tpu.device(0):
        ...     x = torch.ones(3, device="tpu")
        >>> x.device.index
        0
    """

    def __init__(self, device: DeviceLike) -> None:
        self.idx = _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *_: object) -> None:
        self.idx = _maybe_exchange_device(self.prev_idx)


class device_of(device):
    """Makes the device of `obj`, a tensor or storage, current within a `with` block; others than
    tpu change nothing.
    """

    def __init__(self, obj: torch.Tensor | torch.UntypedStorage) -> None:
        super().__init__(obj.get_device() if obj.device.type == "tpu" else -2)


@dataclass(frozen=True)
class DeviceProperties:
    """What a device is, in its plugin's own words.

    Attributes:
        name: the plugin's name of the kind: "TPU v6 lite", or "cpu" for a device of XLA:CPU.
        platform: "tpu" or "cpu".
        platform_version: the plugin's version text.
        total_memory: bytes of the device; on XLA:CPU of the host, which all devices share.
        has_own_memory: False on XLA:CPU.
        plugin_path: the library that serves it.
        plugin_attributes: what it says about itself: versions of XLA and StableHLO.
        pjrt_api_minor: the version of the PJRT C API it was built with.
    """

    name: str
    platform: str
    platform_version: str
    total_memory: int
    has_own_memory: bool
    plugin_path: str
    plugin_attributes: dict[str, str]
    pjrt_api_minor: int


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """What `device` really is. Creates the client."""
    _lazy_init()
    return DeviceProperties(**_C.properties(_get_device_index(device, optional=True)))


def get_device_name(device: DeviceLike = None) -> str:
    """The plugin's name for the kind of `device`: "TPU v6 lite"; "cpu" where XLA:CPU stands in
    for a TPU.
    """
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """(0, 0): a compute capability is a property of CUDA devices. Dtypes:
    torch.accelerator.get_device_capability().
    """
    _C.check_device(_get_device_index(device, optional=True))
    return (0, 0)


def synchronize(device: DeviceLike = None) -> None:
    """Waits until everything launched on `device` is done.

    Raises:
        IndexError, RuntimeError: what failed there and was not reported yet.
    """
    index = _get_device_index(device, optional=True)
    if _C.is_initialized() or _C.is_forked():
        _C.synchronize(index)
