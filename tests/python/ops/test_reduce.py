# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close, make_tensor

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

nan, inf = torch.nan, torch.inf
DTYPES = [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool]
DIMS = [None, 0, 1, -1, (0, 2), (2, 0), []]


@pytest.mark.parametrize("f", [torch.sum, torch.nansum, torch.amax, torch.amin])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reduction_of_dims_matches_cpu(f, dim, keepdim):
    if dim is None and f in (torch.amax, torch.amin):
        dim = ()
    if dim == [] and f is torch.nansum:
        pytest.skip("PyTorch's meta function takes [] for no dims, its CPU kernel for all")
    x = torch.randn(2, 3, 4, requires_grad=True)
    assert_matches_cpu(lambda x: f(x, dim=dim, keepdim=keepdim), x)


# Rows long enough for lanes (csrc/hlo/reduce.cpp), which divide some of them and not others.
@pytest.mark.parametrize("n", [31, 32, 33, 127, 128, 300, 1001, 2048])
@pytest.mark.parametrize("dim", [(-1,), (1, 2), (0, 1, 2), (0, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_long_row_matches_cpu_and_keeps_nan(n, dim, keepdim):
    x = torch.randn(2, 3, n)
    x[0, 1, -1], x[1, 2, 0], x[1, 0, n // 2] = nan, inf, -inf
    for f in (torch.amax, torch.amin, torch.sum):
        assert_matches_cpu(lambda x, f=f: f(x, dim=dim, keepdim=keepdim), x)
    assert_matches_cpu(lambda x: x.softmax(-1), x)


@pytest.mark.parametrize(
    "f", [torch.mean, torch.var, torch.std, torch.logsumexp, torch.linalg.vector_norm]
)
@pytest.mark.parametrize("dim", [0, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_statistic_of_dims_matches_cpu(f, dim, keepdim):
    x = torch.randn(2, 3, 4, requires_grad=True)
    assert_matches_cpu(lambda x: f(x, dim=dim, keepdim=keepdim), x)


@pytest.mark.parametrize(
    "f",
    [
        torch.sum,
        torch.prod,
        torch.amax,
        torch.amin,
        torch.any,
        torch.all,
        torch.count_nonzero,
        torch.max,
        torch.min,
        torch.aminmax,
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_reduction_has_cpus_dtype_and_value(f, dtype):
    x = make_tensor((3, 4), dtype=dtype, device="cpu", low=0, high=3)
    assert_matches_cpu(f, x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "f", [torch.sum, torch.mean, torch.var, torch.std, torch.prod, torch.linalg.vector_norm]
)
def test_16_bit_floats_accumulate_in_f32(f, dtype):
    x = make_tensor((1000,), dtype=dtype, device="cpu", low=0.9, high=1.1)
    assert_matches_cpu(f, x, reference=torch.float32)


def test_long_sum_keeps_its_precision():
    x = torch.rand(3_000_001)
    assert_close(x.to("tpu").sum().item(), x.double().sum().item(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("f", [torch.sum, torch.mean, torch.prod, torch.nansum])
@pytest.mark.parametrize(
    "source, dtype",
    [
        (torch.float32, torch.float64),
        (torch.int32, torch.float32),
        (torch.bool, torch.int32),
        (torch.float32, torch.bfloat16),
    ],
)
def test_dtype_argument_matches_cpu(f, source, dtype):
    if f is torch.mean and not dtype.is_floating_point:
        pytest.skip("mean gives floating types only")
    x = make_tensor((3, 4), dtype=source, device="cpu", low=0, high=2)
    assert_matches_cpu(
        lambda x: f(x, dim=1, dtype=dtype) if f is not torch.prod else f(x, 1, dtype=dtype), x
    )


@pytest.mark.parametrize(
    "f, identity", [(torch.sum, 0), (torch.prod, 1), (torch.any, 0), (torch.all, 1)]
)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_reduction_gives_the_identity(f, identity, shape):
    x = torch.empty(shape)
    assert f(x.to("tpu")).item() == identity
    assert_matches_cpu(lambda x: f(x, 0), x) if shape != (2, 0) else None


def test_mean_and_variance_of_too_few_are_nan():
    assert_matches_cpu(lambda x: (x.mean(), x.var(), x.std(), x.logsumexp(0)), torch.empty(0))
    assert_matches_cpu(
        lambda x: (x.var(), x.var(correction=0), x.var(correction=3)), torch.tensor([2.0])
    )


@pytest.mark.parametrize("correction", [0, 1, 2, 0.5])
@pytest.mark.parametrize("f", [torch.var, torch.std, torch.var_mean, torch.std_mean])
def test_corrections_match_cpu(f, correction):
    assert_matches_cpu(
        lambda x: f(x, dim=1, correction=correction), torch.randn(3, 5, requires_grad=True)
    )


def test_corrections_share_one_program():
    x = torch.randn(3, 5, device="tpu")
    x.var(dim=1, correction=1)
    with count_compiles() as compiled:
        x.var(dim=1, correction=0)
    assert compiled == []


def test_variance_far_from_zero_does_not_cancel():
    x = torch.randn(1000) + 1e4
    assert_close(x.to("tpu").var().cpu(), x.double().var().float(), rtol=1e-4, atol=0)


def test_variance_of_complex_is_real():
    z = make_tensor((3, 5), dtype=torch.complex64, device="cpu", requires_grad=True)
    assert_matches_cpu(lambda z: (torch.var(z, 1), torch.std(z)), z)


@pytest.mark.parametrize(
    "f", [torch.max, torch.min, torch.argmax, torch.argmin, torch.amax, torch.amin, torch.aminmax]
)
@pytest.mark.parametrize(
    "values", [[1.0, nan, 3.0, nan], [-inf, -inf], [inf, nan], [2.0, 3.0, 3.0, 2.0], [0.0, -0.0]]
)
def test_nan_wins_and_the_first_of_equals_is_the_index(f, values):
    x = torch.tensor([values, values[::-1]])
    assert_matches_cpu(
        lambda x: tuple(f(x, dim=1)) if f in (torch.max, torch.min, torch.aminmax) else f(x, dim=1),
        x,
    )


@pytest.mark.parametrize("f", [torch.max, torch.min])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.bfloat16])
@pytest.mark.parametrize("dim", [0, -1])
def test_extreme_with_index_matches_cpu(f, dtype, dim):
    x = make_tensor((4, 7), dtype=dtype, device="cpu", low=0, high=3)
    assert_matches_cpu(lambda x: tuple(f(x, dim, keepdim=True)), x)


def test_gradient_of_an_extreme_goes_to_its_index():
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 1.0]], requires_grad=True)
    assert_matches_cpu(lambda x: (x.max(1).values, x.amax(1), x.max()), x)


@pytest.mark.parametrize("f", [torch.argmax, torch.argmin])
@pytest.mark.parametrize("keepdim", [False, True])
def test_argument_of_the_flat_tensor_matches_cpu(f, keepdim):
    assert_matches_cpu(lambda x: f(x, keepdim=keepdim), torch.randn(3, 4, 5))


@pytest.mark.parametrize("dim", [0, -1])
def test_rank_0_answers_to_dims_0_and_minus_1(dim):
    x = torch.tensor(3.0)
    assert_matches_cpu(
        lambda x: (x.sum(dim), x.amax(dim), *x.max(dim), x.argmin(dim), x.prod(dim), x.any(dim)), x
    )


@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, -1, inf, -inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_norms_match_cpu(p, dtype):
    x = make_tensor((3, 4), dtype=dtype, device="cpu", exclude_zero=True, requires_grad=p != 0)
    assert_matches_cpu(lambda x: (torch.linalg.vector_norm(x, p, dim=1), torch.norm(x, p)), x)


def test_logsumexp_of_infinities_matches_cpu():
    x = torch.tensor([[inf, 1.0], [-inf, -inf], [nan, 1.0], [1e4, 1e4]])
    assert_matches_cpu(lambda x: torch.logsumexp(x, 1), x)
    assert_matches_cpu(lambda x: torch.logsumexp(x, 0), torch.tensor([1, 2]))


@pytest.mark.parametrize("f", [torch.any, torch.all])
@pytest.mark.parametrize("dim", [None, 0, (0, 1), []])
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32, torch.uint8, torch.complex64])
def test_any_and_all_match_cpu(f, dim, dtype):
    x = torch.tensor([[0, 1], [0, 0]], dtype=dtype)
    assert_matches_cpu(lambda x: f(x, dim=dim), x)


def test_nan_counts_as_true():
    x = torch.tensor([nan, 0.0])
    assert_matches_cpu(lambda x: (x.any(), x.all(), torch.count_nonzero(x)), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool])
def test_hash_tensor_matches_cpu(dtype):
    x = make_tensor((3, 4), dtype=dtype, device="cpu")
    assert_matches_cpu(
        lambda x: (
            torch.hash_tensor(x).view(torch.int64),
            torch.hash_tensor(x, 1).view(torch.int64),
        ),
        x,
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.ones(2, dtype=torch.int64, device=d).mean(),
        lambda d: torch.ones(2, dtype=torch.int64, device=d).var(),
        lambda d: torch.ones(2, 3, device=d).sum(2),
        lambda d: torch.ones(2, 3, device=d).sum((0, 0)),
        lambda d: torch.empty(0, device=d).max(),
        lambda d: torch.empty(0, device=d).argmax(),
        lambda d: torch.empty(0, 3, device=d).amax(0),
        lambda d: torch.ones(2, dtype=torch.bool, device=d).argmax(),
        lambda d: torch.ones(2, dtype=torch.complex64, device=d).max(),
        lambda d: torch.ones(2, dtype=torch.complex64, device=d).amax(),
        lambda d: torch.linalg.vector_norm(torch.ones(2, dtype=torch.int64, device=d)),
        lambda d: torch.nansum(torch.ones(2, dtype=torch.complex64, device=d)),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)


powsum = torch.ops.aten.linalg__powsum


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("ord", [0, 1, 2, 2.5, -1, torch.inf, -torch.inf])
@pytest.mark.parametrize("dim, keepdim", [(None, False), ([], True), ([1], False), ([0, -1], True)])
def test_powsum_matches_cpu(dtype, ord, dim, keepdim):
    x = torch.randn(2, 3, 4, dtype=dtype)
    assert_matches_cpu(lambda x: powsum(x, ord, dim, keepdim), x)
    assert_matches_cpu(lambda x: powsum(x.mT[:, 1::2], ord, dim, keepdim), x)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("ord", [0, 2, -1, torch.inf])
def test_powsum_of_rank_0_and_empty_matches_cpu(shape, ord):
    assert_matches_cpu(
        lambda x: (powsum(x, ord), powsum(x, ord, [-1], True)), torch.full(shape, -3.0)
    )


@pytest.mark.parametrize("ord", [0, 1, 2, 3, -1])
def test_powsum_of_nan_inf_and_zero_is_of_each_column(ord):
    x = torch.tensor([[torch.nan, 1, torch.inf, -torch.inf, 0.0], [2, 0, 0, 0, 0]])
    assert_matches_cpu(lambda x: powsum(x, ord, [0]), x)


# The sum is exact in f32 and past 16 bits' range or grid.
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_powsum_of_16_bit_floats_accumulates_in_float32(dtype):
    x = torch.ones(3000, dtype=dtype, device="tpu")
    assert powsum(x, 3).item() == torch.tensor(3000.0, dtype=dtype).item()


def test_powsum_in_another_dtype_matches_cpu():
    x = torch.tensor([3, -5, 9])
    assert_matches_cpu(
        lambda x: (
            powsum(x, 2, dtype=torch.float32),
            powsum(x, 2, dtype=torch.complex64),
            powsum(x.double(), 3, dtype=torch.float32),
            powsum(x.to(torch.complex64), 3, dtype=torch.float64),
        ),
        x,
    )


def test_powsum_of_a_new_order_compiles_nothing():
    x = torch.randn(5, 7, device="tpu")
    powsum(x, 2.5, [1])
    with count_compiles() as compiled:
        for ord in (2.0, 0.5, -1.0, torch.inf):
            powsum(x, ord, [1])
    assert compiled == []


@pytest.mark.parametrize(
    "call",
    [
        lambda d: powsum(torch.ones(3, dtype=torch.int32, device=d), 2),
        lambda d: powsum(torch.ones(3, dtype=torch.bool, device=d), 2),
        lambda d: powsum(torch.ones(3, device=d), 2, dtype=torch.int32),
        lambda d: powsum(torch.ones(3, device=d), 1j),
        lambda d: powsum(torch.ones(3, 2, device=d), 2, [1, -1]),
        lambda d: powsum(torch.ones(3, device=d), 2, [5]),
    ],
)
def test_powsum_refuses_what_cpu_refuses(call):
    assert_same_error(call)
