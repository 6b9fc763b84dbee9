# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools

import numpy
import pytest
import scipy.special
import torch
from torch import special
from torch.testing import assert_close

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

nan, inf = torch.nan, torch.inf
POINTS = [*torch.linspace(-12, 12, 241).tolist(), 1e-5, 30.0, -30.0, 80.0, 1000.0]
# Ours and scipy's of the same name. PyTorch's CPU kernels are no reference in float64:
# bessel_j0(5.1) is 3e-7 off there.
REAL_LINE = {
    "i0": (special.i0, scipy.special.i0),
    "i0e": (special.i0e, scipy.special.i0e),
    "i1": (special.i1, scipy.special.i1),
    "i1e": (special.i1e, scipy.special.i1e),
    "bessel_j0": (special.bessel_j0, scipy.special.j0),
    "bessel_j1": (special.bessel_j1, scipy.special.j1),
    "bessel_y0": (special.bessel_y0, scipy.special.y0),
    "bessel_y1": (special.bessel_y1, scipy.special.y1),
    "modified_bessel_i0": (special.modified_bessel_i0, scipy.special.i0),
    "modified_bessel_k0": (special.modified_bessel_k0, scipy.special.k0),
    "modified_bessel_k1": (special.modified_bessel_k1, scipy.special.k1),
    "scaled_modified_bessel_k0": (special.scaled_modified_bessel_k0, scipy.special.k0e),
    "scaled_modified_bessel_k1": (special.scaled_modified_bessel_k1, scipy.special.k1e),
    "spherical_bessel_j0": (
        special.spherical_bessel_j0,
        lambda x: scipy.special.spherical_jn(0, x),
    ),
    "airy_ai": (special.airy_ai, lambda x: scipy.special.airy(x)[0]),
    "erfcx": (special.erfcx, scipy.special.erfcx),
    "log_ndtr": (special.log_ndtr, scipy.special.log_ndtr),
    "entr": (special.entr, scipy.special.entr),
    "sinc": (torch.sinc, numpy.sinc),
    "lgamma": (torch.lgamma, scipy.special.gammaln),
    "digamma": (torch.digamma, scipy.special.psi),
}
# The functions with poles that f32 cannot come near.
AT_POLES = ("lgamma", "digamma")


