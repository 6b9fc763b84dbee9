# SPDX-License-Identifier: Apache-2.0
"""One call on the device and on the CPU, results and gradients compared."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

__all__ = ["assert_matches_cpu", "to_tpu"]


def to_tpu(tree):
    """Copies of a tree's tensors on the device: leaves that require grad still do."""

    def move(x):
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().to("tpu").requires_grad_(x.requires_grad)

    return tree_map(move, tree)


def tensors(tree) -> list[torch.Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]


def assert_matches_cpu(
    f: Callable, *args, reference: torch.dtype | None = None, **tolerance
) -> None:
    """Asserts that `f` of the arguments on the device gives what it gives on CPU, gradients too.

    Args:
        args: CPU arguments; those that require grad are differentiated.
        reference: the dtype that the CPU computes in, its results being rounded to ours. For 16-bit
            inputs, where the CPU's own kernels round more often than the device does.
        tolerance: rtol and atol of `assert_close`, if not its own.
    """
    wide = args
    if reference is not None:

        def widen(x):
            if isinstance(x, torch.Tensor) and x.is_floating_point():
                return x.detach().to(reference).requires_grad_(x.requires_grad)
            return x

        wide = tree_map(widen, args)
    moved = to_tpu(args)
    expected, actual = tensors(f(*wide)), tensors(f(*moved))
    assert len(expected) == len(actual)
    for e, a in zip(expected, actual, strict=True):
        assert a.device.type == "tpu"
        assert_close(a.detach().cpu(), e.detach().to(a.dtype), equal_nan=True, **tolerance)

    leaves = [x for x in tensors(wide) if x.requires_grad]
    outputs = [(e, a) for e, a in zip(expected, actual, strict=True) if e.requires_grad]
    if not leaves or not outputs:
        return
    grads = [torch.randn_like(e).to(a.dtype).to(e.dtype) for e, a in outputs]  # the same for both
    wanted = torch.autograd.grad([e for e, _ in outputs], leaves, grads, allow_unused=True)
    got = torch.autograd.grad(
        [a for _, a in outputs],
        [x for x in tensors(moved) if x.requires_grad],
        [g.to("tpu", a.dtype) for g, (_, a) in zip(grads, outputs, strict=True)],
        allow_unused=True,
    )
    for e, a in zip(wanted, got, strict=True):
        assert (e is None) == (a is None)
        if e is not None:
            assert_close(a.cpu(), e.to(a.dtype), equal_nan=True, **tolerance)
