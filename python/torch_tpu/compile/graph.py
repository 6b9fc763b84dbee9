# SPDX-License-Identifier: Apache-2.0
"""One functional FX graph, as AOTAutograd hands it over, as one callable program."""

from __future__ import annotations

from typing import Any

import torch

from torch_tpu import _C
from torch_tpu._internal.fx_import import GraphImporter, Missing, storage_root

aten = torch.ops.aten


def _meta_twin(fake: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(fake.size(), fake.stride(), dtype=fake.dtype, device="meta")


class GraphProgram:
    """What AOTAutograd calls: takes the graph's inputs, returns its outputs; mutated inputs get new
    contents in place.

    Args:
        gm: functional graph of aten operators; mutation only as final `copy_` into placeholders.
        name: of the program, in profiles, statistics and errors.
        is_inference: no autograd around the graph.

    Raises:
        NotImplementedError: an operator of the graph has neither lowering nor decomposition; the
            text names it.
    """

    def __init__(self, gm: torch.fx.GraphModule, name: str, is_inference: bool) -> None:
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
        try:
            outputs = importer.run(gm.graph, take)
        except Missing as e:
            raise NotImplementedError(
                f"torch.compile(backend='tpu'): the graph {name} uses {e}, "
                "which has neither a lowering nor a decomposition for tpu"
            ) from None

        output_nodes = torch.utils._pytree.tree_leaves(
            _output(gm).args[0], is_leaf=lambda x: x is None
        )
        # An output that is an input, or no tensor, is not the program's.
        metas = []
        position = 0
        self.sources: list[tuple[str, Any]] = []
        # Where autograd is at work AOTAutograd makes aliased outputs views itself.
        aliased = _aliased_outputs(output_nodes) if is_inference else {}
        seen: dict[torch.fx.Node, tuple[str, Any]] = {}
        roots: dict[torch.fx.Node, int] = {}  # results that outputs are views of
        for node, value in zip(output_nodes, outputs, strict=True):
            if not isinstance(node, torch.fx.Node):
                self.sources.append(("constant", node))
            elif node in placeholders:
                self.sources.append(("input", placeholders[node]))
            elif not isinstance(node.meta["val"], torch.Tensor):
                self.sources.append(("constant", node.meta["val"]))
            elif node in aliased:
                root = aliased[node]
                if root not in roots:
                    roots[root] = position
                    position += 1
                    metas.append(_meta_twin(root.meta["val"]))
                    importer.graph.output(importer.values[root])
                fake = node.meta["val"]
                self.sources.append(
                    (
                        "view",
                        (
                            roots[root],
                            fake.dtype,
                            fake.size(),
                            fake.stride(),
                            fake.storage_offset(),
                        ),
                    )
                )
            elif node in seen:  # `t.contiguous()` that is t: one tensor, given twice
                self.sources.append(seen[node])
            else:
                seen[node] = (
                    "cpu" if node.meta["val"].device.type == "cpu" else "result",
                    position,
                )
                self.sources.append(seen[node])
                position += 1
                metas.append(_meta_twin(node.meta["val"]))
                importer.graph.output(value)
        self.written = sorted(written)
        for i in self.written:
            importer.graph.output(written[i])
        self.is_plain = all(source == ("result", i) for i, source in enumerate(self.sources))
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
        direct = self.is_plain and not self.constants and not self.host_inputs
        # What AOTAutograd calls: the C++ object itself where nothing is to do around it.
        self.callable: _C.CompiledGraph | _Boxed = self.compiled if direct else _Boxed(self)
        # AOTAutograd hands a list that we may clear. On the instance: Dynamo's wrappers copy an
        # instance's attributes only.
        self.callable._boxed_call = True

    def __call__(self, args: list[Any]) -> list[Any]:
        inputs = list(args)
        args.clear()
        host = [inputs[i] for i in self.host_written]
        for i in self.host_inputs:
            inputs[i] = inputs[i].to("tpu")
        results = self.compiled(inputs + self.constants if self.constants else inputs)
        for i, tensor in zip(self.host_written, host, strict=True):
            tensor.copy_(inputs[i])
        if self.is_plain:
            return results
        out = []
        for kind, x in self.sources:
            if kind == "result":
                out.append(results[x])
            elif kind == "view":
                base, dtype, size, stride, offset = x
                out.append(results[base].view(dtype).as_strided(size, stride, offset))
            elif kind == "cpu":
                out.append(results[x].cpu())
            else:
                out.append(inputs[x] if kind == "input" else x)
        return out


class _Boxed:
    """A callable of its own, so that its attributes are its own."""

    _boxed_call: bool

    def __init__(self, program: GraphProgram) -> None:
        self.program = program

    def __call__(self, args: list[Any]) -> list[Any]:
        return self.program(args)


def _aliased_outputs(nodes: list[Any]) -> dict[torch.fx.Node, torch.fx.Node]:
    """Outputs that share a storage, and the node that made it: they must alias each other as they
    do in eager.
    """
    groups: dict[int, list[torch.fx.Node]] = {}
    for n in nodes:
        if (
            isinstance(n, torch.fx.Node)
            and n.op != "placeholder"
            and isinstance(n.meta["val"], torch.Tensor)
        ):
            groups.setdefault(n.meta["val"].untyped_storage()._cdata, []).append(n)
    out = {}
    for group in groups.values():
        root = storage_root(group[0])
        whole = root.op == "call_function" and root.meta["val"].storage_offset() == 0
        one_width = all(
            n.meta["val"].element_size() == root.meta["val"].element_size() for n in group
        )
        if len(group) > 1 and whole and one_width and root.meta["val"].device.type == "tpu":
            out.update({n: root for n in group})
    return out


def _attribute(gm: torch.fx.GraphModule, target: str) -> torch.Tensor:
    value: Any = gm
    for part in target.split("."):
        value = getattr(value, part)
    return value if value.device.type == "tpu" or value.dim() == 0 else value.to("tpu")


def _output(gm: torch.fx.GraphModule) -> torch.fx.Node:
    return next(n for n in reversed(gm.graph.nodes) if n.op == "output")
