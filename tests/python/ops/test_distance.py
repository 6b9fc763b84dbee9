# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

ORDERS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, torch.inf]


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize(
    "shapes", [((4, 3), (5, 3)), ((2, 1, 4, 3), (3, 5, 3)), ((0, 3), (5, 3)), ((2, 0), (3, 0))]
)
def test_cdist_matches_cpu(p, shapes):
    a, b = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes)
    assert_matches_cpu(lambda a, b: torch.cdist(a, b, p), a, b)


@pytest.mark.parametrize(
    "mode",
    [
        "use_mm_for_euclid_dist",
        "donot_use_mm_for_euclid_dist",
        "use_mm_for_euclid_dist_if_necessary",
    ],
)
def test_cdist_of_many_rows_matches_cpu(mode):
    a, b = torch.randn(40, 8, dtype=torch.float64), torch.randn(30, 8, dtype=torch.float64)
    assert_matches_cpu(lambda a, b: torch.cdist(a, b, compute_mode=mode), a, b)


@pytest.mark.parametrize("p", ORDERS)
def test_gradient_at_equal_rows_is_zero_as_on_cpu(p):
    x = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 0.0, 3.0]], dtype=torch.float64)
    a, b = (x.clone().requires_grad_() for _ in range(2))
    assert_matches_cpu(lambda a, b: torch.cdist(a, b, p), a, b)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_pdist_matches_cpu(p, n):
    # CPU's own backward of no pairs ends the process.
    x = torch.randn(n, 3, dtype=torch.float64, requires_grad=n > 1)
    assert_matches_cpu(lambda x: torch.nn.functional.pdist(x, p), x)


@pytest.mark.parametrize("p", [0.5, 1, 2, torch.inf])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_renorm_matches_cpu(p, dim, dtype):
    assert_matches_cpu(lambda x: torch.renorm(x, p, dim, 2.0), torch.randn(3, 4, 5, dtype=dtype))


def test_norm_limits_share_one_program():
    x = torch.randn(3, 4, device="tpu")
    x.renorm(2, 0, 1.0)
    with count_compiles() as compiled:
        x.renorm(2, 0, 0.5)
    assert compiled == []


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.cdist(torch.ones(2, 3, device=d), torch.ones(2, 4, device=d)),
        lambda d: torch.cdist(torch.ones(2, 3, device=d), torch.ones(2, 3, device=d), p=-1),
        lambda d: torch.renorm(torch.ones(3, device=d), 2, 0, 1),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)
