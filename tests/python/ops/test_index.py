# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from torch_tpu.testing import count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64]


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    x = torch.randn(shape) * 3
    return x > 0 if dtype == torch.bool else x.to(dtype)


def indices(size: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, size, shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_of_a_smaller_index_matches_cpu(dtype):
    x = values(4, 5, 6, dtype=dtype)
    assert_matches_cpu(lambda x, i: x.gather(1, i), x, indices(5, 3, 2, 6))
    assert_matches_cpu(lambda x, i: x.gather(-1, i), x, indices(6, 4, 5, 9))


def test_gather_differentiates_through_duplicates():
    x = torch.randn(4, 5, requires_grad=True)
    assert_matches_cpu(lambda x, i: x.gather(1, i), x, torch.zeros(4, 3, dtype=torch.int64))


@pytest.mark.parametrize("x, i", [((), ()), ((), (1,)), ((3,), ()), ((3, 0), (2, 0)), ((3,), (0,))])
def test_gather_of_rank_0_and_empty_matches_cpu(x, i):
    assert_matches_cpu(lambda x, i: x.gather(0, i), torch.randn(x), torch.zeros(i).long())


@pytest.mark.parametrize("dtype", DTYPES)
def test_indices_stand_where_pytorch_puts_them(dtype):
    x = values(4, 5, 6, dtype=dtype)
    a, b, c = indices(4, 3, 1), indices(5, 3, 2), indices(6, 2)
    for key in [(a,), (slice(None), b), (a, slice(None), c), (slice(None), b, c), (a, b, c)]:
        assert_matches_cpu(lambda x, *key: x[key], x, *key)
    assert_matches_cpu(lambda x, i: x[i], x, indices(4, 3) - 4)


def test_mask_and_integers_together_match_cpu():
    x, mask = torch.randn(4, 5, 6), torch.tensor([True, False, True, True])
    assert_matches_cpu(lambda x, m, i: x[m, :, i], x, mask, indices(6, 3))
    assert_matches_cpu(lambda x, m: x[m > 0.3], x, torch.randn(4, 5))


def test_index_gradient_adds_duplicates():
    x = torch.randn(5, 3, requires_grad=True)
    assert_matches_cpu(lambda x, i: x[i], x, torch.tensor([1, 1, -1, 4, 1]))


def test_rows_of_an_empty_or_strided_tensor_match_cpu():
    assert_matches_cpu(lambda x, i: x.index_select(1, i), torch.randn(0, 4), indices(4, 2))
    assert_matches_cpu(lambda x, i: x.t()[1:].index_select(0, i), torch.randn(3, 6), indices(5, 4))
    assert_matches_cpu(
        lambda x: x.index_select(0, torch.tensor(0, device=x.device)), torch.tensor(3.0)
    )


def test_take_wraps_negative_indices():
    assert_matches_cpu(torch.take, torch.randn(3, 4), torch.tensor([[-1, 0], [11, -12]]))


OUT_OF_RANGE = [
    (lambda d: torch.ones(3, device=d).gather(0, torch.tensor([5], device=d)), "index"),
    (lambda d: torch.ones(3, device=d)[torch.tensor([3], device=d)], "index"),
    (lambda d: torch.ones(3, device=d)[torch.tensor([-4], device=d)], "index"),
    (
        lambda d: torch.ones(3, device=d).index_select(0, torch.tensor([-1], device=d)),
        "index out of range in self",
    ),
    (
        lambda d: torch.ones(3, device=d).take(torch.tensor([-5], device=d)),
        "out of range: tried to access",
    ),
]


@pytest.mark.parametrize("call, text", OUT_OF_RANGE)
def test_index_out_of_range_is_reported_when_the_host_waits(call, text):
    with pytest.raises((RuntimeError, IndexError), match=text):
        call("tpu").cpu()
    assert torch.ones(2, device="tpu").sum().item() == 2  # and the device goes on


def test_index_of_an_empty_dimension_is_refused_at_once():
    with pytest.raises(IndexError, match="size 0"):
        torch.ones(0, device="tpu")[torch.tensor([0], device="tpu")]


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 3), (200,)])
def test_nonzero_and_masked_select_match_cpu(shape):
    x = torch.randn(shape)
    assert_matches_cpu(lambda x: (x > 0).nonzero(), x)
    assert_matches_cpu(lambda x: x.masked_select(x > 0), x)
    f = torch.nonzero_static
    for size in (0, 3, 300):
        assert_matches_cpu(lambda x, n=size: f(x > 0, size=n, fill_value=-7), x)


def test_masked_scatter_takes_the_source_in_order():
    mask = torch.randn(130, 4) > 0
    assert_matches_cpu(
        lambda x, m, s: x.masked_scatter(m, s), torch.zeros(130, 4), mask, torch.randn(600)
    )
    short = torch.zeros(3, device="tpu")
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        short.masked_scatter(
            torch.tensor([True, True, False], device="tpu"), torch.ones(1, device="tpu")
        ).cpu()


def test_other_indices_share_one_program():
    x = torch.arange(12.0, device="tpu").view(3, 4)
    _ = x[torch.tensor([0, 1], device="tpu")]
    with count_compiles() as compiled:
        out = x[torch.tensor([2, -1], device="tpu")]
    assert compiled == []
    assert_close(out.cpu(), torch.arange(12.0).view(3, 4)[[2, 2]])