# Near a zero a series has only absolute precision: hence atol.
@pytest.mark.parametrize("name", REAL_LINE)
@pytest.mark.parametrize(
    "dtype, rtol, atol", [(torch.float64, 1e-11, 1e-13), (torch.float32, 1e-5, 1e-5)]
)
def test_function_on_the_real_line_matches_scipy(name, dtype, rtol, atol):
    f, reference = REAL_LINE[name]
    points = [x for x in POINTS if name not in AT_POLES or x > 0 or abs(x - round(x)) > 0.2]
    x = torch.tensor(points, dtype=dtype)
    want = torch.from_numpy(numpy.asarray(reference(x.double().numpy()))).to(dtype)
    assert_close(f(x.to("tpu")).cpu(), want, rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.parametrize("name", REAL_LINE)
def test_function_of_nan_and_zeros_matches_cpu(name):
    assert_matches_cpu(REAL_LINE[name][0], torch.tensor([nan, 0.0, -0.0], dtype=torch.float64))


def test_limits_at_infinity_are_reached():
    x = torch.tensor([inf], dtype=torch.float64, device="tpu")
    zero = (
        *(special.bessel_j0, special.bessel_j1, special.bessel_y0, special.bessel_y1),
        *(special.i0e, special.i1e, special.modified_bessel_k0),
        *(special.airy_ai, special.erfcx, special.spherical_bessel_j0),
    )
    assert [f(x).item() for f in zero] == [0.0] * len(zero)
    assert special.i0(x).item() == special.i1(x).item() == -special.i1(-x).item() == inf


def test_quantiles_match_cpu():
    p = torch.tensor(
        [0.0, 1e-300, 1e-20, 1e-5, 0.01, 0.3, 0.5, 0.7, 0.999, 1.0, -0.1, 1.1, nan],
        dtype=torch.float64,
    )
    assert_matches_cpu(special.ndtri, p, rtol=1e-11, atol=1e-13)
    assert_matches_cpu(torch.erfinv, torch.tensor([-1.0, -0.9, 0.0, 0.5, 1.0, 2.0, nan]))


@pytest.mark.parametrize(
    "f, reference",
    [(torch.igamma, scipy.special.gammainc), (torch.igammac, scipy.special.gammaincc)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_incomplete_gamma_matches_scipy(f, reference, dtype):
    values = [0.1, 0.9, 1.0, 2.5, 7.0, 30.0, 150.0]
    a, x = (
        torch.tensor(v, dtype=dtype) for v in zip(*itertools.product(values, values), strict=True)
    )
    want = torch.from_numpy(reference(a.double().numpy(), x.double().numpy())).to(dtype)
    assert_close(
        f(a.to("tpu"), x.to("tpu")).cpu(),
        want,
        rtol=1e-11 if dtype is torch.float64 else 1.3e-6,
        atol=0,
    )


@pytest.mark.parametrize("f", [torch.igamma, torch.igammac])
def test_incomplete_gamma_at_its_edges_matches_cpu(f):
    values = [0.0, 2.0, inf, -1.0]
    a, x = zip(*itertools.product(values, values), strict=True)
    assert_matches_cpu(f, torch.tensor(a), torch.tensor(x))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_polygamma_matches_scipy_and_cpu(n):
    x = torch.tensor([0.1, 0.5, 1.0, 3.7, 50.0], dtype=torch.float64)
    want = torch.from_numpy(scipy.special.polygamma(n, x.numpy()))
    assert_close(torch.polygamma(n, x.to("tpu")).cpu(), want, rtol=1e-11, atol=0)
    # Below 0 scipy has no derivatives; the CPU's trigamma keeps 9 digits.
    x = torch.tensor([-0.3, -8.4783], dtype=torch.float64)
    assert_matches_cpu(lambda x: torch.polygamma(n, x), x, rtol=1e-8, atol=0)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_mvlgamma_matches_scipy_and_its_gradient_cpu(p):
    x = torch.tensor([2.1, 3.0, 7.5, 1000.0], dtype=torch.float64)
    want = torch.from_numpy(scipy.special.multigammaln(x.numpy(), p))
    assert_close(torch.mvlgamma(x.to("tpu"), p).cpu(), want, rtol=1e-12, atol=1e-12)
    assert_matches_cpu(lambda x: x.mvlgamma(p), x.requires_grad_())


@pytest.mark.parametrize("p", [1, 2, 3])
def test_mvlgamma_at_poles_nan_and_infinities_matches_cpu(p):
    x = torch.tensor([-3.5, -1.0, 0.0, 0.5, 1.0, 1.5, inf, -inf, nan], dtype=torch.float64)
    assert_matches_cpu(lambda x: torch.mvlgamma(x, p), x)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_mvlgamma_of_integers_is_in_the_default_dtype(dtype):
    assert_matches_cpu(lambda x: torch.mvlgamma(x, 3), torch.tensor([3, 5, 9], dtype=dtype))


# The CPU rounds after each of the steps.
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mvlgamma_of_16_bit_floats_rounds_once(dtype):
    x = torch.tensor([3.0, 5.0, 9.0], dtype=dtype)
    assert_matches_cpu(lambda x: torch.mvlgamma(x, 3), x, reference=torch.float64)


def test_mvlgamma_of_views_and_in_place_matches_cpu():
    x = torch.rand(3, 4) + 3
    assert_matches_cpu(
        lambda x: (
            x.t().mvlgamma(2),
            x[:, 1::2].mvlgamma(2),
            x[0, 0].mvlgamma(2),
            x[:0].mvlgamma(2),
            x.clone()[:, 1].mvlgamma_(3),
        ),
        x,
    )


def test_mvlgamma_is_one_program():
    x = torch.rand(7, 3, device="tpu") + 3
    with count_compiles() as compiled:
        x.mvlgamma(4)
    assert compiled == ["aten::mvlgamma"]


def test_zeta_matches_cpu():
    s, q = zip(
        *itertools.product([1.0, 1.5, 2.0, 3.0, 7.0, 0.5], [0.1, 1.0, 2.5, 10.0, 0.0, -1.0, -2.5]),
        strict=True,
    )
    assert_matches_cpu(
        special.zeta,
        torch.tensor(s, dtype=torch.float64),
        torch.tensor(q, dtype=torch.float64),
        rtol=1e-11,
        atol=1e-13,
    )
    assert_matches_cpu(lambda q: special.zeta(2, q), torch.tensor([1.0, 2.0]))


POLYNOMIALS = [f"{s}chebyshev_polynomial_{k}" for s in ("", "shifted_") for k in "tuvw"] + [
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomial_matches_cpu(name):
    x, n = zip(
        *itertools.product([-3.0, -1.0, -0.4, 0.0, 0.7, 1.0, 2.0], [-1, 0, 1, 2, 5, 8, 9, 20]),
        strict=True,
    )
    f = getattr(special, name)
    assert_matches_cpu(
        f,
        torch.tensor(x, dtype=torch.float64),
        torch.tensor(n, dtype=torch.float64),
        rtol=1e-10,
        atol=1e-10,
    )


def test_polynomial_of_a_number_matches_cpu():
    x = torch.tensor([0.3, -2.0])
    assert_matches_cpu(
        lambda x: (
            special.legendre_polynomial_p(x, 4),
            special.chebyshev_polynomial_t(0.5, x.abs()),
        ),
        x,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nextafter_matches_cpu(dtype):
    a, b = zip(
        *itertools.product([0.0, -0.0, 1.0, -1.0, inf, nan, 1e-45], [0.0, 2.0, -inf, nan]),
        strict=True,
    )
    assert_matches_cpu(
        torch.nextafter, torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype), rtol=0, atol=0
    )


def test_xlog1py_matches_cpu():
    x, y = zip(
        *itertools.product([0.0, 1.0, -2.0, nan, inf], [-1.0, 0.0, 1e-9, nan, inf]), strict=True
    )
    assert_matches_cpu(special.xlog1py, torch.tensor(x), torch.tensor(y))


def test_gradients_match_cpu():
    x = torch.rand(5, dtype=torch.float64).add(0.5).requires_grad_()
    for f in (
        special.i0e,
        special.i1,
        torch.lgamma,
        torch.digamma,
        torch.erfinv,
        special.log_ndtr,
        special.entr,
    ):
        y = (x.detach() / 2).requires_grad_() if f is torch.erfinv else x
        assert_matches_cpu(f, y)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_empty_and_rank_0_match_cpu(shape):
    x = torch.ones(shape)
    assert_matches_cpu(
        lambda x: (
            special.i0(x),
            torch.igamma(x, x),
            special.legendre_polynomial_p(x, x),
            torch.polygamma(2, x),
        ),
        x,
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.lgamma(torch.ones(2, dtype=torch.complex64, device=d)),
        lambda d: torch.digamma(torch.ones(2, dtype=torch.complex64, device=d)),
        lambda d: torch.erfinv(torch.ones(2, dtype=torch.complex64, device=d)),
        lambda d: torch.igamma(*torch.ones(2, 2, dtype=torch.int64, device=d)),
        lambda d: torch.nextafter(*torch.ones(2, 2, dtype=torch.int64, device=d)),
        lambda d: torch.polygamma(-1, torch.ones(2, device=d)),
        lambda d: torch.mvlgamma(torch.ones(2, device=d), 0),
        lambda d: torch.mvlgamma(torch.ones(2, device=d), -1),
        lambda d: torch.mvlgamma(torch.ones(2, dtype=torch.bool, device=d), 2),
        lambda d: torch.mvlgamma(torch.ones(2, dtype=torch.complex64, device=d), 2),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)
