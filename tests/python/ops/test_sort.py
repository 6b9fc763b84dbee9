# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu

NAN, INF = torch.nan, torch.inf


def with_nans() -> torch.Tensor:
    x = torch.randn(3, 7, 4)
    x[0, 1], x[1, 3, 2], x[2, 3, 1], x[0, 0, 0], x[0, 3, 0] = NAN, NAN, -NAN, INF, -INF
    return x


INPUTS = {
    "f32": lambda: torch.randn(3, 7, 4, requires_grad=True),
    "nan": with_nans,
    "bf16": lambda: torch.randn(3, 7, 4).bfloat16(),
    "s64": lambda: torch.randint(-3, 3, (3, 7, 4)),
    "u8": lambda: torch.randint(0, 256, (3, 7, 4), dtype=torch.uint8),
    "bool": lambda: torch.randn(3, 7, 4) > 0,
}


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_stable_sort_matches_cpu(kind, descending, dim):
    def f(x):
        return torch.sort(x, dim=dim, descending=descending, stable=True)

    assert_matches_cpu(f, INPUTS[kind]())


@pytest.mark.parametrize("kind", ["f32", "nan", "bf16", "s64"])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_values_match_cpu_and_indices_point_at_them(kind, largest):
    x = INPUTS[kind]()
    for dim in (0, 1, 2):
        values, places = x.to("tpu").topk(2, dim, largest)
        assert_close(values.cpu(), x.topk(2, dim, largest).values, equal_nan=True)
        assert_close(values.cpu(), x.gather(dim, places.cpu()), equal_nan=True)


def test_order_statistics_match_cpu():
    x = torch.randn(3, 9, 4)
    for dim in (0, 1, 2):
        assert_matches_cpu(lambda x, d=dim: x.kthvalue(2, d), x)
        assert_matches_cpu(lambda x, d=dim: x.median(d), x)
        assert_matches_cpu(lambda x, d=dim: x.nanmedian(d, keepdim=True), x)
        assert_matches_cpu(lambda x, d=dim: (x * 2).round().mode(d).values, x)
    assert_matches_cpu(torch.median, x)
    assert_matches_cpu(torch.median, torch.empty(0))


def test_median_gives_the_first_nan_and_nanmedian_ignores_it():
    x = torch.tensor([[1.0, NAN, 2, NAN, 0], [NAN] * 5, [3, 1, 2, 5, 4]])
    assert_matches_cpu(lambda x: x.median(1), x)
    assert_matches_cpu(lambda x: x.nanmedian(1).values, x)
    assert_matches_cpu(torch.nanmedian, x)


@pytest.mark.parametrize("right", [False, True])
def test_search_matches_cpu(right):
    row = torch.tensor([-1.0, 0, 0, 0.5, 2, INF])
    values = torch.tensor([[-2.0, -1, 0, NAN], [0.5, 0.6, INF, 3]])
    assert_matches_cpu(lambda r, v: torch.searchsorted(r, v, right=right), row, values)
    assert_matches_cpu(lambda r, v: torch.bucketize(v, r, right=right, out_int32=True), row, values)
    rows = torch.randn(3, 4, 9)
    _, order = rows.sort(-1)

    def f(r, v, s):
        return torch.searchsorted(r, v, sorter=s, right=right)

    assert_matches_cpu(f, rows, torch.randn(3, 4, 5), order)
    assert_matches_cpu(lambda r: torch.searchsorted(r, 2.5, right=right), torch.tensor([1, 2, 3]))
    assert_matches_cpu(lambda r, v: torch.searchsorted(r, v), torch.empty(0), values)


@pytest.mark.parametrize("n", [0, 5, 200])
def test_isin_matches_cpu(n):
    x, among = torch.randint(0, 50, (4, 5)), torch.randint(0, 300, (n,))
    assert_matches_cpu(torch.isin, x, among)
    assert_matches_cpu(lambda x, a: torch.isin(x, a, invert=True), x.float(), among.float())
    assert_matches_cpu(torch.isin, torch.tensor([NAN, 1, INF]), torch.tensor([NAN] * 70 + [1.0]))


def test_sizes_out_of_range_read_as_on_cpu():
    assert_same_error(lambda d: torch.ones(3, device=d).topk(4))
    assert_same_error(lambda d: torch.ones(3, device=d).kthvalue(4))
    assert_same_error(lambda d: torch.ones(2, 0, device=d).median(1))


@pytest.mark.parametrize("values", [[], [3], [3, 1, 3, 2, 1], [5] * 130, list(range(129))])
def test_unique_matches_cpu(values):
    x = torch.tensor(values, dtype=torch.int64)
    assert_matches_cpu(lambda x: torch.unique(x, return_inverse=True, return_counts=True), x)
    f = torch.unique_consecutive
    assert_matches_cpu(lambda x: f(x, return_inverse=True, return_counts=True), x)


def test_unique_of_nans_and_of_rows_matches_cpu():
    x = torch.tensor([NAN, 1, NAN, -1, 1])
    assert_matches_cpu(lambda x: torch.unique(x, return_counts=True), x)
    rows = torch.randint(0, 2, (20, 3))
    for dim in (0, 1):

        def f(x, d=dim):
            return torch.unique(x, dim=d, return_inverse=True, return_counts=True)

        assert_matches_cpu(f, rows)

        def g(x, d=dim):
            return torch.unique_consecutive(x, dim=d, return_counts=True)

        assert_matches_cpu(g, rows)


def test_counts_match_cpu():
    x, w = torch.randint(0, 9, (40,)), torch.randn(40)
    assert_matches_cpu(torch.bincount, x)
    assert_matches_cpu(lambda x, w: torch.bincount(x, w, minlength=20), x, w)
    assert_matches_cpu(lambda x: torch.histc(x, 7), w)
    assert_matches_cpu(lambda x: torch.histc(x, 7, -1, 1), w)
    assert_matches_cpu(lambda x: torch.histc(x, 3), torch.ones(4))
    assert_same_error(lambda d: torch.bincount(torch.tensor([-1], device=d)))


def test_repeat_interleave_matches_cpu():
    x, n = torch.randn(4, 2), torch.tensor([2, 0, 3, 1])
    assert_matches_cpu(lambda x, n: x.repeat_interleave(n, dim=0), x, n)
    assert_matches_cpu(lambda x, n: x.repeat_interleave(n, dim=0, output_size=6), x, n)
    assert_same_error(lambda d: torch.repeat_interleave(torch.tensor([-1], device=d)))


# CUDA counts integers, the CPU does not; mixtures of experts in Transformers rely on it.
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_histc_counts_integers_in_their_dtype(dtype):
    ids = torch.tensor([3, 0, 1, 3, 7, 9, 2, 3], dtype=dtype, device="tpu")
    assert torch.histc(ids, bins=8, min=0, max=7).tolist() == [1, 1, 1, 3, 0, 0, 0, 1]
    halves = torch.histc(ids, bins=2)  # [0, 4.5) and [4.5, 9]
    assert halves.tolist() == [6, 2] and halves.dtype == dtype
    assert torch.histc(ids[:1], bins=3).tolist() == [0, 1, 0]
