# SPDX-License-Identifier: Apache-2.0
"""One functional FX graph, as AOTAutograd hands it over, as one callable program."""

from __future__ import annotations

import sys
from typing import Any

import torch

from torch_tpu import _C
from torch_tpu._internal.fx_import import GraphImporter, Missing
from torch_tpu.compile.outputs import plan_outputs

aten = torch.ops.aten


def _meta_twin(fake: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(fake.size(), fake.stride(), dtype=fake.dtype, device="meta")


class GraphProgram:
    """What AOTAutograd calls: takes the graph's inputs, returns its outputs; mutated inputs get new
    contents in place.

    Args:
        gm: functional graph of aten operators; mutation only as final `copy_` into placeholders.
        name: of the program, in profiles, statistics and errors.
        num_returned: as `num_returned_now` said when AOTAutograd handed the graph over.

    Raises:
        NotImplementedError: an operator of the graph has neither lowering nor decomposition; the
            text names it.
    """

    def __init__(self, gm: torch.fx.GraphModule, name: str, num_returned: int | None) -> None:
        importer = GraphImporter()
        self.name = name
        self.constants: list[torch.Tensor] = []
        placeholders: dict[torch.fx.Node, int] = {}
        written: dict[int, Any] = {}

        def take(node: torch.fx.Node) -> bool:
            if node.op == "placeholder":
                placeholders[node] = len(placeholders)
                return False
            if node.op == "get_attr":
                return True  # became an input below
            if (
                node.op == "call_function"
                and node.target is aten.copy_.default
                and isinstance(target := node.args[0], torch.fx.Node)
                and target in placeholders
            ):
                source = importer.value(node.args[1])
                written[placeholders[target]] = source
                importer.values[node] = importer.values[target] = source
                return True
            return False

        # Constants are inputs too: a program holds no weights, and equal programs of other
        # constants are shared.
        inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
        for node in inputs:
            importer.add_input(node)
        for node in gm.graph.nodes:
            if node.op == "get_attr":
                importer.add_input(node)
                self.constants.append(_attribute(gm, str(node.target)))
        before = dict(importer.values)
        try:
            importer.run(gm.graph, take)
        except Missing as e:
            raise NotImplementedError(
                f"torch.compile(backend='tpu'): the graph {name} uses {e}, "
                "which has neither a lowering nor a decomposition for tpu"
            ) from None
        self.storages = [(placeholders[n], whole) for n, whole in importer.storages]

        output_nodes = torch.utils._pytree.tree_leaves(
            _output(gm).args[0], is_leaf=lambda x: x is None
        )
        self.outputs = plan_outputs(output_nodes, placeholders, sorted(written), num_returned)
        metas = []
        for node, before_write in self.outputs.results:
            metas.append(_meta_twin(node.meta["val"]))
            importer.graph.output((before if before_write else importer.values)[node])
        self.written = sorted(written)
        for i in self.written:
            importer.graph.output(written[i])
        self.lowerings: list[str] = importer.graph.lowerings()
        # The program lives on the device: CPU inputs move there (0-dim ones that are only read are
        # operands as they are), and those it writes, an optimizer's step counts say, come back.
        on_cpu = [
            i
            for i, n in enumerate(inputs)
            if isinstance(n.meta.get("val"), torch.Tensor) and n.meta["val"].device.type == "cpu"
        ]
        self.host_written = [i for i in on_cpu if i in written]
        self.host_inputs = [i for i in on_cpu if i in written or inputs[i].meta["val"].dim() > 0]
        self.compiled = _C.CompiledGraph(name, importer.graph, self.written, metas)
        needs_more = self.constants or self.host_inputs or self.storages
        direct = self.outputs.is_plain and not needs_more
        # What AOTAutograd calls: the C++ object itself where nothing is to do around it.
        self.callable: _C.CompiledGraph | _Boxed = self.compiled if direct else _Boxed(self)
        # AOTAutograd hands a list that we may clear. On the instance: Dynamo's wrappers copy an
        # instance's attributes only.
        self.callable._boxed_call = True

    def __call__(self, args: list[Any]) -> list[Any]:
        inputs = list(args)
        args.clear()
        operands = inputs + self.constants
        operands += [_storage_elements(inputs[i], whole) for i, whole in self.storages]
        for i in self.host_inputs:
            operands[i] = operands[i].to("tpu")
        results = self.compiled(operands)
        for i in self.host_written:
            inputs[i].copy_(operands[i])
        if self.outputs.is_plain:
            return results
        return [source(inputs, results) for source in self.outputs.sources]


class _Boxed:
    """A callable of its own, so that its attributes are its own."""

    _boxed_call: bool

    def __init__(self, program: GraphProgram) -> None:
        self.program = program

    def __call__(self, args: list[Any]) -> list[Any]:
        return self.program(args)


def num_returned_now(kind: str) -> int | None:
    """How many of a graph's outputs are the caller's; a forward graph's others are kept for the
    backward graph, whose own outputs are gradients: nobody compares their storages.

    Args:
        kind: "inference", or "forward" or "backward" of a graph that autograd splits.
    """
    if kind == "backward":
        return None
    context = torch._guards.TracingContext.try_get()
    if kind == "inference" or context is None or context.fw_metadata is None:
        return sys.maxsize
    return context.fw_metadata.num_forward


def _storage_elements(x: torch.Tensor, whole: bool) -> torch.Tensor:
    """The elements of x's storage in memory order: all, or from x's first on."""
    start = 0 if whole else x.storage_offset()
    numel = x.untyped_storage().nbytes() // x.element_size() - start
    return x.as_strided((numel,), (1,), start)


def _attribute(gm: torch.fx.GraphModule, target: str) -> torch.Tensor:
    value: Any = gm
    for part in target.split("."):
        value = getattr(value, part)
    return value if value.device.type == "tpu" or value.dim() == 0 else value.to("tpu")


def _output(gm: torch.fx.GraphModule) -> torch.fx.Node:
    return next(n for n in reversed(gm.graph.nodes) if n.op == "output")
