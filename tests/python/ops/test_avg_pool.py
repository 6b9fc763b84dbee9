# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu

POOL = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}


def tensor(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 1, "padding": 1},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        {"kernel_size": 2, "stride": 3},
    ],
)
def test_avg_pool_matches_cpu(n, count_include_pad, options):
    x = tensor(2, 3, *(9, 8, 7)[:n])
    assert_matches_cpu(lambda x: POOL[n](x, count_include_pad=count_include_pad, **options), x)


@pytest.mark.parametrize("n", [2, 3])
def test_avg_pool_divides_by_what_it_is_told(n):
    assert_matches_cpu(lambda x: POOL[n](x, 2, divisor_override=3), tensor(3, *(9, 8, 7)[:n]))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("output_size", [1, 3, 5, 7, 9])
def test_adaptive_avg_pool_matches_cpu(n, output_size):
    assert_matches_cpu(lambda x: ADAPTIVE[n](x, output_size), tensor(2, 3, *(7, 6, 5)[:n]))


def test_infinity_stays_in_its_windows():
    x = torch.randn(1, 1, 7, 7)
    x[0, 0, 3, 3] = torch.inf
    x[0, 0, 6, 0] = torch.nan
    assert_matches_cpu(lambda x: F.avg_pool2d(x, 2), x)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, 3), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_avg_pool_of_16_bit_floats_sums_in_f32(dtype):
    x = tensor(1, 2, 16, 16, dtype=dtype)
    assert_matches_cpu(lambda x: F.avg_pool2d(x, 8), x, reference=torch.float32)
    assert_matches_cpu(
        lambda x: F.adaptive_avg_pool2d(x, 3), x, reference=torch.float32, rtol=1e-2, atol=1e-2
    )


def test_avg_pool_of_integers_rounds_to_zero():
    assert_matches_cpu(lambda x: F.avg_pool2d(x, 2), torch.arange(-8, 8).reshape(1, 4, 4))


@pytest.mark.parametrize(
    "call",
    [
        lambda d: F.avg_pool2d(torch.ones(1, 1, 2, 2, device=d), 3),
        lambda d: F.avg_pool2d(torch.ones(1, 1, 4, 4, device=d), 2, divisor_override=0),
        lambda d: F.avg_pool2d(torch.ones(1, 1, 4, 4, device=d, dtype=torch.bool), 2),
    ],
)
def test_errors_read_as_on_cpu(call):
    assert_same_error(call)
