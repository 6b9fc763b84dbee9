# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import make_tensor

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def tensor(*shape, dtype=torch.float32, grad=True):
    return make_tensor(shape, dtype=dtype, device="cpu", low=-1, high=1, requires_grad=grad)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": 2},
        {"dilation": 2},
        {"groups": 2},
        {"stride": 3, "padding": 1, "dilation": 2, "groups": 2},
        {"padding": "same"},
    ],
)
def test_conv_matches_cpu(n, options):
    groups = options.get("groups", 1)
    x, w = tensor(2, 4, *(9, 8, 7)[:n]), tensor(6, 4 // groups, *(3, 2, 3)[:n])
    assert_matches_cpu(lambda x, w, b: CONV[n](x, w, b, **options), x, w, tensor(6), **TOLERANCE)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": 1},
        {"dilation": 2},
        {"groups": 2},
        {"stride": 3, "output_padding": 2, "padding": 1},
        {"stride": 2, "dilation": 4, "output_padding": 3, "groups": 2},
        {"padding": 3},
    ],
)
def test_conv_transpose_matches_cpu(n, options):
    groups = options.get("groups", 1)
    x, w = tensor(2, 4, *(5, 4, 5)[:n]), tensor(4, 6 // groups, *(3, 4, 3)[:n])
    assert_matches_cpu(
        lambda x, w, b: CONV_TRANSPOSE[n](x, w, b, **options), x, w, tensor(6), **TOLERANCE
    )


def test_conv_without_a_batch_dimension_matches_cpu():
    assert_matches_cpu(F.conv2d, tensor(3, 6, 6), tensor(2, 3, 3, 3), tensor(2), **TOLERANCE)
    assert_matches_cpu(F.conv_transpose1d, tensor(3, 6), tensor(3, 2, 3), None, **TOLERANCE)


@pytest.mark.parametrize("shape", [(0, 3, 5, 5), (2, 3, 5, 5)])
def test_conv_of_an_empty_batch_has_zero_weight_gradients(shape):
    assert_matches_cpu(F.conv2d, tensor(*shape), tensor(4, 3, 3, 3), tensor(4), **TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
@pytest.mark.parametrize("conv", [F.conv2d, F.conv_transpose2d])
def test_conv_of_other_dtypes_matches_cpu(dtype, conv):
    args = tensor(2, 3, 6, 6, dtype=dtype), tensor(3, 3, 2, 3, dtype=dtype), tensor(3, dtype=dtype)
    assert_matches_cpu(lambda *a: conv(*a, stride=2, padding=1), *args, **TOLERANCE)


def test_conv_of_integers_matches_cpu():
    x, w = (make_tensor(s, dtype=torch.int64, device="cpu") for s in ((1, 2, 5, 5), (3, 2, 2, 2)))
    assert_matches_cpu(F.conv2d, x, w)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_conv_of_16_bit_floats_sums_in_f32(dtype):
    args = (
        tensor(2, 32, 6, 6, dtype=dtype),
        tensor(8, 32, 3, 3, dtype=dtype),
        tensor(8, dtype=dtype),
    )
    # The gradients come from the same rounded numbers; a sum of 288 products near 0 keeps its
    # terms' rounding.
    tolerance = (
        {"rtol": 2e-2, "atol": 3e-2} if dtype == torch.bfloat16 else {"rtol": 2e-3, "atol": 5e-3}
    )
    assert_matches_cpu(
        lambda *a: F.conv2d(*a, padding=1), *args, reference=torch.float32, **tolerance
    )


def test_conv_of_channels_last_and_sliced_inputs_matches_cpu():
    x, w = tensor(2, 4, 6, 6), tensor(3, 4, 3, 3)
    assert_matches_cpu(
        lambda x, w: F.conv2d(x.to(memory_format=torch.channels_last), w), x, w, **TOLERANCE
    )
    assert_matches_cpu(lambda x, w: F.conv2d(x[:, ::2], w[:, 1:3]), x, w, **TOLERANCE)


def test_depthwise_conv_matches_cpu():
    assert_matches_cpu(
        lambda x, w: F.conv2d(x, w, groups=6), tensor(1, 6, 5, 5), tensor(12, 1, 3, 3), **TOLERANCE
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda d: F.conv2d(torch.ones(1, 2, 3, 3, device=d), torch.ones(1, 3, 1, 1, device=d)),
        lambda d: F.conv2d(torch.ones(1, 2, 3, 3, device=d), torch.ones(1, 2, 4, 4, device=d)),
        lambda d: F.conv2d(
            torch.ones(1, 2, 3, 3, device=d), torch.ones(1, 2, 1, 1, device=d), stride=0
        ),
    ],
)
def test_errors_read_as_on_cpu(call):
    assert_same_error(call)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (2, 1, 1), (2, 0, 2)])
def test_conv_of_int64_is_exact(n, groups, stride, padding, dilation):
    def r(*shape):
        return torch.randint(-(2**62), 2**62, shape)

    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, k = r(2, 4, *(9, 8, 7)[:n]), (3, 2, 3)[:n]
    assert_matches_cpu(lambda x, w, b: CONV[n](x, w, b, **options), x, r(6, 4 // groups, *k), r(6))
    assert_matches_cpu(
        lambda x, w: CONV_TRANSPOSE[n](x, w, **options, output_padding=stride - 1),
        x,
        r(4, 6 // groups, *k),
    )


def test_conv_groups_error_reads_as_on_cpu():
    assert_same_error(
        lambda d: F.conv1d(torch.ones(1, 4, 8, device=d), torch.ones(3, 2, 3, device=d), groups=2)
    )
