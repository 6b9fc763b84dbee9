# SPDX-License-Identifier: Apache-2.0
"""torch.segment_reduce: empty segments, NaN, zeros, what lies outside of all segments."""

from __future__ import annotations

import pytest
import torch

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu

REDUCTIONS = ["max", "min", "sum", "mean", "prod"]
SEGMENTS = {
    "lengths": {"lengths": torch.tensor([3, 0, 4, 1])},
    "initial": {"lengths": torch.tensor([3, 0, 4, 1]), "initial": 2},
    "offsets": {"offsets": torch.tensor([0, 3, 3, 8])},
    "outside": {"offsets": torch.tensor([1, 3, 3, 6])},
    "int32": {"offsets": torch.tensor([0, 3, 8], dtype=torch.int32), "initial": 0.5},
    "unsafe": {"lengths": torch.tensor([3, 0, 2]), "unsafe": True},
}


def reduced(x, reduce, options):
    on = {k: v.to(x.device) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    return torch.segment_reduce(x, reduce, **on)


def data():
    x = torch.randn(8, 3)
    x[2, 1] = x[3, 1] = x[5, 0] = 0
    x[4] = x[6]  # two elements are the greatest
    return x.requires_grad_()


@pytest.mark.parametrize("segments", SEGMENTS)
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_segment_reduce_matches_cpu(reduce, segments):
    assert_matches_cpu(lambda x: reduced(x, reduce, SEGMENTS[segments]), data())


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_segments_of_rows_match_cpu(reduce):
    rows = {"lengths": torch.tensor([[3, 0, 3], [1, 2, 3]]), "axis": 1}
    x = torch.randn(2, 6, 2, requires_grad=True)
    assert_matches_cpu(lambda x: reduced(x, reduce, rows), x)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_segment_reduce_of_nan_and_inf_matches_cpu(reduce):
    x = data().detach()
    x[0, 0], x[5, 2], x[6, 2] = torch.nan, torch.inf, -torch.inf
    assert_matches_cpu(lambda x: reduced(x, reduce, SEGMENTS["lengths"]), x)


REFUSED = {
    "sum of lengths": lambda x: reduced(x, "sum", {"lengths": torch.tensor([3, 0, 2])}),
    "negative length": lambda x: reduced(x, "sum", {"lengths": torch.tensor([9, -1])}),
    "no segments": lambda x: torch.segment_reduce(x, "sum"),
    "int64": lambda x: reduced(x.long(), "sum", SEGMENTS["lengths"]),
    "reduction": lambda x: reduced(x, "median", SEGMENTS["lengths"]),
    "float lengths": lambda x: reduced(x, "sum", {"lengths": torch.tensor([8.0])}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_segment_reduce_refuses_what_cpu_refuses(name):
    assert_same_error(lambda d: REFUSED[name](torch.ones(8, 3, device=d)).cpu())
