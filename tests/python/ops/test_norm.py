# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close, make_tensor

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu, to_tpu


def tensor(*shape, dtype=torch.float32, grad=True):
    return make_tensor(shape, dtype=dtype, device="cpu", low=-3, high=3, requires_grad=grad)


@pytest.mark.parametrize(
    "shape, n", [((2, 3, 4), 1), ((2, 3, 4), 2), ((5,), 1), ((0, 4), 1), ((3, 129), 1), ((1, 1), 1)]
)
@pytest.mark.parametrize("affine", ["none", "weight", "both"])
def test_layer_norm_matches_cpu(shape, n, affine):
    tail = shape[-n:]
    weight = None if affine == "none" else tensor(*tail)
    bias = tensor(*tail) if affine == "both" else None
    assert_matches_cpu(
        lambda x, w, b: F.layer_norm(x, tail, w, b),
        tensor(*shape),
        weight,
        bias,
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("parameters", ["same", "float32"])
def test_layer_norm_of_16_bit_floats_keeps_f32_statistics(dtype, parameters):
    parameter = dtype if parameters == "same" else torch.float32
    x, w, b = (
        tensor(4, 300, dtype=dtype),
        tensor(300, dtype=parameter),
        tensor(300, dtype=parameter),
    )
    tolerance = (
        {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {"rtol": 2e-3, "atol": 2e-3}
    )
    assert_matches_cpu(
        lambda x, w, b: F.layer_norm(x, (300,), w, b), x, w, b, reference=torch.float32, **tolerance
    )


def test_layer_norm_of_nan_stays_in_its_row():
    x = torch.randn(3, 4)
    x[1, 2] = torch.nan
    assert_matches_cpu(lambda x: F.layer_norm(x, (4,)), x)


@pytest.mark.parametrize("shape, n", [((2, 3, 8), 1), ((1024,), 1), ((2, 3, 4), 2)])
@pytest.mark.parametrize("eps", [None, 1e-6])
@pytest.mark.parametrize("with_weight", [False, True])
def test_rms_norm_matches_cpu(shape, n, eps, with_weight):
    weight = tensor(*shape[-n:]) if with_weight else None
    assert_matches_cpu(
        lambda x, w: F.rms_norm(x, shape[-n:], w, eps), tensor(*shape), weight, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    "shape, groups",
    [((2, 6, 5), 3), ((2, 6), 2), ((1, 4, 3, 3), 4), ((2, 4, 3, 3), 1), ((0, 4, 2), 2)],
)
@pytest.mark.parametrize("affine", [False, True])
def test_group_norm_matches_cpu(shape, groups, affine):
    w, b = (tensor(shape[1]), tensor(shape[1])) if affine else (None, None)
    assert_matches_cpu(
        lambda x, w, b: F.group_norm(x, groups, w, b), tensor(*shape), w, b, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 4), (2, 3, 2, 3, 2)])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm_matches_cpu(shape, training, affine):
    c = shape[1]
    w, b = (tensor(c), tensor(c)) if affine else (None, None)
    mean, var = torch.randn(c), torch.rand(c) + 0.5

    def call(x, w, b, mean, var):
        mean, var = mean.clone(), var.clone()
        return F.batch_norm(x, mean, var, w, b, training, 0.2), mean, var

    assert_matches_cpu(call, tensor(*shape), w, b, mean, var, rtol=1e-4, atol=1e-4)


def test_batch_norm_without_running_statistics_matches_cpu():
    assert_matches_cpu(
        lambda x: F.batch_norm(x, None, None, training=True), tensor(4, 3, 5), rtol=1e-4, atol=1e-4
    )


def test_batch_norm_module_moves_its_statistics_as_cpu_does():
    ours, theirs = (
        torch.nn.BatchNorm2d(3, momentum=None).to("tpu"),
        torch.nn.BatchNorm2d(3, momentum=None),
    )
    for _ in range(3):
        x = torch.randn(4, 3, 5, 5) * 2 + 1
        assert_close(ours(x.to("tpu")).cpu(), theirs(x))
    assert_close({k: v.cpu() for k, v in ours.state_dict().items()}, dict(theirs.state_dict()))
    x = torch.randn(4, 3, 5, 5)
    assert_close(ours.eval()(x.to("tpu")).cpu(), theirs.eval()(x))


def test_batch_norm_momenta_share_one_program():
    x, mean, var = to_tpu((torch.randn(4, 3), torch.zeros(3), torch.ones(3)))
    F.batch_norm(x, mean, var, training=True, momentum=0.1)
    with count_compiles() as compiled:
        F.batch_norm(x, mean, var, training=True, momentum=0.3)
    assert compiled == []


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 4)])
def test_instance_norm_matches_cpu(shape):
    assert_matches_cpu(F.instance_norm, tensor(*shape), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: F.layer_norm(torch.ones(2, 3, device=d), (4,)),
        lambda d: F.layer_norm(torch.ones(2, 3, device=d, dtype=torch.int64), (3,)),
        lambda d: F.group_norm(torch.ones(2, 3, device=d), 2),
        lambda d: F.batch_norm(
            torch.ones(2, 3, device=d, dtype=torch.int64), None, None, training=True
        ),
        lambda d: F.batch_norm(torch.ones(1, 3, device=d), None, None, training=True),
    ],
)
def test_errors_read_as_on_cpu(call):
    assert_same_error(call)
