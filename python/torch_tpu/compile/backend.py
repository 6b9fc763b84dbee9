# SPDX-License-Identifier: Apache-2.0
"""The Dynamo backend "tpu"."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from torch_tpu.compile import fake_results
from torch_tpu.compile.graph import GraphProgram, num_returned_now
from torch_tpu.compile.outputs import is_bare, takes_its_inputs_only
from torch_tpu.compile.random_state import register_shapes
from torch_tpu.compile.symbolic import SymbolicProgram, is_symbolic

fake_results.register()  # Dynamo looks a backend up, and so comes here, before it traces

_records: list[GraphProgram] = []
_counter = itertools.count()


def graph_records() -> list[GraphProgram]:
    """The graphs compiled by this process so far: name, lowerings used, number of programs."""
    return list(_records)


def _compiler(
    kind: str, bare: list[Callable[..., Any]]
) -> Callable[[torch.fx.GraphModule, list[Any]], Any]:
    """Compiles graphs of one kind; adds to `bare` those that AOTAutograd need not wrap."""

    def compile_graph(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        name, num_returned = f"graph{next(_counter)}.{kind}", num_returned_now(kind)

        def make(static: torch.fx.GraphModule) -> Any:
            program = GraphProgram(static, name, num_returned)
            _records.append(program)
            return program.callable

        if is_symbolic(gm):
            return SymbolicProgram(gm, make)
        call = make(gm)
        if kind == "inference" and is_bare(torch._guards.TracingContext.try_get()):
            bare.append(call)
        return call

    return compile_graph


def tpu_backend(
    gm: torch.fx.GraphModule, example_inputs: list[Any], **options: Any
) -> Callable[..., Any]:
    """Compiles a Dynamo graph: AOTAutograd, then one program each for forward and backward.

    Raises:
        ValueError: an option is given; there are none.
    """
    if options.get("options"):
        raise ValueError(f"torch.compile(backend='tpu') has no options, got {options['options']}")
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    from torch_tpu._internal.decompose import decomposition_table

    register_shapes()
    bare: list[Callable[..., Any]] = []
    wrapped = aot_autograd(
        fw_compiler=_compiler("forward", bare),
        bw_compiler=_compiler("backward", bare),
        inference_compiler=_compiler("inference", bare),
        decompositions=decomposition_table(),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )(gm, example_inputs)
    if len(bare) != 1 or not takes_its_inputs_only(gm, example_inputs):
        return wrapped
    call = bare[0]

    def call_bare(*inputs: torch.Tensor) -> list[torch.Tensor]:
        return call(list(inputs))

    return call_bare


def register() -> None:
    """Makes the name "tpu" known to Dynamo where the package is not installed (its entry point does
    it otherwise).
    """
    from torch._dynamo.backends.registry import list_backends, register_backend

    if "tpu" not in list_backends(exclude_tags=()):
        register_backend(tpu_backend, name="tpu")
