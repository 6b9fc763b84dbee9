# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools

import pytest
import torch

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

nan, inf = torch.nan, torch.inf
EDGES = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 2.5]
COMPARISONS = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]
PREDICATES = [
    torch.isnan,
    torch.isinf,
    torch.isfinite,
    torch.isposinf,
    torch.isneginf,
    torch.signbit,
]


def pairs(values, dtype):
    a, b = zip(*itertools.product(values, values), strict=True)
    return torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)


@pytest.mark.parametrize(
    "f",
    [
        *COMPARISONS,
        torch.logical_and,
        torch.logical_or,
        torch.logical_xor,
        torch.heaviside,
        torch.copysign,
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_binary_of_special_values_matches_cpu(f, dtype):
    assert_matches_cpu(f, *pairs(EDGES, dtype))


@pytest.mark.parametrize("f", COMPARISONS)
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64])
def test_comparisons_of_integers_match_cpu(f, dtype):
    assert_matches_cpu(f, *pairs([0, 1, 1, 0] if dtype is torch.bool else [0, 1, 200], dtype))


@pytest.mark.parametrize("number", [1, 0.1, True, 2.5])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int32, torch.bool])
def test_comparison_with_a_number_rounds_it_as_cpu_does(number, dtype):
    x = torch.tensor([0, 1, 0.1, 2.5]).to(dtype)
    assert_matches_cpu(lambda x: (x == number, x < number, x >= number), x)


def test_equality_of_complex_matches_cpu():
    z = torch.tensor([1 + 2j, 1 - 2j, complex(nan, 0)])
    assert_matches_cpu(lambda z: (z == z, z != z.conj(), z == 1), z)


@pytest.mark.parametrize("f", PREDICATES)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.bool]
)
def test_predicates_match_cpu(f, dtype):
    x = torch.tensor([*EDGES, -nan] if dtype.is_floating_point else [0, 1, -1], dtype=dtype)
    assert_matches_cpu(f, x)


@pytest.mark.parametrize("f", [torch.isnan, torch.isinf, torch.isfinite])
def test_predicates_of_complex_match_cpu(f):
    assert_matches_cpu(f, torch.tensor([1j, complex(nan, inf), complex(inf, 0), complex(0, nan)]))


@pytest.mark.parametrize(
    "f", [torch.logical_not, lambda x: x.bool(), lambda x: torch.logical_and(x, x[0])]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
def test_truth_of_values_matches_cpu(f, dtype):
    x = torch.tensor([0, 1, 2] if dtype is torch.int64 else [nan, 0.0, -0.0, 2.0], dtype=dtype)
    assert_matches_cpu(f, x)
    assert_matches_cpu(f, torch.tensor([1j, 0j]))


def test_where_promotes_and_broadcasts_as_on_cpu():
    c = torch.tensor([[True], [False]])
    assert_matches_cpu(lambda c: torch.where(c, 1, 2.5), c)
    assert_matches_cpu(torch.where, c, torch.tensor([1, 2]), torch.tensor(0.5))
    assert_matches_cpu(
        torch.where, c, torch.randn(3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    )


def test_where_takes_only_the_chosen_value():
    assert_matches_cpu(lambda x: torch.where(x > 0, x, nan), torch.tensor([1.0, -1.0, nan]))


@pytest.mark.parametrize("value", [2, 2.5, -inf])
def test_masked_fill_matches_cpu(value):
    mask = torch.tensor([True, False, True])
    assert_matches_cpu(
        lambda x, m: x.masked_fill(m, value), torch.randn(2, 3, requires_grad=True), mask
    )
    assert_matches_cpu(lambda x, m: x.clone().masked_fill_(m, value), torch.randn(2, 3), mask)


def test_masked_fill_values_share_one_program():
    x, m = torch.randn(4, device="tpu"), torch.tensor([True, False, True, False], device="tpu")
    x.masked_fill(m, 1.0)
    with count_compiles() as compiled:
        x.masked_fill(m, -inf)
    assert compiled == []


def test_isclose_and_allclose_match_cpu():
    a, b = pairs(EDGES, torch.float32)
    assert_matches_cpu(
        lambda a, b: (torch.isclose(a, b), torch.isclose(a, b, equal_nan=True)), a, b
    )
    assert torch.allclose(a.to("tpu"), a.to("tpu"), equal_nan=True)
    assert not torch.allclose(a.to("tpu"), b.to("tpu"), equal_nan=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.ones(2, dtype=torch.complex64, device=d) < 1,
        lambda d: torch.signbit(torch.ones(2, dtype=torch.complex64, device=d)),
        lambda d: torch.where(torch.ones(2, dtype=torch.int64, device=d), 1, 2),
        lambda d: torch.ones(2, 3, device=d) == torch.ones(4, device=d),
        lambda d: torch.ones(2, device=d).masked_fill(torch.ones(2, device=d), 1),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)


@pytest.mark.filterwarnings("ignore:where received a uint8 condition")
def test_where_takes_a_mask_of_uint8():
    mask = torch.tensor([0, 1, 2], dtype=torch.uint8)
    assert_matches_cpu(torch.where, mask, torch.ones(3), torch.zeros(3))
