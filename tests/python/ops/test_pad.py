# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    "shape, pad",
    [((2, 5), (2, 3)), ((2, 3, 5), (0, 2)), ((2, 5, 6), (1, 2, 3, 1)), ((1, 2, 5, 6), (2, 0, 0, 2)),
     ((1, 2, 4, 5, 6), (1, 2, 2, 1, 3, 0))],
)  # fmt: skip
def test_pad_matches_cpu(mode, shape, pad):
    assert_matches_cpu(lambda x: F.pad(x, pad, mode), torch.randn(shape).requires_grad_())


@pytest.mark.parametrize("pad", [(-1, 2), (2, -1), (-1, -2)])
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_negative_padding_crops(mode, pad):
    assert_matches_cpu(lambda x: F.pad(x, pad, mode), torch.randn(2, 3, 6))


@pytest.mark.parametrize("value", [0.0, 1.5, float("-inf")])
def test_constant_pad_matches_cpu(value):
    assert_matches_cpu(
        lambda x: F.pad(x, (1, 2, 0, 1), value=value), torch.randn(2, 3).requires_grad_()
    )


@pytest.mark.parametrize("pad", [(5, 0), (0, 5)])
def test_reflection_beyond_the_input_reads_as_on_cpu(pad):
    assert_same_error(lambda d: F.pad(torch.ones(1, 2, 5, device=d), pad, "reflect"))
