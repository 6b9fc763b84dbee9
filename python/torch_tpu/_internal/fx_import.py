# SPDX-License-Identifier: Apache-2.0
"""Turns functional FX graphs into the core's graphs, node by node through the operators' lowerings.

One function serves traced decompositions (eager) and `torch.compile`: no operator has a second
lowering for graphs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from torch_tpu import _C


class Missing(NotImplementedError):
    """An operator in the graph that has no lowering: its name."""


def lowering_name(op: torch._ops.OpOverload) -> str:
    """The registry's name of an overload: "aten::add.Tensor"; "aten::mm" for the default one."""
    name = op._schema.name
    return f"{name}.{op._schema.overload_name}" if op._schema.overload_name else name


def bind_arguments(op: torch._ops.OpOverload, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """All arguments of a call in schema order, defaults filled in."""
    bound = []
    for i, a in enumerate(op._schema.arguments):
        if i < len(args) and not a.kwarg_only:
            bound.append(args[i])
        elif a.name in kwargs:
            bound.append(kwargs[a.name])
        else:
            bound.append(a.default_value)
    return bound


def storage_root(node: torch.fx.Node) -> torch.fx.Node:
    """The node that made the storage in which `node`'s fake value lives: back through the views."""
    while (
        node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and node.args
    ):
        source = node.args[0]
        if not isinstance(source, torch.fx.Node) or not isinstance(
            source.meta.get("val"), torch.Tensor
        ):
            break
        if source.meta["val"].untyped_storage()._cdata != node.meta["val"].untyped_storage()._cdata:
            break
        node = source
    return node


def _source(node: torch.fx.Node) -> torch.fx.Node:
    """The tensor of which `node` is a view."""
    source = node.args[0]
    assert isinstance(source, torch.fx.Node)
    return source


class GraphImporter:
    """Builds one `_C.Graph` from the nodes of an FX graph.

    `get_attr(name)` gives the constant behind a get_attr node: a tensor, which must be an input of
    the result.
    """

    def __init__(self) -> None:
        self.graph = _C.Graph()
        self.values: dict[torch.fx.Node, Any] = {}

    def add_input(self, node: torch.fx.Node) -> None:
        self.values[node] = self.graph.input()

    def value(self, a: Any) -> Any:
        """The graph value(s) of a node argument; constants as they are."""
        if isinstance(a, torch.fx.Node):
            return self.values[a]
        if isinstance(a, (list, tuple)):
            return [self.value(e) for e in a]
        return a

    def call(self, node: torch.fx.Node) -> None:
        op = node.target
        if op is operator.getitem:
            self.values[node] = self.value(node.args[0])[node.args[1]]
            return
        if not isinstance(op, torch._ops.OpOverload):
            raise Missing(str(op))
        name = lowering_name(op)
        if not _C.has_lowering(name):
            raise Missing(name)
        args = [self.value(a) for a in bind_arguments(op, node.args, node.kwargs)]
        if op is torch.ops.aten.as_strided.default:
            args[0], args[3] = self._storage_of(node), self._offset_in_storage(node)
        number = self.graph.call(name, args)
        returns = op._schema.returns
        if len(returns) == 1 and isinstance(returns[0].type, torch.TensorType):
            self.values[node] = self.graph.result(number, 0)
        elif len(returns) == 1:  # Tensor[]: as many as the fake value says
            self.values[node] = [self.graph.result(number, i) for i in range(len(node.meta["val"]))]
        else:
            self.values[node] = [self.graph.result(number, i) for i in range(len(returns))]

    def _storage_of(self, node: torch.fx.Node) -> Any:
        """as_strided counts in the storage, not in the tensor it is given: the storage's elements
        in memory order.
        """
        source = _source(node)
        root = storage_root(source)
        fake = root.meta["val"]
        if (
            root.op == "placeholder"
            and fake.untyped_storage().nbytes() != fake.numel() * fake.element_size()
        ):
            raise NotImplementedError(
                "as_strided of a compiled graph's input that is a view of a larger storage "
                f"({fake.numel()} of {fake.untyped_storage().nbytes() // fake.element_size()} "
                "elements) is not implemented for tpu: take the view inside the graph, "
                "or clone it before"
            )
        dtype = source.meta["val"].dtype
        if dtype.itemsize != fake.dtype.itemsize:
            raise NotImplementedError(
                f"as_strided of a {dtype} view of {fake.dtype} in a compiled graph "
                "is not implemented for tpu"
            )
        order = sorted(range(fake.dim()), key=lambda d: -fake.stride(d))
        value = self.values[root]
        if order != list(range(fake.dim())):
            value = self.graph.result(self.graph.call("aten::permute", [value, order]), 0)
        if dtype != fake.dtype:
            value = self.graph.result(self.graph.call("aten::view.dtype", [value, dtype]), 0)
        return value

    def _offset_in_storage(self, node: torch.fx.Node) -> int:
        source = _source(node)
        offset: Any = node.args[3] if len(node.args) > 3 else node.kwargs.get("storage_offset")
        if offset is None:
            offset = source.meta["val"].storage_offset()
        return offset - storage_root(source).meta["val"].storage_offset()

    def run(
        self, fx: torch.fx.Graph, on_other: Callable[[torch.fx.Node], bool] | None = None
    ) -> list[Any]:
        """Imports every node; returns the flattened outputs' values (None kept). `on_other` may
        take a node itself.
        """
        outputs: list[Any] = []
        for node in fx.nodes:
            if on_other is not None and on_other(node):
                continue
            if node.op == "placeholder":
                if node not in self.values:
                    self.add_input(node)
            elif node.op == "call_function":
                self.call(node)
            elif node.op == "output":
                flat = torch.utils._pytree.tree_leaves(node.args[0], is_leaf=lambda x: x is None)
                outputs = [None if a is None else self.value(a) for a in flat]
            else:
                raise Missing(f"{node.op} {node.target}")
        return outputs
