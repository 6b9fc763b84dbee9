# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close, make_tensor

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

SIZES = [(3, 4, 5), (1, 1, 1), (127, 128, 129), (0, 3, 2), (2, 0, 3), (2, 3, 0)]


def tensor(*shape, dtype=torch.float32, grad=False):
    return make_tensor(shape, dtype=dtype, device="cpu", low=-2, high=2, requires_grad=grad)


@pytest.mark.parametrize("n, k, m", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_mm_matches_cpu(n, k, m, dtype):
    assert_matches_cpu(
        torch.mm, tensor(n, k, dtype=dtype, grad=True), tensor(k, m, dtype=dtype, grad=True)
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_mm_of_integers_wraps_as_on_cpu(dtype):
    a, b = (make_tensor((5, 5), dtype=dtype, device="cpu") for _ in range(2))
    assert_matches_cpu(torch.mm, a, b)


def test_products_of_int64_are_exact():
    def r(*shape):
        return torch.randint(-(2**62), 2**62, shape)

    assert_matches_cpu(torch.mm, r(3, 0), r(0, 5))
    assert_matches_cpu(torch.mv, r(3, 4), r(4))
    assert_matches_cpu(torch.dot, r(4), r(4))
    assert_matches_cpu(torch.bmm, r(2, 3, 4), r(2, 4, 5))
    assert_matches_cpu(torch.addmm, r(5), r(3, 4), r(4, 5))
    assert_matches_cpu(torch.addbmm, r(3, 5), r(2, 3, 4), r(2, 4, 5))
    assert_matches_cpu(torch.matmul, r(2, 1, 3, 4), r(5, 4, 2))
    assert_matches_cpu(lambda a, b: torch.einsum("abc,cbd->ad", a, b), r(2, 3, 4), r(4, 3, 5))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mm_of_16_bit_floats_rounds_once(dtype):
    a, b = tensor(9, 300, dtype=dtype), tensor(300, 7, dtype=dtype)
    assert_matches_cpu(torch.mm, a, b, reference=torch.float32, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_of_views_match_cpu(dtype):
    base = tensor(6, 8, dtype=dtype)
    assert_matches_cpu(lambda x: x.t() @ x[:, 1:5], base)
    assert_matches_cpu(lambda x: x[::2] @ x[::2].t(), base)
    assert_matches_cpu(lambda x: x[1] @ x[2], base)
    assert_matches_cpu(lambda x: x[:, :1].expand(6, 4) @ x[:4], base)


@pytest.mark.parametrize(
    "shapes", [((2, 3, 4), (2, 4, 5)), ((0, 3, 4), (0, 4, 5)), ((2, 3, 0), (2, 0, 5))]
)
def test_bmm_matches_cpu(shapes):
    assert_matches_cpu(torch.bmm, *(tensor(*s, grad=True) for s in shapes))


@pytest.mark.parametrize("bias", [(3, 5), (5,), (1, 5), (3, 1), ()])
def test_addmm_broadcasts_its_input(bias):
    args = tensor(*bias, grad=True), tensor(3, 4, grad=True), tensor(4, 5, grad=True)
    assert_matches_cpu(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=-2), *args)


@pytest.mark.parametrize(
    "call, shapes",
    [
        (torch.addmm, [(3, 5), (3, 4), (4, 5)]),
        (torch.baddbmm, [(2, 3, 5), (2, 3, 4), (2, 4, 5)]),
        (torch.addbmm, [(3, 5), (2, 3, 4), (2, 4, 5)]),
        (torch.addmv, [(3,), (3, 4), (4,)]),
    ],
)
def test_input_is_ignored_when_beta_is_zero(call, shapes):
    nan, a, b = torch.full(shapes[0], torch.nan), *(tensor(*s) for s in shapes[1:])
    assert_matches_cpu(lambda *args: call(*args, beta=0, alpha=0.5), nan, a, b)
    assert_matches_cpu(lambda *args: call(*args, beta=1.5), tensor(*shapes[0]), a, b)


def test_addmm_of_integers_takes_integer_factors():
    c, a, b = (make_tensor((3, 3), dtype=torch.int64, device="cpu") for _ in range(3))
    assert_matches_cpu(lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3), c, a, b)


def test_addmm_betas_share_one_program():
    c, a, b = (torch.randn(4, 4, device="tpu") for _ in range(3))
    torch.addmm(c, a, b, beta=2.0, alpha=3.0)
    with count_compiles() as compiled:
        torch.addmm(c, a, b, beta=0.0, alpha=-1.0)
    assert compiled == []


def test_addmm_in_place_and_out_match_cpu():
    c, a, b = tensor(3, 5), tensor(3, 4), tensor(4, 5)
    assert_matches_cpu(lambda c, a, b: c.clone().addmm_(a, b, beta=2), c, a, b)
    out = torch.empty(3, 5, device="tpu")
    torch.mm(a.to("tpu"), b.to("tpu"), out=out)
    assert_close(out.cpu(), a @ b)


def test_vdot_conjugates_its_first_argument():
    a, b = tensor(5, dtype=torch.complex64), tensor(5, dtype=torch.complex64)
    assert_matches_cpu(torch.vdot, a, b)
    assert_matches_cpu(lambda a, b: torch.vdot(a.conj(), b), a, b)
    assert_matches_cpu(torch.dot, a, b)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (4,), (0, 4)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_matches_cpu(shape, with_bias):
    bias = tensor(5, grad=True) if with_bias else None
    args = tensor(*shape, grad=True), tensor(5, 4, grad=True), bias
    assert_matches_cpu(torch.nn.functional.linear, *args)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.mm(torch.ones(3, 4, device=d), torch.ones(5, 4, device=d)),
        lambda d: torch.addmm(*(torch.ones(3, n, device=d) for n in (5, 4, 5))),
        lambda d: torch.bmm(torch.ones(2, 3, 4, device=d), torch.ones(3, 4, 5, device=d)),
        lambda d: torch.mm(
            torch.ones(2, 2, device=d), torch.ones(2, 2, device=d, dtype=torch.float64)
        ),
        lambda d: torch.mm(*(torch.ones(2, 2, device=d, dtype=torch.bool) for _ in range(2))),
        lambda d: torch.bmm(*(torch.ones(2, 2, 2, device=d, dtype=torch.bool) for _ in range(2))),
        lambda d: torch.dot(torch.ones(2, device=d), torch.ones(2, device=d, dtype=torch.float64)),
        lambda d: torch.dot(torch.ones(2, device=d), torch.ones(3, device=d)),
        lambda d: torch.dot(torch.ones(2, device=d), torch.ones(2, 2, device=d)),
        lambda d: torch.mv(torch.ones(2, 3, device=d), torch.ones(2, device=d)),
        lambda d: torch.nn.functional.linear(
            torch.ones(1, 2, device=d), torch.ones(3, 4, device=d)
        ),
        lambda d: torch.addmm(*(torch.ones(2, 2, device=d) for _ in range(3)), beta=1j),
    ],
)
def test_errors_read_as_on_cpu(call):
    assert_same_error(call)
