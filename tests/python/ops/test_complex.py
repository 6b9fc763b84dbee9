# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close, make_tensor

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu

nan, inf = torch.nan, torch.inf


def complex_tensor(*shape, dtype=torch.complex64):
    return make_tensor(shape, dtype=dtype, device="cpu", requires_grad=True)


@pytest.mark.parametrize(
    "f", [torch.real, torch.imag, torch.angle, torch.abs, torch.sgn, torch.view_as_real]
)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_parts_and_their_gradients_match_cpu(f, dtype):
    assert_matches_cpu(f, complex_tensor(3, 4, dtype=dtype))


def test_conjugates_match_cpu():
    z = complex_tensor(3, 4)
    assert_matches_cpu(
        lambda z: (z.conj().resolve_conj(), z.conj_physical(), z.conj() * z, z.mT.conj() @ z), z
    )


def test_imaginary_part_of_a_conjugate_is_negated():
    z = complex_tensor(3)
    assert_matches_cpu(lambda z: (z.conj().imag, z.conj().imag.resolve_neg(), z.conj().imag + 1), z)


def test_view_as_complex_matches_cpu():
    assert_matches_cpu(torch.view_as_complex, torch.randn(3, 4, 2, requires_grad=True))


def test_writing_a_part_changes_the_whole():
    z = complex_tensor(3).detach()
    t = z.to("tpu")
    for x in (z, t):
        x.real.mul_(2)
        x.imag[1] = 7
    assert_close(t.cpu(), z)


def test_complex_and_polar_match_cpu():
    a, b = (torch.rand(5, requires_grad=True) for _ in range(2))
    assert_matches_cpu(torch.complex, a, b)
    assert_matches_cpu(torch.polar, a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_angle_and_sgn_of_reals_match_cpu(dtype):
    x = torch.tensor(
        [-2, 0, 3] if not dtype.is_floating_point else [nan, -1.0, -0.0, 0.0, 2.0, inf], dtype=dtype
    )
    assert_matches_cpu(lambda x: (torch.angle(x), torch.sgn(x)), x)


def test_sgn_of_zero_is_zero():
    assert torch.equal(
        torch.sgn(torch.zeros(2, dtype=torch.complex64, device="tpu")).cpu(),
        torch.zeros(2, dtype=torch.complex64),
    )


def test_sum_with_alpha_1_keeps_infinities():
    # CPU multiplies by alpha = 1 + 0j, and 0 * inf is NaN.
    z = torch.tensor([complex(inf, 0), complex(0, -inf), 1j], device="tpu")
    assert torch.equal((z + z).cpu(), torch.tensor([complex(inf, 0), complex(0, -inf), 2j]))


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.complex(
            torch.ones(2, dtype=torch.int64, device=d), torch.ones(2, dtype=torch.int64, device=d)
        ),
        lambda d: torch.complex(
            torch.ones(2, device=d), torch.ones(2, dtype=torch.float64, device=d)
        ),
        lambda d: torch.imag(torch.ones(2, device=d)),
        lambda d: torch.view_as_complex(torch.ones(3, device=d)),
        lambda d: torch.view_as_real(torch.ones(3, device=d)),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)
