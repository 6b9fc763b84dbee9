# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close, make_tensor

from torch_tpu.testing import assert_same_error, count_compiles

DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.float64,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
]
nan, inf = torch.nan, torch.inf


def assert_same_on_both(make, **tolerance):
    got, want = make("tpu"), make("cpu")
    assert got.device.type == "tpu"
    assert_close(got.cpu(), want, equal_nan=True, **tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_constants_match_cpu(dtype, shape):
    for f in (torch.zeros, torch.ones):
        assert_same_on_both(lambda d, f=f: f(shape, dtype=dtype, device=d))
    assert_same_on_both(lambda d: torch.full(shape, 1, dtype=dtype, device=d))

    def like(d):
        return torch.empty(shape, dtype=dtype, device=d)

    assert_same_on_both(lambda d: torch.full_like(like(d), 1))
    assert_same_on_both(lambda d: torch.ones_like(like(d)))
    assert_same_on_both(lambda d: like(d).new_zeros(4, 1))
    assert_same_on_both(lambda d: like(d).new_full((2,), True))


@pytest.mark.parametrize("value", [2, 2.5, True, 1j, -inf])
def test_full_takes_its_dtype_from_the_value(value):
    assert_same_on_both(lambda d: torch.full((2,), value, device=d))
    assert_same_on_both(lambda d: torch.scalar_tensor(value, device=d, dtype=torch.complex64))


def test_fill_values_share_one_program():
    x = torch.empty(3, device="tpu")
    x.fill_(1.0), torch.full((3,), 1.0, device="tpu")
    with count_compiles() as compiled:
        x.fill_(2.5), torch.full((3,), 7.0, device="tpu")
    assert compiled == []


RANGES = [
    (5,),
    (0,),
    (2, 9),
    (2, 9, 3),
    (9, 2, -2),
    (0, 1, 0.1),
    (5.0,),
    (1, 2.5, 0.5),
    (-3, 3),
    (2, 2),
]


@pytest.mark.parametrize("bounds", RANGES)
@pytest.mark.parametrize(
    "dtype", [None, torch.int64, torch.int32, torch.float32, torch.float64, torch.bfloat16]
)
def test_arange_matches_cpu(bounds, dtype):
    if dtype in (torch.int64, torch.int32) and isinstance(bounds[-1], float) and len(bounds) == 3:
        pytest.skip("the step would be 0")
    assert_same_on_both(lambda d: torch.arange(*bounds, dtype=dtype, device=d))


def test_a_range_that_moves_on_is_one_program():
    torch.arange(0, 4, device="tpu")
    with count_compiles() as compiled:
        for start in range(1, 5):
            assert torch.arange(start, start + 4, device="tpu").tolist() == list(
                range(start, start + 4)
            )
    assert compiled == []


def test_arange_of_large_integers_is_exact():
    assert_same_on_both(lambda d: torch.arange(2**53, 2**53 + 5, device=d))


@pytest.mark.parametrize("f", [torch.linspace, torch.logspace])
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 50])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.complex64])
def test_spaced_values_match_cpu(f, steps, dtype):
    end = 2 if f is torch.logspace else 10
    assert_same_on_both(
        lambda d: f(-1 if dtype.is_floating_point else 0, end, steps, dtype=dtype, device=d)
    )


def test_linspace_reaches_both_ends_exactly():
    x = torch.linspace(0.1, 0.7, 1001, device="tpu")
    assert x[0].item() == torch.tensor(0.1).item() and x[-1].item() == torch.tensor(0.7).item()


@pytest.mark.parametrize("n, m", [(3, 3), (2, 5), (5, 2), (0, 3), (1, 1)])
def test_eye_and_triangles_indices_match_cpu(n, m):
    assert_same_on_both(lambda d: torch.eye(n, m, device=d))
    for offset in (-2, 0, 1, 9):
        assert_same_on_both(lambda d, k=offset: torch.tril_indices(n, m, k, device=d))
        assert_same_on_both(
            lambda d, k=offset: torch.triu_indices(n, m, k, device=d, dtype=torch.int32)
        )


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_conversion_matches_cpu(source, target):
    if source.is_complex and not target.is_complex:
        pytest.skip("the CPU warns and drops the imaginary part, as complex.py's tests say")
    low = -9 if source.is_signed else 0
    x = make_tensor((3, 4), dtype=source, device="cpu", low=low, high=9)
    assert_close(x.to("tpu").to(target).cpu(), x.to(target))
    y = torch.zeros(3, 4, dtype=target)
    assert_close(y.to("tpu").copy_(x.to("tpu")).cpu(), y.copy_(x))


def test_negative_floats_wrap_into_small_integers_as_on_cpu():
    x = torch.tensor([-1.0, -1.9, 255.9, 100.0])
    for dtype in (torch.uint8, torch.int16):
        assert torch.equal(x.to("tpu").to(dtype).cpu(), x.to(dtype))


def test_clones_do_not_share():
    x = torch.randn(3, device="tpu")
    y = x.clone()
    y.zero_()
    assert x.abs().sum().item() > 0 and y.abs().sum().item() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.zeros(-1, device=d),
        lambda d: torch.arange(0, 5, 0, device=d),
        lambda d: torch.arange(5, 0, device=d),
        lambda d: torch.linspace(0, 1, -1, device=d),
        lambda d: torch.eye(-1, device=d),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)
