# SPDX-License-Identifier: Apache-2.0
"""Random numbers: a generator's state is (seed, offset), 16 bytes as on CUDA. The same seed
gives the same numbers on every platform.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

from torch_tpu import _C
from torch_tpu.tpu._utils import DeviceLike, _get_device_index

__all__ = [
    "default_generators",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


class _DefaultGenerators(Sequence):
    """The devices' default generators, made when asked for: no client is needed."""

    def __len__(self) -> int:
        return _C.device_count()

    def __getitem__(self, index):
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError("device index out of range")
        return _C.default_generator(index)

    def __iter__(self) -> Iterator[torch.Generator]:
        return (self[i] for i in range(len(self)))


default_generators = _DefaultGenerators()


def _generator(device: DeviceLike) -> torch.Generator:
    return _C.default_generator(_get_device_index(device, optional=True))


def get_rng_state(device: DeviceLike = "tpu") -> torch.Tensor:
    """The state of the device's generator: 16 bytes on the CPU, seed then offset."""
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "tpu") -> None:
    """Sets the state of the device's generator to one that `get_rng_state` gave."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators."""
    return [g.get_state() for g in default_generators]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds all devices' generators; `torch.manual_seed` calls this."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device's generator with a number that cannot be foreseen."""
    _generator(None).seed()


def seed_all() -> None:
    """Seeds all devices' generators with one number that cannot be foreseen."""
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator(None).initial_seed()
