# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from torch_tpu.testing.against_cpu import assert_matches_cpu

TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}  # float32 factorizations differ in the order of their sums


def matrix(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def positive(n: int) -> torch.Tensor:
    x = torch.randn(2, n, n)
    return (x @ x.mT + n * torch.eye(n)).requires_grad_()


@pytest.mark.parametrize(
    "f", [torch.linalg.cholesky, torch.linalg.inv, torch.linalg.det, torch.logdet]
)
def test_functions_of_a_positive_matrix_and_gradients_match_cpu(f):
    assert_matches_cpu(f, positive(4), **TOLERANCE)
    assert_matches_cpu(lambda x: f(x.mT), positive(4), **TOLERANCE)


@pytest.mark.parametrize("transposed", [False, True])
def test_solve_and_gradient_match_cpu(transposed):
    def f(a, b):
        return torch.linalg.solve(a.mT if transposed else a, b)

    assert_matches_cpu(f, positive(4), matrix(2, 4, 3), **TOLERANCE)
    assert_matches_cpu(f, positive(4), matrix(2, 4), **TOLERANCE)
    assert_matches_cpu(
        lambda a, b: torch.linalg.solve(a, b, left=False), positive(4), matrix(2, 3, 4), **TOLERANCE
    )


@pytest.mark.parametrize("shape", [(5, 5), (2, 5, 3), (3, 5), (0, 3, 3)])
def test_lu_matches_cpu(shape):
    assert_matches_cpu(lambda x: torch.linalg.lu(x), torch.randn(shape), **TOLERANCE)
    assert_matches_cpu(lambda x: torch.linalg.lu_factor(x), torch.randn(shape), **TOLERANCE)


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_qr_matches_cpu(mode, dtype):
    for shape in ((2, 5, 3), (3, 5)):
        assert_matches_cpu(
            lambda x: torch.linalg.qr(x, mode), torch.randn(shape, dtype=dtype), **TOLERANCE
        )


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 5), (1, 1)])
def test_svd_rebuilds_its_matrix_from_unitary_factors(full, dtype, shape):
    x = torch.randn(shape, dtype=dtype)
    u, s, vh = (t.cpu() for t in torch.linalg.svd(x.to("tpu"), full))
    assert_close(s, torch.linalg.svdvals(x), **TOLERANCE)
    k = s.shape[-1]
    assert_close((u[..., :k] * s[..., None, :].to(dtype)) @ vh[..., :k, :], x, **TOLERANCE)
    for q in (u, vh.mH):
        eye = torch.eye(q.shape[-1], dtype=dtype).expand(*q.shape[:-2], -1, -1)
        assert_close(q.mH @ q, eye, **TOLERANCE)


def test_svd_of_a_singular_matrix_has_orthonormal_vectors():
    u, s, _ = torch.linalg.svd(torch.zeros(2, 3, device="tpu"))
    assert_close(s.cpu(), torch.zeros(2))
    assert_close((u.mT @ u).cpu(), torch.eye(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh_matches_cpu_up_to_the_vectors_phase(dtype, uplo):
    x = torch.randn(2, 5, 5, dtype=dtype)  # only one triangle is read
    w, v = (t.cpu() for t in torch.linalg.eigh(x.to("tpu"), uplo))
    assert_close(w, torch.linalg.eigvalsh(x, uplo), **TOLERANCE)
    half = x.tril(-1) if uplo == "L" else x.triu(1)
    whole = half + half.mH + torch.diag_embed(x.diagonal(dim1=-2, dim2=-1).real).to(dtype)
    assert_close(v @ torch.diag_embed(w).to(dtype) @ v.mH, whole, **TOLERANCE)


def test_matrix_exp_cross_and_triangles_match_cpu():
    assert_matches_cpu(torch.linalg.matrix_exp, torch.randn(3, 4, 4) * 2, **TOLERANCE)
    assert_matches_cpu(torch.linalg.cross, matrix(4, 3), matrix(4, 3))

    def f(a, b):
        return torch.linalg.solve_triangular(a, b, upper=True)

    assert_matches_cpu(f, positive(4), matrix(2, 4, 3), **TOLERANCE)
    assert_matches_cpu(
        torch.cholesky_solve, matrix(4, 3), torch.randn(4, 4).tril() + 4 * torch.eye(4), **TOLERANCE
    )


def test_a_matrix_that_is_not_positive_definite_is_refused():
    with pytest.raises(RuntimeError, match="not positive-definite"):
        torch.linalg.cholesky(-torch.eye(3, device="tpu"))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_transforms_match_cpu(norm):
    x, z = matrix(3, 4, 6), torch.randn(3, 4, 5, dtype=torch.complex64)
    assert_matches_cpu(lambda x: torch.fft.rfft(x, norm=norm), x, **TOLERANCE)
    assert_matches_cpu(lambda x: torch.fft.rfftn(x, norm=norm), x.detach(), **TOLERANCE)
    assert_matches_cpu(lambda z: torch.fft.fft2(z, norm=norm), z, **TOLERANCE)
    assert_matches_cpu(lambda z: torch.fft.ifft(z, dim=0, norm=norm), z, **TOLERANCE)
    for n in (7, 8):
        assert_matches_cpu(lambda z, n=n: torch.fft.irfft(z, n, norm=norm), z, **TOLERANCE)


def test_lu_unpack_shares_pivots_among_the_matrices_of_a_batch():  # CPU reads past their end
    x, pivots = torch.randn(2, 3, 5), torch.tensor([3, 2, 3], dtype=torch.int32)
    actual = torch.lu_unpack(x.to("tpu"), pivots.to("tpu"))
    for a, e in zip(actual, torch.lu_unpack(x, pivots.repeat(2, 1)), strict=True):
        assert torch.equal(a.cpu(), e)
