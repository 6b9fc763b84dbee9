# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools

import pytest
import torch

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

LOGIC = [torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor]
SHIFTS = [torch.bitwise_left_shift, torch.bitwise_right_shift]


def pairs(values, others, dtype):
    a, b = zip(*itertools.product(values, others), strict=True)
    return torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)


@pytest.mark.parametrize("f", LOGIC)
@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8, torch.bool])
def test_logic_matches_cpu(f, dtype):
    values = (
        [True, False]
        if dtype is torch.bool
        else [0, 1, 6, 99] + ([-1, -8] if dtype.is_signed else [])
    )
    assert_matches_cpu(f, *pairs(values, values, dtype))


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.bool])
def test_not_matches_cpu(dtype):
    assert_matches_cpu(torch.bitwise_not, torch.tensor([0, 1, 1, 0], dtype=dtype))


@pytest.mark.parametrize("f", SHIFTS)
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_shifts_out_of_range_match_cpu(f, dtype):
    assert_matches_cpu(
        f, *pairs([-100, -1, 0, 1, 77], [-1, 0, 1, 7, 8, 31, 32, 63, 64, 100], dtype)
    )


@pytest.mark.parametrize("f", SHIFTS)
def test_shifts_of_uint8_match_cpu(f):
    assert_matches_cpu(f, *pairs([0, 1, 200, 255], [0, 1, 7, 8, 9], torch.uint8))


def test_operators_and_numbers_match_cpu():
    x = torch.tensor([1, -2, 300])
    assert_matches_cpu(
        lambda x: (x << 2, x >> 1, x & 6, 6 | x, x ^ 1, 1 << x.abs().clamp(max=5)), x
    )


def test_shift_counts_share_one_program():
    x = torch.tensor([1, 2], device="tpu")
    x << 1
    with count_compiles() as compiled:
        x << 3, x << 70
    assert compiled == []


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.ones(2, device=d) << 1,
        lambda d: torch.ones(2, device=d) & torch.ones(2, device=d),
        lambda d: ~torch.ones(2, device=d),
        lambda d: (
            torch.ones(2, dtype=torch.bool, device=d) << torch.ones(2, dtype=torch.bool, device=d)
        ),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)
