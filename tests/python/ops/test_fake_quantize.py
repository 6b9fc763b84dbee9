# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

nan, inf = torch.nan, torch.inf
aten = torch.ops.aten
per_tensor = aten.fake_quantize_per_tensor_affine_cachemask
qparams = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
per_channel = aten.fake_quantize_per_channel_affine_cachemask
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
EXACT = {"rtol": 0, "atol": 0}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (127,), (129, 3)])
def test_per_tensor_matches_cpu(dtype, shape):
    x = (torch.randn(shape) * 20).to(dtype)
    assert_matches_cpu(lambda x: per_tensor(x, 0.3, 5, -8, 60), x, **EXACT)


@pytest.mark.parametrize("scale", [0.1, 0.0, -1.0, torch.nan])
def test_per_tensor_at_ties_nan_inf_and_odd_scales_matches_cpu(scale):
    x = torch.tensor([nan, inf, -inf, 0.0, -0.0, 0.05, 0.15, 0.25, 12.75, -13, 1e30])
    assert_matches_cpu(lambda x: per_tensor(x, scale, 5, 0, 255), x, **EXACT)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("zero_dtype", [torch.int32, torch.float32, torch.float16])
def test_per_channel_matches_cpu(dtype, axis, zero_dtype):
    x = torch.randn(3, 3).to(dtype)
    scale, zero = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2]).to(zero_dtype)
    if zero_dtype.is_floating_point:
        zero = zero + 0.25
    assert_matches_cpu(lambda x, s, z: per_channel(x, s, z, axis, -8, 7), x, scale, zero, **EXACT)


def test_views_match_cpu():
    x, scale, zero = torch.randn(4, 6), torch.rand(6) + 0.1, torch.zeros(6, dtype=torch.int32)
    assert_matches_cpu(
        lambda x, s, z: (
            per_tensor(x.t()[1::2], 0.1, 0, -8, 7),
            per_channel(x[:, ::2], s[::2], z[::2], 1, -8, 7),
            per_channel(x[:0], s, z, 1, -8, 7),
        ),
        x,
        scale,
        zero,
        **EXACT,
    )


@pytest.mark.parametrize("enabled", [0, 1])
def test_tensor_qparams_match_cpu(enabled):
    x = torch.tensor([torch.nan, torch.inf, 0.05, 0.15, -3.0, 1e30])
    scale, on = torch.tensor([0.1]), torch.tensor([enabled])
    zero = torch.tensor([5], dtype=torch.int32)
    assert_matches_cpu(lambda *a: qparams(*a, 0, 255), x, scale, zero, on, **EXACT)
    # The CPU checks no range here.
    assert_matches_cpu(lambda *a: qparams(*a, 0, 255), x, scale, zero + 500, on, **EXACT)


def test_gradients_match_cpu():
    x = torch.linspace(-2, 2, 12).reshape(3, 4).requires_grad_()
    scale, zero = torch.full((3,), 0.1), torch.zeros(3, dtype=torch.int32)
    assert_matches_cpu(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7), x)
    assert_matches_cpu(
        lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 0, -8, 7), x, scale, zero
    )


def test_new_scale_and_zero_point_compile_nothing():
    x = torch.randn(5, 7, device="tpu")
    per_tensor(x, 0.5, 1, -8, 7)
    with count_compiles() as compiled:
        per_tensor(x, 0.25, -3, -8, 7)
    assert compiled == []


# The second call of a program: nothing but the program itself sees its zero point.
def test_zero_point_out_of_range_is_refused_by_a_known_program_too():
    def call(device):
        x = torch.ones(3, device=device)
        per_tensor(x, 0.5, 1, -8, 7)
        per_tensor(x, 0.5, 8, -8, 7)

    assert_same_error(call)


def channels(d, scale=torch.float32, zero=torch.int32, n=3, axis=0, x=torch.float32, low=-8):
    return per_channel(
        torch.ones(3, 4, dtype=x, device=d),
        torch.ones(n, dtype=scale, device=d),
        torch.ones(3, dtype=zero, device=d),
        axis,
        low,
        7,
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda d: per_tensor(torch.ones(3, dtype=torch.int32, device=d), 0.5, 0, -8, 7),
        lambda d: per_tensor(torch.ones(3, dtype=torch.complex64, device=d), 0.5, 0, -8, 7),
        lambda d: per_tensor(torch.ones(3, device=d), 0.5, 0, 8, 7),
        lambda d: channels(d, scale=torch.float64),
        lambda d: channels(d, zero=torch.int64),
        lambda d: channels(d, n=2),
        lambda d: channels(d, axis=1),
        lambda d: channels(d, axis=-2),
        lambda d: channels(d, axis=2),
        lambda d: channels(d, low=9),
        lambda d: channels(d, low=2),
        lambda d: channels(d, x=torch.int32),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)
