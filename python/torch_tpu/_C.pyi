# SPDX-License-Identifier: Apache-2.0
"""The C++ core, as csrc/python binds it. Exceptions of its layers arrive as PyTorch's."""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import torch

# csrc/python/device.cpp

class _Plugin(TypedDict):
    path: str
    platform: str
    guessed: bool
    num_devices: int

class _Properties(TypedDict):
    name: str
    platform: str
    platform_version: str
    plugin_path: str
    plugin_attributes: dict[str, str]
    pjrt_api_minor: int
    total_memory: int
    has_own_memory: bool

def configure(
    plugin_path: str,
    platform: str,
    num_devices: int,
    cache_dir: str,
    cache_max_bytes: int,
    max_programs: int,
    blocking: bool,
    torch_version: str,
) -> None:
    """Says how the client will be made. RuntimeError: it exists already."""

def find_plugin(platform: str, libtpu: str, cpu: list[str]) -> _Plugin:
    """What TORCH_TPU_PLATFORM's value means on this machine. RuntimeError: nothing fits."""

def init() -> None:
    """Creates the client."""

def is_initialized() -> bool:
    """Whether the client exists in this process."""

def is_forked() -> bool:
    """Whether this is a child of a process that had a client."""

def device_count() -> int:
    """The number of devices as configured; creates no client."""

def current_device() -> int:
    """This thread's current device."""

def set_device(index: int) -> None:
    """Makes a device this thread's current one. RuntimeError: there is no such device."""

def check_device(index: int) -> None:
    """RuntimeError: there is no such device."""

def synchronize(index: int) -> None:
    """Waits for a device's work and raises what failed there."""

def properties(index: int) -> _Properties:
    """What a device is, in the plugin's words. Creates the client."""

def live_arrays(index: int) -> int:
    """The number of arrays that are alive on a device."""

def blocking() -> bool:
    """Whether every operator waits for its result."""

def set_blocking(on: bool) -> None:
    """Sets whether every operator waits for its result."""

def default_generator(index: int) -> torch.Generator:
    """A device's default generator."""

# csrc/python/stats.cpp

def compile_stats() -> dict[str, Any]:
    """Counts by name: compiles, memory_hits, disk_hits; and compile_seconds, disk_seconds."""

def compile_records(since: int = 0) -> list[tuple[str, float, str]]:
    """(operator or graph, seconds, "compiled" or "disk") of each program but the first `since`."""

def reset_compile_stats() -> None:
    """Sets the counts to 0 and forgets the records."""

def keep_program_texts(on: bool) -> None:
    """Sets whether the texts of programs are kept; off forgets them."""

def program_texts() -> list[tuple[str, str]]:
    """(StableHLO text, operator or graph) of the programs since texts are kept."""

def max_programs() -> int:
    """How many programs memory holds before all are forgotten."""

def set_max_programs(n: int) -> None:
    """Sets how many programs memory holds, at least 1."""

def clear_programs() -> None:
    """Forgets all programs in memory."""

# csrc/python/graph.cpp

class GraphValue:
    """A value of a graph under construction."""

class Graph:
    """A functional program over lowerings."""

    def __init__(self) -> None: ...
    def input(self) -> GraphValue:
        """Adds an input."""

    def call(self, name: str, args: Sequence[Any], random_state: GraphValue | None = None) -> int:
        """Adds a call of a lowering, arguments in schema order; gives its number. With a
        `random_state` it draws from this, not from the generator.
        """

    def result(self, node: int, output: int) -> GraphValue:
        """Result number `output` of call number `node`."""

    def output(self, v: GraphValue | None) -> None:
        """Adds an output."""

    def lowerings(self) -> list[str]:
        """The names of the lowerings that are called, in order."""

class CompiledGraph:
    """Calls a graph with tensors: one program for each signature of them.

    Args:
        name: of its programs.
        graph: first the results, then the new contents of the inputs listed in `written`.
        written: inputs that get new contents.
        metas: meta tensors like the results.
    """

    _boxed_call: bool
    def __init__(
        self, name: str, graph: Graph, written: list[int], metas: list[torch.Tensor]
    ) -> None: ...
    def __call__(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]: ...
    def alias_bytes(self) -> int:
        """Bytes of inputs that the programs write in place, by the plugin's account."""
    @property
    def num_programs(self) -> int:
        """The number of signatures so far."""

def has_lowering(name: str) -> bool:
    """Whether there is a lowering "aten::add.Tensor"."""

def lowerings() -> list[str]:
    """The names of all lowerings."""

def set_decomposer(f: Callable[[str, list[Any]], Graph | None]) -> None:
    """Sets who is asked for the graph of an operator without lowering: f(name, arguments)."""

def set_host_fallback(on: bool) -> None:
    """Sets whether operators that tpu has not run on the CPU."""

def set_portable_programs(on: bool) -> None:
    """Builds programs in the form for every compiler, also where the device is XLA:CPU."""

def host_fallback() -> bool:
    """Whether operators that tpu has not run on the CPU."""

def fallback_counts() -> list[tuple[str, int]]:
    """How often each operator ran on the CPU."""

def reset_fallback_counts() -> None:
    """Forgets these counts."""

def decomposed_operators() -> list[str]:
    """Operators that ran through a decomposition so far."""

def set_matmul_precision(p: int) -> None:
    """Of float32 products: 0 default (one bfloat16 pass), 1 high, 2 highest."""

def matmul_precision() -> int:
    """Of float32 products: 0 default (one bfloat16 pass), 1 high, 2 highest."""

# csrc/python/plan.cpp

class _Compiled(TypedDict):
    memory: dict[str, int]
    cost: dict[str, float]

class CompileTarget:
    """A topology of a plugin, to compile programs for; needs no device."""

    def __init__(self, plugin: str, topology: str) -> None: ...
    def compile(self, text: str) -> _Compiled:
        """Compiles StableHLO text. RuntimeError: the compiler refuses it."""
    @property
    def kind(self) -> str:
        """The plugin's name for the device kind."""
