# SPDX-License-Identifier: Apache-2.0
"""What a compiled graph hands back: results of its program, its inputs, and views of either.

Outputs share storages exactly as eager's do. One difference is left: an output that is the only one
of its storage is handed back without the rest of that storage, so its storage offset is 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_tpu._internal.fx_import import storage_root

Node = torch.fx.Node
View = Callable[[torch.Tensor], torch.Tensor]
# (the call's inputs, the program's results) -> an output
Source = Callable[[list[torch.Tensor], list[torch.Tensor]], Any]


@dataclass
class Outputs:
    """The plan.

    Attributes:
        sources: one an output, in order.
        results: nodes that the program must compute, in order; True: an input as it was before the
            program wrote to it.
        is_plain: the outputs are the results.
    """

    sources: list[Source] = field(default_factory=list)
    results: list[tuple[Node, bool]] = field(default_factory=list)
    is_plain: bool = True

    def result(self, node: Node, before_write: bool = False) -> int:
        """The number of a result, which is computed once however often it is handed back."""
        key = (node, before_write)
        if key not in self.results:
            self.results.append(key)
        return self.results.index(key)

    def add(self, source: Source, result: int = -1) -> None:
        """Appends an output; `result`: it is just that result."""
        self.is_plain &= result == len(self.sources)
        self.sources.append(source)


def plan_outputs(
    nodes: Sequence[Any],
    placeholders: dict[Node, int],
    written: Sequence[int],
    num_returned: int | None,
) -> Outputs:
    """Decides for each output where it comes from.

    Args:
        nodes: the graph's flattened outputs; what is no node is a constant.
        placeholders: the graph's inputs and their positions.
        written: positions of the inputs that the graph writes.
        num_returned: as many outputs are the caller's, the others are kept for the backward graph;
            None: this is a backward graph, nobody compares its outputs' storages.
    """
    plan = Outputs()
    aliases = {} if num_returned is None else _shared_storages(nodes, num_returned)
    for position, node in enumerate(nodes):
        if not isinstance(node, Node):
            plan.add(_constant(node))
            continue
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            plan.add(_constant(value))
        elif node in placeholders:
            i = placeholders[node]
            if num_returned is not None and position >= num_returned and i in written:
                # The backward graph computes from the old contents.
                _add_result(plan, node, before_write=True)
            else:
                plan.add(_input(i))
        elif node in aliases:
            root = aliases[node]
            view = _view(value, root.meta["val"])
            if root in placeholders and placeholders[root] in written:
                _add_result(plan, node)  # which contents the view shows AOTAutograd knows
            elif root in placeholders:
                plan.add(_input(placeholders[root], view))
            else:
                plan.add(_result(plan.result(root), view))
        else:
            _add_result(plan, node)
    return plan


def _add_result(plan: Outputs, node: Node, before_write: bool = False) -> None:
    k = plan.result(node, before_write)
    if node.meta["val"].device.type == "cpu":
        plan.add(_result(k, torch.Tensor.cpu))
    else:
        plan.add(_result(k), k)


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def _constant(value: Any) -> Source:
    return lambda inputs, results: value


def _input(i: int, view: View = _same) -> Source:
    return lambda inputs, results: view(inputs[i])


def _result(k: int, view: View = _same) -> Source:
    return lambda inputs, results: view(results[k])


def _shared_storages(nodes: Sequence[Any], num_returned: int) -> dict[Node, Node]:
    """Outputs that are views of an input, or share a storage with an output of the caller's: the
    node whose storage it is.
    """
    groups: dict[Node, list[Node]] = {}
    returned: set[Node] = set()
    for position, n in enumerate(nodes):
        if not isinstance(n, Node) or n.op == "placeholder":
            continue
        if not isinstance(n.meta["val"], torch.Tensor) or n.meta["val"].device.type != "tpu":
            continue
        root = storage_root(n)
        if not _can_be_viewed(root):
            continue
        groups.setdefault(root, []).append(n)
        if position < num_returned:
            returned.add(root)
    out: dict[Node, Node] = {}
    for root, group in groups.items():
        if root.op == "placeholder":
            out.update({n: root for n in group if _is_of_width(n, root)})
        elif root in returned and len(set(group)) > 1:
            out.update({n: root for n in group if n is not root})
    return out


def _can_be_viewed(root: Node) -> bool:
    value = root.meta["val"]
    plain = value.device.type == "tpu" and not value.is_conj() and not value.is_neg()
    if root.op == "placeholder":
        return plain
    whole = value.untyped_storage().nbytes() == value.numel() * value.element_size()
    return plain and root.op == "call_function" and whole and value.storage_offset() == 0


def _is_of_width(node: Node, root: Node) -> bool:
    return node.meta["val"].element_size() == root.meta["val"].element_size()


def _view(fake: torch.Tensor, root: torch.Tensor) -> View:
    """Makes of a tensor like `root` what `fake` is of `root`."""
    dtype, size, stride = fake.dtype, fake.size(), fake.stride()
    is_conj, is_neg = fake.is_conj(), fake.is_neg()
    same_width = fake.element_size() == root.element_size()
    offset = fake.storage_offset() - (root.storage_offset() if same_width else 0)
    numel = root.numel()

    def view(x: torch.Tensor) -> torch.Tensor:
        if same_width:
            y = x.view(dtype).as_strided(size, stride, x.storage_offset() + offset)
        else:  # of a whole storage
            y = x.as_strided((numel,), (1,), 0).view(dtype).as_strided(size, stride, offset)
        y = y.conj() if is_conj else y
        return torch._neg_view(y) if is_neg else y

    return view


def is_bare(context: torch._guards.TracingContext | None) -> bool:
    """Whether the graph being compiled for inference takes and returns plain tensors, none of them
    written or an alias: AOTAutograd's wrapper (1.7 us a call, a tenth of a tiny graph's) then only
    passes them on.
    """
    meta = context.fw_metadata if context is not None else None
    if meta is None:
        return False
    return not (
        any(i.mutates_data or i.mutates_metadata for i in meta.input_info)
        or meta.num_outputs_aliased
        or meta.num_intermediate_bases
        or meta.dynamic_outputs
        or meta.grad_enabled_mutation is not None
        or meta.tokens
        or meta.num_graphsafe_rng_states
    )


def takes_its_inputs_only(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Whether AOTAutograd calls the compiled graph with exactly Dynamo's inputs: there are no
    parameters to add, no lists to flatten and no tensor subclasses to take apart, which its
    metadata does not tell: a compiler sees that of the parts.
    """
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    if next(itertools.chain(gm.parameters(), gm.buffers()), None) is not None:
        return False
    if not all(isinstance(x, torch.Tensor) for x in inputs):
        return False
    made = [n.meta.get("example_value") for n in gm.graph.nodes]
    values = torch.utils._pytree.tree_leaves((list(inputs), made))
    return not any(is_traceable_wrapper_subclass(v) for v in values)
