# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from torch_tpu.testing.against_cpu import assert_matches_cpu

NUMBERS = [torch.float32, torch.float64, torch.int64]


def number(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.randn(shape) * 3).to(dtype)


def indices(size: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, size, shape)


@pytest.mark.parametrize("dtype", [*NUMBERS, torch.bool, torch.complex64])
def test_scatter_into_a_corner_matches_cpu(dtype):
    x, src = number(4, 5, 6, dtype=dtype), number(4, 5, 6, dtype=dtype)
    unique = torch.rand(4, 5, 6).argsort(1)[:2, :, :3]
    assert_matches_cpu(lambda x, i, s: x.scatter(1, i, s), x, unique, src)
    assert_matches_cpu(lambda x, i: x.scatter(2, i, 1), x, indices(6, 4, 2, 3))


def test_of_duplicates_the_last_wins():
    i = torch.tensor([1, 1, 1])
    assert_matches_cpu(
        lambda x, i, s: x.scatter(0, i, s), torch.zeros(3), i, torch.tensor([1.0, 2, 3])
    )
    assert_matches_cpu(
        lambda x, i, s: x.index_put((i,), s), torch.zeros(3), i, torch.tensor([1.0, 2, 3])
    )


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_reductions_match_cpu(dtype, reduce, include_self):
    x, src = number(4, 5, 6, dtype=dtype), number(4, 5, 6, dtype=dtype)

    def f(x, i, s):
        return x.scatter_reduce(0, i, s, reduce, include_self=include_self)

    assert_matches_cpu(f, x, indices(4, 4, 5, 3), src)
    if reduce != "sum":

        def g(x, i, s):
            return x.index_reduce(1, i, s, reduce, include_self=include_self)

        assert_matches_cpu(g, x, indices(5, 5), src)


@pytest.mark.parametrize("reduce", ["amax", "amin", "sum"])
def test_nan_survives_a_reduction(reduce):
    src = torch.tensor([torch.nan, 5, torch.inf])

    def f(x, i, s):
        return x.scatter_reduce(0, i, s, reduce)

    assert_matches_cpu(f, torch.tensor([1.0, 2, 3]), torch.tensor([0, 0, 1]), src)


def test_16_bit_sums_are_rounded_once():
    x, ones = torch.zeros(1, dtype=torch.bfloat16), torch.ones(300, dtype=torch.bfloat16)
    out = x.to("tpu").scatter_add(0, torch.zeros(300).long().to("tpu"), ones.to("tpu"))
    assert out.item() == 300  # one by one in bfloat16 it would stop at 256


@pytest.mark.parametrize("shape", [(), (5,), (5, 3)])
def test_index_add_copy_fill_match_cpu(shape):
    x = number(*shape)
    i = torch.tensor([0]) if not shape else torch.tensor([3, 0, 2])
    source = number(*shape)[:3] if shape else number()
    assert_matches_cpu(lambda x, i, s: x.index_add(0, i, s, alpha=2), x, i, source)
    assert_matches_cpu(lambda x, i, s: x.index_copy(0, i, s), x, i, source)
    assert_matches_cpu(lambda x, i: x.index_fill(0, i, -1), x, -1 - i if shape else i)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_between_whole_dimensions_matches_cpu(dtype, accumulate):
    x = number(4, 5, 6, dtype=dtype)
    i, j = torch.tensor([0, 2, 3]), torch.tensor([5, 0, 1])

    def f(x, i, j, v):
        return torch.ops.aten.index_put(x, [i, None, j], v, accumulate)

    assert_matches_cpu(f, x, i, j, number(3, 5, dtype=dtype))
    assert_matches_cpu(f, x, i, j, number(1, dtype=dtype))


def test_index_put_adds_every_duplicate():
    v = torch.randn(50, 3)

    def f(x, i, v):
        return x.index_put((i,), v, accumulate=True)

    assert_matches_cpu(f, torch.zeros(4, 3), indices(4, 50), v)


def test_masked_writes_match_cpu():
    def f(x, mask, v):
        x = x.clone()
        x[mask] = v
        x[:, mask[0]] = 7
        return x

    mask = torch.randn(4, 5) > 0
    assert_matches_cpu(f, torch.randn(4, 5), mask, torch.randn(int(mask.sum())))
    assert_matches_cpu(f, torch.randn(4, 5), mask, torch.tensor(2.0))


def test_writes_through_views_reach_the_base():
    b = torch.zeros(2, 4, device="tpu")
    b[1].scatter_add_(0, torch.tensor([3, 2, 3], device="tpu"), torch.ones(3, device="tpu"))
    assert_close(b.cpu(), torch.tensor([[0.0, 0, 0, 0], [0, 0, 1, 2]]))
    y = torch.ones(2, 8, device="tpu")
    rows = torch.tensor([[0, 1]], device="tpu")
    y[rows] += y[rows]
    assert_close(y.cpu(), torch.full((2, 8), 2.0))


def test_an_empty_index_gives_self():
    none = torch.empty(0, dtype=torch.int64)
    x = torch.randn(3)
    assert_matches_cpu(lambda x, i: x.scatter(0, i, x), x, none)
    assert_matches_cpu(lambda x, i: x.index_put((i,), x[:0]), x, none)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x.scatter(0, i, 1.0),
        lambda x, i: x.scatter_add(0, i, torch.ones_like(x[:1])),
        lambda x, i: x.index_add(0, i, torch.ones_like(x[:1])),
        lambda x, i: x.index_copy(0, i, torch.ones_like(x[:1])),
        lambda x, i: x.index_put((i,), torch.ones_like(x[:1])),
        lambda x, i: x.put(i, torch.ones_like(x[:1])),
    ],
)
def test_a_place_out_of_range_is_reported(call):
    with pytest.raises((RuntimeError, IndexError), match="out of (range|bounds)"):
        call(torch.zeros(3, device="tpu"), torch.tensor([7], device="tpu")).cpu()
