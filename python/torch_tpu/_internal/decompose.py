# SPDX-License-Identifier: Apache-2.0
"""Operators without a lowering of their own: PyTorch's decomposition, traced once per signature
into one program.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_tpu import _C

_table: dict[torch._ops.OpOverload, Any] | None = None


def _operator(name: str) -> torch._ops.OpOverload:
    namespace, rest = name.split("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


def decomposition_table() -> dict[torch._ops.OpOverload, Any]:
    """PyTorch's decompositions and references, and ours, of all operators that have no lowering
    here.
    """
    global _table
    if _table is None:
        import torch._decomp
        import torch._refs
        import torch._refs.linalg
        import torch._refs.nn.functional
        import torch._refs.special

        from torch_tpu._internal import decompositions
        from torch_tpu._internal.fx_import import lowering_name

        known: dict[Any, Any] = {**torch._decomp.decomposition_table, **decompositions.TABLE}
        _table = {
            op: f
            for op, f in known.items()
            if isinstance(op, torch._ops.OpOverload) and not _C.has_lowering(lowering_name(op))
        }
    return _table


def decompose(name: str, args: list[Any]) -> Any:
    """The graph of the functional operator `name` on arguments of this metadata, or None if PyTorch
    cannot say it in operators that have lowerings. Inputs of the graph are the call's tensors in
    order, lists flattened.
    """
    from torch._subclasses.fake_tensor import (
        DataDependentOutputException,
        DynamicOutputShapeException,
        FakeTensorMode,
        UnsupportedOperatorException,
    )
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils import _pytree as pytree

    from torch_tpu._internal.fx_import import GraphImporter, Missing

    op = _operator(name)
    table = decomposition_table()
    flat, spec = pytree.tree_flatten(args)
    is_tensor = [isinstance(a, torch.Tensor) for a in flat]
    with FakeTensorMode(allow_non_fake_inputs=True):
        fakes = [
            torch.empty_strided(a.size(), a.stride(), dtype=a.dtype, device=a.device) if t else a
            for a, t in zip(flat, is_tensor, strict=True)
        ]
    names = [a.name for a in op._schema.arguments]
    keyword_only = [a.kwarg_only for a in op._schema.arguments]

    def call(*tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        values = pytree.tree_unflatten(
            [next(given) if t else a for a, t in zip(flat, is_tensor, strict=True)], spec
        )
        # Not strict: a call may leave out the last arguments, which are options then.
        positional = [v for v, k in zip(values, keyword_only, strict=False) if not k]
        keywords = {n: v for n, v, k in zip(names, values, keyword_only, strict=False) if k}
        f = table.get(op, op)
        return f(*positional, **keywords)

    try:
        traced = make_fx(
            call, decomposition_table=table, tracing_mode="fake", _allow_non_fake_inputs=True
        )(*[f for f, t in zip(fakes, is_tensor, strict=True) if t])
        importer = GraphImporter()
        outputs = importer.run(traced.graph)
    except (
        Missing,
        DynamicOutputShapeException,
        DataDependentOutputException,
        UnsupportedOperatorException,
    ):
        return None
    except AssertionError as e:
        if "no_dispatch" in str(
            e
        ):  # PyTorch has no fake implementation and would run the real operator, which is this one
            return None
        raise
    for v in outputs:
        importer.graph.output(v)
    return importer.graph
