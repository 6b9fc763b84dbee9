# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torch_tpu.testing.against_cpu import assert_matches_cpu

SIZES = [
    ((7,), (11,)),
    ((7,), (3,)),
    ((5,), (10,)),
    ((1,), (4,)),
    ((5, 6), (8, 9)),
    ((9, 8), (4, 3)),
    ((3, 4, 5), (5, 6, 7)),
]
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.parametrize("before, after", SIZES)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_matches_cpu(before, after, mode):
    assert_matches_cpu(
        lambda x: F.interpolate(x, after, mode=mode), torch.randn(2, 3, *before).requires_grad_()
    )


@pytest.mark.parametrize("before, after", SIZES)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_linear_matches_cpu(before, after, align_corners, dtype):
    x = torch.randn(2, 3, *before, dtype=dtype).requires_grad_()
    mode = LINEAR[len(before)]
    assert_matches_cpu(
        lambda x: F.interpolate(x, after, mode=mode, align_corners=align_corners), x, **TOLERANCE
    )


@pytest.mark.parametrize("before, after", [c for c in SIZES if len(c[0]) == 2])
@pytest.mark.parametrize("align_corners", [False, True])
def test_cubic_matches_cpu(before, after, align_corners):
    x = torch.randn(2, 3, *before).requires_grad_()
    assert_matches_cpu(
        lambda x: F.interpolate(x, after, mode="bicubic", align_corners=align_corners),
        x,
        **TOLERANCE,
    )


@pytest.mark.parametrize("before, after", [c for c in SIZES if len(c[0]) == 2])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_matches_cpu(before, after, mode):
    x = torch.randn(2, 3, *before).requires_grad_()
    assert_matches_cpu(lambda x: F.interpolate(x, after, mode=mode, antialias=True), x, **TOLERANCE)


@pytest.mark.parametrize("factor", [0.6, 1.3, 2.0])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_scale_factors_match_cpu(factor, mode):
    x = torch.randn(2, 3, 9, 7).requires_grad_()
    assert_matches_cpu(lambda x: F.interpolate(x, scale_factor=factor, mode=mode), x, **TOLERANCE)


def test_nearest_of_bytes_copies():
    x = torch.randint(0, 255, (1, 3, 4, 4), dtype=torch.uint8)
    assert_matches_cpu(lambda x: F.interpolate(x, (7, 9)), x)


def test_bfloat16_sums_in_f32():
    x = torch.randn(1, 2, 9, 9, dtype=torch.bfloat16).requires_grad_()
    assert_matches_cpu(
        lambda x: F.interpolate(x, (20, 4), mode="bilinear"),
        x,
        reference=torch.float32,
        rtol=1e-2,
        atol=1e-2,
    )


def test_infinity_reaches_only_its_neighbours():
    x = torch.randn(1, 1, 6, 6)
    x[0, 0, 2, 2] = torch.inf
    y = F.interpolate(x.to("tpu"), (12, 12), mode="bilinear").cpu()
    assert torch.equal(
        torch.isfinite(y), torch.isfinite(F.interpolate(x, (12, 12), mode="bilinear"))
    )
