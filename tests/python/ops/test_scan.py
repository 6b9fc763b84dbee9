# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch

from torch_tpu.testing.against_cpu import assert_matches_cpu

NAN, INF = torch.nan, torch.inf
LENGTHS = [1, 2, 15, 16, 17, 127, 128, 129, 1000]


@pytest.mark.parametrize("n", LENGTHS)
def test_integer_scans_match_cpu_at_every_length(n):
    x = torch.randint(-9, 9, (3, n))
    for dim, y in ((1, x), (0, x.t())):
        assert_matches_cpu(lambda x, d=dim: x.cumsum(d), y)
        assert_matches_cpu(lambda x, d=dim: x.cummax(d), y)
        assert_matches_cpu(lambda x, d=dim: x.cummin(d), y)


@pytest.mark.parametrize("f", [torch.cumsum, torch.cumprod, torch.logcumsumexp])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_floating_scans_and_gradients_match_cpu(f, dim):
    assert_matches_cpu(lambda x: f(x, dim), torch.randn(3, 7, 4, requires_grad=True))


@pytest.mark.parametrize("f", [torch.cumsum, torch.cumprod])
def test_scans_widen_bool_and_small_integers_to_int64(f):
    assert_matches_cpu(lambda x: f(x, 0), torch.tensor([True, True, False]))
    assert_matches_cpu(lambda x: f(x, 0), torch.tensor([100, 100, 3], dtype=torch.int8))
    assert_matches_cpu(lambda x: f(x, 0, dtype=torch.float64), torch.arange(4))


def test_cumsum_of_bf16_is_kept_in_f32():
    x = torch.ones(400, dtype=torch.bfloat16)
    assert x.to("tpu").cumsum(0)[-1].item() == 400


@pytest.mark.parametrize(
    "f", [torch.cumsum, torch.cumprod, torch.cummax, torch.cummin, torch.logcumsumexp]
)
def test_special_values_match_cpu(f):
    for x in (
        [1.0, NAN, 2, NAN, 1],
        [1.0, -INF, 2, INF, 3],
        [-INF, -INF, 2],
        [INF, -INF],
        [2.0, 0, INF, 1],
    ):
        assert_matches_cpu(lambda x: f(x, 0), torch.tensor(x))


def test_later_of_equal_values_is_the_index():
    x = torch.tensor([2.0, 1, 2, 2, 0])
    assert_matches_cpu(lambda x: x.cummax(0), x)
    assert_matches_cpu(lambda x: (-x).cummin(0), x)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("f", [torch.cumsum, torch.cumprod, torch.cummax, torch.logcumsumexp])
def test_rank_0_and_empty_match_cpu(f, shape):
    assert_matches_cpu(lambda x: f(x, -1), torch.randn(shape))
