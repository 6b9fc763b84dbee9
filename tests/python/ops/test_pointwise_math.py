# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch.testing import make_tensor

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu

nan, inf = torch.nan, torch.inf
EDGES = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 2.0, 10.0, -20.0, 88.0, 1e-8, 1e30]
UNARY = [
    torch.exp, torch.exp2, torch.expm1, torch.log, torch.log2, torch.log10, torch.log1p, torch.sqrt,
    torch.rsqrt, torch.sigmoid, torch.erf, torch.erfc, torch.sinh, torch.cosh, torch.tanh,
    torch.asin, torch.acos, torch.atan, torch.asinh, torch.acosh, torch.atanh, torch.deg2rad,
    torch.rad2deg,
]  # fmt: skip
PERIODIC = [torch.sin, torch.cos, torch.tan]


@pytest.mark.parametrize("f", UNARY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unary_of_special_values_matches_cpu(f, dtype):
    assert_matches_cpu(f, torch.tensor(EDGES, dtype=dtype))


@pytest.mark.parametrize("f", PERIODIC)
def test_periodic_functions_match_cpu(f):
    assert_matches_cpu(f, torch.tensor([nan, inf, -inf, 0.0, -0.0, 0.5, -3.0, 10.0, 1000.0]))


@pytest.mark.parametrize("f", UNARY + PERIODIC)
def test_integers_and_bool_compute_in_the_default_dtype(f):
    assert_matches_cpu(f, torch.tensor([0, 1, 3]))
    assert_matches_cpu(f, torch.tensor([True, False]))


@pytest.mark.parametrize("f", UNARY + PERIODIC)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_floats_compute_in_f32(f, dtype):
    x = make_tensor((50,), dtype=dtype, device="cpu", low=0.1, high=0.9)
    assert_matches_cpu(f, x, reference=torch.float32)


COMPLEX = [
    f for f in UNARY + PERIODIC if f not in (torch.erf, torch.erfc, torch.deg2rad, torch.rad2deg)
]


@pytest.mark.parametrize("f", COMPLEX)
def test_complex_matches_cpu(f):
    x = make_tensor((20,), dtype=torch.complex64, device="cpu", low=-1, high=1)
    assert_matches_cpu(f, x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("f", UNARY + PERIODIC)
def test_gradients_match_cpu(f):
    low = 1.1 if f is torch.acosh else 0.1
    x = make_tensor(
        (4, 5), dtype=torch.float64, device="cpu", low=low, high=low + 0.8, requires_grad=True
    )
    assert_matches_cpu(f, x)


@pytest.mark.parametrize(
    "f", [torch.atan2, torch.xlogy, torch.logaddexp, torch.logaddexp2, torch.hypot]
)
def test_binary_of_special_values_matches_cpu(f):
    a, b = zip(*itertools.product(EDGES, EDGES), strict=True)
    assert_matches_cpu(f, torch.tensor(a), torch.tensor(b))


def test_log2_of_powers_of_two_is_exact():
    x = torch.tensor([2.0**k for k in range(-149, 128)])
    exponents = torch.arange(-126, 128, dtype=torch.float32)
    assert torch.equal(x[23:].to("tpu").log2().cpu(), exponents)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_frexp_matches_cpu(dtype):
    x = torch.tensor([0.0, -0.0, inf, nan, 3.0, -0.75, 1e30, math.ldexp(1.0, -120)], dtype=dtype)
    assert_matches_cpu(lambda x: tuple(torch.frexp(x)), x)


def test_ldexp_and_xlogy_with_numbers_match_cpu():
    x = torch.tensor([0.0, 1.0, 2.5])
    assert_matches_cpu(
        lambda x: (torch.xlogy(x, 2), torch.xlogy(3, x), torch.ldexp(x, torch.full_like(x, 3))), x
    )


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_empty_and_rank_0_match_cpu(shape):
    assert_matches_cpu(torch.exp, torch.ones(shape))


@pytest.mark.parametrize("f", [torch.erf, torch.erfc])
def test_error_function_of_complex_is_refused_as_on_cpu(f):
    assert_same_error(lambda d: f(torch.ones(2, dtype=torch.complex64, device=d)))


def test_hypot_of_integers_is_refused_as_on_cpu():
    assert_same_error(lambda d: torch.hypot(*torch.ones(2, 2, dtype=torch.int64, device=d)))
