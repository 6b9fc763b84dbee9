# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu

POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
ADAPTIVE = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}


def tensor(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 1, "padding": 1},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        {"kernel_size": 2, "stride": 2, "dilation": 2},
    ],
)
def test_max_pool_matches_cpu(n, batched, options):
    x = tensor(*((2, 3) if batched else (3,)), *(9, 8, 7)[:n])
    assert_matches_cpu(lambda x: POOL[n](x, return_indices=True, **options), x)


def test_max_pool_with_large_windows_matches_cpu():
    assert_matches_cpu(
        lambda x: F.max_pool1d(x, 33, 5, padding=4, return_indices=True), tensor(2, 3, 100)
    )
    assert_matches_cpu(
        lambda x: F.max_pool2d(x, 20, 3, padding=2, return_indices=True), tensor(1, 2, 31, 30)
    )


def test_max_pool_takes_the_first_of_equal_maxima():
    x = torch.zeros(1, 1, 6, 6).requires_grad_()
    assert_matches_cpu(lambda x: F.max_pool2d(x, 3, 2, return_indices=True), x)
    assert_matches_cpu(
        lambda x: F.max_pool2d(x, (1, 40), (1, 1), padding=(0, 20), return_indices=True),
        torch.zeros(1, 1, 3, 50),
    )


def test_max_pool_of_nan_and_infinity_matches_cpu():
    x = torch.randn(1, 1, 8, 8)
    x[0, 0, 2, 3] = x[0, 0, 3, 2] = torch.nan
    x[0, 0, 6:, 6:] = -torch.inf
    assert_matches_cpu(lambda x: F.max_pool2d(x, 3, 1, padding=1, return_indices=True), x)
    assert_matches_cpu(lambda x: F.adaptive_max_pool2d(x, 3, return_indices=True), x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_max_pool_of_integers_matches_cpu(dtype):
    x = torch.randint(0, 100, (2, 3, 8, 8), dtype=dtype)
    assert_matches_cpu(lambda x: F.max_pool2d(x, 3, 2, padding=1), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_max_pool_of_other_floats_matches_cpu(dtype):
    assert_matches_cpu(
        lambda x: F.max_pool2d(x, 2, return_indices=True), tensor(2, 3, 8, 8, dtype=dtype)
    )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("output_size", [1, 3, 5])
def test_adaptive_max_pool_matches_cpu(n, output_size):
    x = tensor(2, 3, *(7, 6, 5)[:n])
    assert_matches_cpu(lambda x: ADAPTIVE[n](x, output_size, return_indices=True), x)


def test_max_unpool_puts_values_back():
    x = torch.randn(2, 3, 8, 8)

    def call(x):
        y, indices = F.max_pool2d(x, 2, return_indices=True)
        return F.max_unpool2d(y, indices, 2)

    assert_matches_cpu(call, x)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: F.max_pool2d(torch.ones(1, 1, 2, 2, device=d), 3),
        lambda d: F.max_pool2d(torch.ones(1, 1, 4, 4, device=d), 2, padding=2),
        lambda d: F.max_pool2d(torch.ones(1, 1, 4, 4, device=d, dtype=torch.bool), 2),
        lambda d: F.max_pool2d(torch.ones(4, 4, device=d), 2),
    ],
)
def test_errors_read_as_on_cpu(call):
    assert_same_error(call)
