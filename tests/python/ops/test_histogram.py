# SPDX-License-Identifier: Apache-2.0
"""torch.histogram and torch.histogramdd: edges of bins, weights, refusals."""

from __future__ import annotations

import pytest
import torch

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

X = torch.linspace(-1, 1, 41)
EDGES = torch.tensor([-0.5, 0.0, 0.0, 0.25, 0.5])

CALLS = {
    "count": lambda x: torch.histogram(x, 8),
    "range": lambda x: torch.histogram(x, 4, range=(-0.5, 0.5)),
    "range of one point": lambda x: torch.histogram(x, 3, range=(0.5, 0.5)),
    "nothing inside": lambda x: torch.histogram(x, 2, range=(5, 6), density=True),
    "one value": lambda x: torch.histogram(x[:3] * 0 + 1, 3),
    "empty": lambda x: torch.histogram(x[:0], 3),
    "nan outside": lambda x: torch.histogram((x - 0.5).log(), 3, range=(-2, 0)),
    "density": lambda x: torch.histogram(x, 7, weight=x * x, density=True),
    "edges": lambda x: torch.histogram(x, EDGES.to(x.device)),
    "edges falling": lambda x: torch.histogram(x, EDGES.flip(0).to(x.device)),
    "edges, weight": lambda x: torch.histogram(x, EDGES.to(x.device), weight=x, density=True),
    "two dimensions": lambda x: flat(torch.histogramdd(x[:40].view(4, 5, 2), [3, 4])),
    "two, range": lambda x: flat(torch.histogramdd(x[:40].view(20, 2), [3, 4], range=[0, 1, 0, 0])),
    "two, edges": lambda x: flat(
        torch.histogramdd(x[:40].view(20, 2), [EDGES.to(x.device), EDGES[:3].to(x.device)])
    ),
    "two, empty": lambda x: flat(torch.histogramdd(x[:0].view(0, 2), [3, 4])),
}


def flat(result):
    return (result.hist, *result.bin_edges)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_histogram_matches_cpu(name, dtype):
    if dtype == torch.float64 and "edges" in name:
        pytest.skip("the edges are float32")
    assert_matches_cpu(CALLS[name], X.to(dtype))


def test_counts_past_float32_are_exact():
    x = torch.zeros(2**24 + 3, device="tpu")
    assert torch.histogram(x, 1, range=(0, 1)).hist.item() == 2**24 + 4  # the nearest float32


def test_other_data_compiles_nothing():
    torch.histogram(X.to("tpu"), 5).hist.cpu()
    with count_compiles() as compiled:
        torch.histogram((X * 3).to("tpu"), 5).hist.cpu()
    assert compiled == []


def test_data_without_a_finite_range_is_refused():
    x = torch.tensor([1.0, torch.nan], device="tpu")
    with pytest.raises(RuntimeError, match="dimension 0's range is not finite"):
        torch.histogram(x, 3).hist.cpu()


REFUSED = {
    "bfloat16": lambda x: torch.histogram(x.bfloat16(), 3),
    "int64": lambda x: torch.histogram(x.long(), 3),
    "no bins": lambda x: torch.histogram(x, 0),
    "range": lambda x: torch.histogram(x, 3, range=(2, 1)),
    "infinite range": lambda x: torch.histogram(x, 3, range=(0, torch.inf)),
    "range's length": lambda x: torch.histogramdd(x.view(2, 2), [2, 2], range=[0.0, 1.0]),
    "weight's shape": lambda x: torch.histogram(x, 3, weight=x[1:]),
    "weight's dtype": lambda x: torch.histogram(x, 3, weight=x.double()),
    "edges' rank": lambda x: torch.histogram(x, x.view(2, 2)),
    "one edge": lambda x: torch.histogram(x, x[:1]),
    "no edge": lambda x: torch.histogram(x, x[:0]),
    "edges' dtype": lambda x: torch.histogram(x, x.double()),
    "rank": lambda x: torch.histogramdd(x, [2]),
    "bins": lambda x: torch.histogramdd(x.view(2, 2), [2]),
    "edges": lambda x: torch.histogramdd(x.view(2, 2), [x]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_histogram_refuses_what_cpu_refuses(name):
    assert_same_error(lambda d: REFUSED[name](torch.arange(4.0, device=d)))
