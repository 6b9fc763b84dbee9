# SPDX-License-Identifier: Apache-2.0
"""torch.tpu: the device's module, with the names that programs know from torch.cuda."""

from __future__ import annotations

from torch_tpu.tpu import amp, devices, memory, modes, random, stats, streams
from torch_tpu.tpu.amp import get_amp_supported_dtype, is_bf16_supported
from torch_tpu.tpu.devices import (
    DeviceProperties,
    _exchange_device as _exchange_device,
    _is_in_bad_fork as _is_in_bad_fork,
    _lazy_init as _lazy_init,
    _maybe_exchange_device as _maybe_exchange_device,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_initialized,
    set_device,
    synchronize,
)
from torch_tpu.tpu.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
)
from torch_tpu.tpu.modes import allow_host_fallback, blocking
from torch_tpu.tpu.random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_tpu.tpu.stats import (
    compile_records,
    compile_stats,
    fallback_stats,
    reset_compile_stats,
    reset_fallback_stats,
)
from torch_tpu.tpu.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "DeviceProperties",
    "Event",
    "Stream",
    "StreamContext",
    "allow_host_fallback",
    "amp",
    "blocking",
    "compile_records",
    "compile_stats",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "devices",
    "empty_cache",
    "fallback_stats",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "modes",
    "random",
    "reset_accumulated_memory_stats",
    "reset_compile_stats",
    "reset_fallback_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stats",
    "stream",
    "streams",
    "synchronize",
]


def __getattr__(name: str) -> bool:
    # Checkpointing asks the device's module for this before it saves the generators' states.
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module 'torch.tpu' has no attribute {name!r}")
