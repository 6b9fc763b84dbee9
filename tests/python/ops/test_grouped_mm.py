# SPDX-License-Identifier: Apache-2.0
"""torch._grouped_mm in compiled graphs: products of groups whose ends are known at run time."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from torch_tpu import compile as tpu_compile
from torch_tpu.testing import count_compiles

tpu_compile.register()

SHAPES = {
    "rows": ((320, 32), (4, 32, 16)),
    "sums": ((16, 320), (320, 24)),
    "columns": ((4, 16, 32), (32, 320)),
    "batch": ((4, 16, 32), (4, 32, 24)),
}
ENDS = [[3, 8, 200, 320], [0, 128, 128, 320], [320, 320, 320, 320], [1, 2, 3, 320]]


def grouped(a, b, ends):
    return torch._grouped_mm(a, b, offs=ends)


def by_group(a: torch.Tensor, b: torch.Tensor, ends: list[int]) -> torch.Tensor:
    """The definition, group by group, in double."""
    a, b = a.double(), b.double()
    parts = list(zip([0, *ends[:-1]], ends, strict=True))
    if a.dim() == 3 and b.dim() == 3:
        return a @ b
    if a.dim() == 2 and b.dim() == 2:
        return torch.stack([a[:, i:j] @ b[i:j] for i, j in parts])
    if a.dim() == 2:
        return torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(parts)])
    return torch.cat([a[g] @ b[:, i:j] for g, (i, j) in enumerate(parts)], 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", SHAPES)
def test_groups_of_any_sizes_are_one_program(kind, dtype):
    torch._dynamo.reset()
    f = torch.compile(grouped, backend="tpu", fullgraph=True)
    a, b = (torch.randn(s, dtype=dtype) for s in SHAPES[kind])
    moved = a.to("tpu"), b.to("tpu")
    for n, ends in enumerate(ENDS):
        offs = None if kind == "batch" else torch.tensor(ends, dtype=torch.int32, device="tpu")
        with count_compiles() as compiled:
            got = f(*moved, offs).cpu()
        assert n == 0 or compiled == []
        tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
        assert_close(got, by_group(a, b, ends).to(dtype), **tolerance)


def test_infinities_of_other_groups_stay_there():
    torch._dynamo.reset()
    a, b = torch.ones(8, 32), torch.ones(32, 8)
    a[:, 20] = torch.inf
    ends = [8, 16, 32]
    f = torch.compile(grouped, backend="tpu", fullgraph=True)
    offs = torch.tensor(ends, dtype=torch.int32, device="tpu")
    got = f(a.to("tpu"), b.to("tpu"), offs)
    assert_close(got.cpu(), by_group(a, b, ends).float())


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_gradients_match_eager(kind):
    results = []
    for compiled in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        a, b = (torch.randn(s, device="tpu").requires_grad_() for s in SHAPES[kind])
        offs = torch.tensor(ENDS[0], dtype=torch.int32, device="tpu")
        f = torch.compile(grouped, backend="tpu", fullgraph=True) if compiled else grouped
        y = f(a, b, offs)
        results.append((y.detach(), *torch.autograd.grad(y.sin().sum(), (a, b))))
    for e, g in zip(*results, strict=True):
        assert_close(g, e, rtol=1e-4, atol=1e-4)


def test_wrong_calls_are_refused():
    torch._dynamo.reset()
    f = torch.compile(grouped, backend="tpu", fullgraph=True)
    a, b = torch.ones(8, 32, device="tpu"), torch.ones(2, 16, 8, device="tpu")
    with pytest.raises(RuntimeError, match="contraction dimension of mat_a and mat_b must match"):
        f(a, b, torch.tensor([3, 8], dtype=torch.int32, device="tpu"))
    with pytest.raises(RuntimeError, match="Have to provide offsets if there is a 2d matrix"):
        f(a, b.new_ones(2, 32, 8), None)
