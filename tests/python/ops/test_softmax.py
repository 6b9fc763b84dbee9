# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import make_tensor

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu

CASES = [((), 0), ((0,), 0), ((5,), -1), ((2, 3, 4), 1), ((3, 0), 1), ((0, 3), 1), ((4, 129), -1)]
FUNCTIONS = [torch.softmax, torch.log_softmax]


@pytest.mark.parametrize("shape, dim", CASES)
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_softmax_matches_cpu(shape, dim, f, dtype):
    x = make_tensor(shape, dtype=dtype, device="cpu", low=-30, high=30, requires_grad=True)
    assert_matches_cpu(lambda x: f(x, dim), x)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_softmax_of_16_bit_floats_sums_in_f32(f, dtype):
    x = make_tensor((3, 1000), dtype=dtype, device="cpu", low=-3, high=3, requires_grad=True)
    # The gradient is formed from the rounded output, as on CPU: a rounding of it more than the
    # reference has.
    tolerance = (
        {"rtol": 2e-2, "atol": 4e-3} if dtype == torch.bfloat16 else {"rtol": 2e-3, "atol": 5e-4}
    )
    assert_matches_cpu(lambda x: f(x, -1), x, reference=torch.float32, **tolerance)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_softmax_of_bf16_into_f32_rounds_nothing(f):
    x = make_tensor((3, 40), dtype=torch.bfloat16, device="cpu", low=-3, high=3, requires_grad=True)
    assert_matches_cpu(lambda x: f(x, -1, dtype=torch.float32), x)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
def test_softmax_of_special_values_matches_cpu(f, special):
    x = torch.tensor([[1.0, special, 2.0], [special] * 3, [1.0, 2.0, 3.0]])
    assert_matches_cpu(lambda x: f(x, 1), x)


# The largest element of a row is found without a care for NaN, which the sum brings back.
@pytest.mark.parametrize("f", [*FUNCTIONS, torch.logsumexp])
@pytest.mark.parametrize("n", [7, 48, 768])
def test_nan_anywhere_in_a_row_is_the_whole_row(f, n):
    x = make_tensor((6, n), dtype=torch.float32, device="cpu", low=-3, high=3)
    for row, at in enumerate([0, n // 2, n - 1]):
        x[row, at] = torch.nan
    x[3, ::2], x[4, 1], x[4, 2] = torch.nan, torch.nan, torch.inf
    assert_matches_cpu(lambda x: f(x, 1), x)
    assert_matches_cpu(lambda x: f(x.t(), 0), x)


def test_softmax_of_large_values_does_not_overflow():
    x = torch.tensor([[1e4, 1e4 - 1, 0.0]])
    for f in FUNCTIONS:
        assert_matches_cpu(lambda x, f=f: f(x, 1), x)


def test_softmax_of_a_transposed_view_matches_cpu():
    x = make_tensor((3, 4, 5), dtype=torch.float32, device="cpu", requires_grad=True)
    assert_matches_cpu(lambda x: x.transpose(0, 2)[1:].softmax(1), x)


def test_safe_softmax_gives_zeros_for_a_masked_row():
    x = torch.tensor([[1.0, -torch.inf], [-torch.inf, -torch.inf]])
    assert_matches_cpu(lambda x: torch.ops.aten._safe_softmax(x, -1), x)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("dim", [0, 1, 5])
def test_softmax_refuses_what_cpu_refuses(f, dim):
    dtype = torch.int64 if dim < 2 else torch.float32
    assert_same_error(lambda d: f(torch.ones(3, 3, device=d, dtype=dtype), dim))
