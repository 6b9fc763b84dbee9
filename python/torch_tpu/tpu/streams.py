# SPDX-License-Identifier: Apache-2.0
"""Streams and events. A device runs what it is given in one queue, in order; a stream is a name
in CUDA's manner.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_tpu import _C
from torch_tpu.tpu._utils import DeviceLike, _get_device_index

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
]


class Stream(torch.Stream):
    """A stream of a tpu device. Work on two streams of a device runs in the order of its launch.

    Args:
        device: a tpu device; the current one if not given.
        priority: below 0 for the pool of high priority, as on CUDA; it changes no order.
    """

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **kwargs: Any) -> Stream:
        if kwargs:  # stream_id, device_index, device_type: one that exists
            return super().__new__(cls, priority=priority, **kwargs)
        index = _get_device_index(device, optional=True)
        return super().__new__(cls, device=torch.device("tpu", index), priority=priority)

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Records `event`, or a new one, at the end of the work so far."""
        if event is None:
            event = torch.Event("tpu")
        event.record(self)
        return event

    def __repr__(self) -> str:
        return f"torch.tpu.Stream(device={self.device}, stream_id={self.stream_id})"


class _EventType(type):
    """An Event is a torch.Event of our device: core compares no two of a subclass."""

    def __instancecheck__(cls, obj: object) -> bool:
        return isinstance(obj, torch.Event) and obj.device is not None and obj.device.type == "tpu"

    def __call__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        if interprocess:
            raise NotImplementedError("tpu events cannot be shared between processes")
        return torch.Event("tpu", enable_timing=enable_timing, blocking=blocking)


class Event(metaclass=_EventType):
    """A point in a device's work that can be waited for and timed: makes a torch.Event.

    Args:
        enable_timing: whether `elapsed_time` is wanted.
        blocking: no effect; waiting never spins.
        interprocess: not supported.
    """


def _as_tpu_stream(s: torch.Stream) -> Stream:
    return Stream(stream_id=s.stream_id, device_index=s.device_index, device_type=s.device_type)


def current_stream(device: DeviceLike = None) -> Stream:
    """The stream that is current on `device` in this thread."""
    return _as_tpu_stream(torch._C._accelerator_getStream(_get_device_index(device, optional=True)))


def default_stream(device: DeviceLike = None) -> Stream:
    """The stream that is current where none was set."""
    index = _get_device_index(device, optional=True)
    _C.check_device(index)
    device_type = int(torch._C._autograd.DeviceType.PrivateUse1.value)
    return Stream(stream_id=0, device_index=index, device_type=device_type)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes `stream`, and its device, current in this thread; None changes nothing."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class StreamContext:
    """Makes a stream and its device current within a `with` block; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._device = _C.current_device()
        self._before = torch._C._accelerator_getStream(self.stream.device_index)
        set_stream(self.stream)

    def __exit__(self, *_: object) -> None:
        if self.stream is None:
            return
        set_stream(self._before)
        _C.set_device(self._device)


def stream(stream: torch.Stream | None) -> StreamContext:
    """`with torch.tpu.stream(s):` makes `s` current within the block."""
    return StreamContext(stream)
