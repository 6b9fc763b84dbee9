# SPDX-License-Identifier: Apache-2.0
"""Graphs whose sizes or numbers Dynamo left open: a program for each set of them, made when it is
first met.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.fx.experimental.symbolic_shapes import free_symbols
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

_Number = int | float  # of which bool is one
_OPEN = (torch.SymInt, torch.SymFloat, torch.SymBool)
# What only says that a number is in a range: true of the numbers at hand, or the specialisation has
# raised.
_CHECKS = {
    torch.ops.aten._assert_scalar.default,
    torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
}


def is_symbolic(gm: torch.fx.GraphModule) -> bool:
    """Whether a value of the graph is a number, or has a size that is open."""
    values = [node.meta.get("val") for node in gm.graph.nodes]
    return any(_is_number(v) or isinstance(v, torch.Tensor) and free_symbols(v) for v in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (_Number, *_OPEN))


def specialise(gm: torch.fx.GraphModule, args: list[Any]) -> torch.fx.GraphModule:
    """The graph for arguments of these sizes and numbers: its numbers are constants, and its inputs
    the tensors among `args`.

    Raises:
        NotImplementedError: a size depends on a tensor's values.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
    concrete = torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))
    try:
        # The graph is below autograd and autocast, whatever is on around this call.
        with torch.no_grad(), torch._C._DisableAutocast():
            FakeTensorProp(concrete, mode).propagate_dont_convert_inputs(*fakes)
    except (DataDependentOutputException, DynamicOutputShapeException) as e:
        raise NotImplementedError(
            f"torch.compile(backend='tpu'): {e.func} makes a number or a size of a tensor's "
            "values, which a program for tpu cannot do. Leave it outside the compiled function, "
            "or turn off torch._dynamo.config.capture_scalar_outputs and "
            "capture_dynamic_output_shape_ops"
        ) from None

    def constant(node: torch.fx.Node) -> Any:
        value = node.meta.get("val")
        return value if isinstance(value, _Number) else node

    for node in list(concrete.graph.nodes):
        node.args = torch.fx.node.map_arg(node.args, constant)
        node.kwargs = torch.fx.node.map_arg(node.kwargs, constant)
    for node in reversed(concrete.graph.nodes):
        if isinstance(constant(node), _Number) or node.target in _CHECKS:
            concrete.graph.erase_node(node)
    return concrete


class SymbolicProgram:
    """What AOTAutograd calls for such a graph: takes tensors and numbers, specialises, remembers.

    Args:
        gm: the graph with symbolic sizes.
        compile_graph: makes the callable of a graph that has none.
    """

    _boxed_call: bool

    def __init__(
        self,
        gm: torch.fx.GraphModule,
        compile_graph: Callable[[torch.fx.GraphModule], Callable[[list[Any]], list[Any]]],
    ) -> None:
        self.gm, self.compile_graph = gm, compile_graph
        self.programs: dict[tuple, Callable[[list[Any]], list[Any]]] = {}
        values = [n.meta.get("val") for n in gm.graph.nodes if n.op == "placeholder"]
        self.numbers = [i for i, v in enumerate(values) if _is_number(v)]
        # Dynamo gives an open size as a number too. A tensor whose sizes are not all given so
        # counts with its own.
        given = {values[i].node.expr for i in self.numbers if isinstance(values[i], _OPEN)}
        self.open_tensors = [
            i
            for i, v in enumerate(values)
            if isinstance(v, torch.Tensor) and not free_symbols(v) <= given
        ]
        self._boxed_call = True

    def __call__(self, args: list[Any]) -> list[Any]:
        key = (
            *(repr(args[i]) for i in self.numbers),  # not the number: 0.0 is -0.0
            *((args[i].shape, args[i].stride()) for i in self.open_tensors),
        )
        program = self.programs.get(key)
        if program is None:
            program = self.compile_graph(specialise(self.gm, args))
            self.programs[key] = program
        for i in reversed(self.numbers):
            del args[i]
        return program(args)
