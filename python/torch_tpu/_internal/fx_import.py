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
import torch._prims.rng_prims as rng

from torch_tpu import _C

aten = torch.ops.aten


class Missing(NotImplementedError):
    """An operator in the graph that has no lowering: its name."""


# The dtype that schemas have as a default (randint's), by its number in c10/core/ScalarType.h.
_DTYPES = {4: torch.int64}


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
        elif a.default_value is not None and "ScalarType" in str(a.real_type):
            bound.append(_DTYPES[a.default_value])  # the schema has its number
        else:
            bound.append(a.default_value)
    return bound


def storage_root(node: torch.fx.Node) -> torch.fx.Node:
    """The node that made the storage in which `node`'s fake value lives: back through the views."""
    storage = node.meta["val"].untyped_storage()._cdata
    root = node
    while node.op == "call_function" and node.args and isinstance(node.args[0], torch.fx.Node):
        node = node.args[0]
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            if value.untyped_storage()._cdata != storage:
                break
            root = node
        elif not isinstance(value, (list, tuple)):  # these are split's: its getitem is the view
            break
    return root


class GraphImporter:
    """Builds one `_C.Graph` from the nodes of an FX graph.

    `get_attr(name)` gives the constant behind a get_attr node: a tensor, which must be an input of
    the result.
    """

    def __init__(self) -> None:
        self.graph = _C.Graph()
        self.values: dict[torch.fx.Node, Any] = {}
        # Inputs that stand for storages of placeholders, in order.
        self.storages: dict[tuple[torch.fx.Node, bool], Any] = {}

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
            source = node.args[0]
            self.values[node] = self.value(source)[node.args[1]]
            if isinstance(source, torch.fx.Node) and source.target is rng.run_and_save_rng_state:
                if node.args[1] == 0:  # PyTorch takes it for the CPU generator's
                    node.meta["val"] = torch.empty(2, dtype=torch.uint64, device="meta")
            return
        # Activation checkpointing: what the forward graph draws the backward graph draws again.
        if op is rng.run_and_save_rng_state:
            state = self.graph.result(self.graph.call("tpu::rng_state", []), 0)
            self.values[node] = [state, self._call(node, node.args[0], node.args[1:])]
        elif op is rng.run_with_rng_state:
            state = self.value(node.args[0])
            self.values[node] = self._call(node, node.args[1], node.args[2:], state)
        else:
            self.values[node] = self._call(node, op, node.args)

    def _call(
        self, node: torch.fx.Node, op: Any, given: tuple[Any, ...], random_state: Any = None
    ) -> Any:
        """The value, or list of values, of an operator on these arguments and `node`'s keywords."""
        if not isinstance(op, torch._ops.OpOverload):
            raise Missing(str(op))
        name = lowering_name(op)
        if not _C.has_lowering(name):
            raise Missing(name)
        args = [self.value(a) for a in bind_arguments(op, given, node.kwargs)]
        if op is aten.as_strided.default:
            args[0], args[3] = self._storage_of(node, args[3])
        elif op is aten.as_strided_scatter.default:
            return self._write_into_storage(node, *args[1:])
        number = self.graph.call(name, args, random_state)
        returns = op._schema.returns
        if len(returns) == 1 and isinstance(returns[0].type, torch.TensorType):
            return self.graph.result(number, 0)
        # Tensor[]: as many as the fake value says
        count = len(node.meta["val"]) if len(returns) == 1 else len(returns)
        return [self.graph.result(number, i) for i in range(count)]

    def _write_into_storage(
        self, node: torch.fx.Node, src: Any, size: Any, stride: Any, offset: int | None
    ) -> Any:
        """as_strided_scatter writes into a copy of the storage; the result has its place there."""
        storage, start = self._storage_of(node, offset)
        number = self.graph.call("aten::as_strided_scatter", [storage, src, size, stride, start])
        source = node.args[0].meta["val"]  # type: ignore[union-attr]
        place = start if offset is None else start - offset + source.storage_offset()
        written = self.graph.result(number, 0)
        number = self.graph.call(
            "aten::as_strided", [written, list(source.shape), list(source.stride()), place]
        )
        return self.graph.result(number, 0)

    def _storage_of(self, node: torch.fx.Node, offset: int | None) -> tuple[Any, int]:
        """as_strided counts in the storage, not in the tensor it is given: the storage's elements
        in memory order, and the offset in these.
        """
        source = node.args[0]
        assert isinstance(source, torch.fx.Node)
        root = storage_root(source)
        fake, dtype = root.meta["val"], source.meta["val"].dtype
        if dtype.itemsize != fake.dtype.itemsize:
            raise NotImplementedError(
                f"as_strided of a {dtype} view of {fake.dtype} in a compiled graph "
                "is not implemented for tpu"
            )
        given = offset is not None
        if offset is None:
            offset = source.meta["val"].storage_offset()
        is_whole = fake.untyped_storage().nbytes() == fake.numel() * fake.element_size()
        if root.op == "placeholder" and not is_whole:
            # Nothing promises that the next call's tensor starts at the same place of its storage.
            if given and node.target is aten.as_strided_scatter.default:
                raise NotImplementedError(
                    "as_strided_scatter with a storage_offset into an input that is part of its "
                    "storage is not implemented for tpu in a compiled graph: clone the input"
                )
            value = self._storage_input(root, whole=given)
            offset -= 0 if given else fake.storage_offset()
        else:
            value = self.values[root]
            order = sorted(range(fake.dim()), key=lambda d: -fake.stride(d))
            if order != list(range(fake.dim())):
                value = self.graph.result(self.graph.call("aten::permute", [value, order]), 0)
            offset -= fake.storage_offset()
        if dtype != fake.dtype:
            value = self.graph.result(self.graph.call("aten::view.dtype", [value, dtype]), 0)
        return value, offset

    def _storage_input(self, placeholder: torch.fx.Node, whole: bool) -> Any:
        """A further input: the elements of an input's storage, all or from the input's first on."""
        key = (placeholder, whole)
        if key not in self.storages:
            self.storages[key] = self.graph.input()
        return self.storages[key]

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
