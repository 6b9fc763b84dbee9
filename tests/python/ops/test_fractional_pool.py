# SPDX-License-Identifier: Apache-2.0
"""Fractional max pooling: with the same draws, CPU's windows to the element, in each dtype."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu


def pool2d(x, u, kernel=(2, 3), out=(5, 7)):
    return F.fractional_max_pool2d(
        x, kernel, output_size=out, _random_samples=u, return_indices=True
    )


def pool3d(x, u, kernel=(2, 3, 2), out=(5, 3, 1)):
    return F.fractional_max_pool3d(
        x, kernel, output_size=out, _random_samples=u, return_indices=True
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_fractional_pools_match_cpu(dtype, seed):
    torch.manual_seed(seed)
    x = torch.randn(2, 3, 13, 17, dtype=dtype, requires_grad=True)
    assert_matches_cpu(pool2d, x, torch.rand(2, 3, 2, dtype=dtype))
    x = torch.randn(2, 3, 9, 8, 17, dtype=dtype, requires_grad=True)
    assert_matches_cpu(pool3d, x, torch.rand(2, 3, 3, dtype=dtype))


def test_fractional_pool_of_nan_and_inf_matches_cpu():
    x = torch.randn(3, 9, 9)
    x[0, 3, 3], x[1] = torch.nan, -torch.inf
    assert_matches_cpu(lambda x, u: pool2d(x, u, 3, 4), x, torch.rand(1, 3, 2))


def test_fractional_pool_of_no_images_matches_cpu():
    assert_matches_cpu(lambda x, u: pool2d(x, u, 3, 4), torch.rand(0, 3, 9, 9), torch.rand(0, 3, 2))


REFUSED = {
    "draws of fewer images": lambda x, u: pool2d(x, u[:1]),
    "draws of fewer channels": lambda x, u: pool2d(x, u[:, :2]),
    "draws of one dimension": lambda x, u: pool2d(x, u[..., :1]),
    "draws of another dtype": lambda x, u: pool2d(x.double(), u),
    "int64": lambda x, u: pool2d(x.long(), u.long()),
    "more windows than places": lambda x, u: pool2d(x, u, 3, 8),
}


@pytest.mark.parametrize("name", REFUSED)
def test_fractional_pool_refuses_what_cpu_refuses(name):
    assert_same_error(
        lambda d: REFUSED[name](torch.ones(2, 3, 9, 9, device=d), torch.ones(2, 3, 2, device=d))
    )
