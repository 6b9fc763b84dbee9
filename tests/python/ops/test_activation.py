# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import make_tensor

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

nan, inf = torch.nan, torch.inf
ACTIVATIONS = {
    "relu": F.relu,
    "relu6": F.relu6,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "elu": lambda x: F.elu(x, 1.5),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.7),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 2.0),
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "softplus": lambda x: F.softplus(x, beta=2, threshold=3),
    "logsigmoid": F.logsigmoid,
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "tanhshrink": F.tanhshrink,
    "softsign": F.softsign,
    "threshold": lambda x: F.threshold(x, 0.5, -7.0),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "prelu": lambda x: F.prelu(x, torch.tensor([0.3], device=x.device, dtype=x.dtype)),
    "rrelu_in_eval": lambda x: F.rrelu(x, training=False),
}
# The points where a function has a kink, and around them.
KINKS = [
    -6.0,
    -3.0,
    -1.0,
    -0.5,
    -0.0,
    0.0,
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    6.0,
    20.0,
    -20.0,
    100.0,
    -100.0,
]


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_activation_and_gradient_at_kinks_match_cpu(name, dtype):
    assert_matches_cpu(ACTIVATIONS[name], torch.tensor(KINKS, dtype=dtype, requires_grad=True))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_of_special_values_matches_cpu(name):
    # CPU's gelu gives NaN at +inf, where the function's limit is inf.
    values = [nan, -inf] if name == "gelu" else [nan, inf, -inf]
    assert_matches_cpu(ACTIVATIONS[name], torch.tensor(values))


def test_gelu_far_from_zero_is_exact():
    x = torch.tensor([inf, 1e10, 10.0, -10.0, -1e10])
    assert torch.equal(F.gelu(x.to("tpu")).cpu(), torch.tensor([inf, 1e10, 10.0, 0.0, 0.0]))


# Of two operators, each rounds.
ONE_OPERATOR = [name for name in ACTIVATIONS if name not in ("tanhshrink", "softsign")]


@pytest.mark.parametrize("name", ONE_OPERATOR)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_floats_compute_in_f32(name, dtype):
    x = make_tensor((64,), dtype=dtype, device="cpu", low=-4, high=4)
    assert_matches_cpu(ACTIVATIONS[name], x, reference=torch.float32)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_empty_and_rank_0_match_cpu(shape):
    for f in (F.relu, F.gelu, F.silu, F.softplus):
        assert_matches_cpu(f, torch.ones(shape, requires_grad=True))


@pytest.mark.parametrize(
    "f", [F.relu, F.relu6, lambda x: F.hardtanh(x, -1, 2), lambda x: F.threshold(x, 1, 3)]
)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_piecewise_functions_of_integers_match_cpu(f, dtype):
    assert_matches_cpu(f, torch.tensor([-3, 0, 1, 2, 9], dtype=dtype))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu_matches_cpu(dim):
    assert_matches_cpu(lambda x: F.glu(x, dim), torch.randn(4, 6, requires_grad=True))


def test_prelu_with_a_weight_for_each_channel_matches_cpu():
    assert_matches_cpu(
        F.prelu, torch.randn(2, 3, 4, requires_grad=True), torch.rand(3, requires_grad=True)
    )


@pytest.mark.parametrize("eps", [None, 0.1])
def test_logit_matches_cpu(eps):
    x = torch.tensor([0.0, 0.05, 0.5, 0.95, 1.0, nan, -1.0, 2.0], requires_grad=True)
    assert_matches_cpu(lambda x: torch.logit(x, eps), x)


@pytest.mark.parametrize("f", [F.silu, torch.sigmoid, torch.tanh])
def test_smooth_activations_of_complex_match_cpu(f):
    z = make_tensor((8,), dtype=torch.complex64, device="cpu", low=-1, high=1)
    assert_matches_cpu(f, z.requires_grad_(f is not F.silu))  # which PyTorch does not differentiate


def test_slopes_and_bounds_share_one_program():
    x = torch.randn(4, device="tpu")
    calls = [
        lambda v: F.leaky_relu(x, v),
        lambda v: F.hardtanh(x, -v, v),
        lambda v: F.elu(x, v),
        lambda v: F.softplus(x, v),
        lambda v: F.threshold(x, v, v),
        lambda v: F.hardshrink(x, v),
    ]
    for call in calls:
        call(0.5)
    with count_compiles() as compiled:
        for call in calls:
            call(2.0)
    assert compiled == []


def test_in_place_relu_matches_cpu():
    x = torch.randn(3, 4)
    y = x.to("tpu")
    F.relu_(y[1:])
    F.relu_(x[1:])
    assert torch.equal(y.cpu(), x)


INTEGERS_REFUSED = [
    "gelu",
    "silu",
    "mish",
    "elu",
    "leaky_relu",
    "hardswish",
    "hardsigmoid",
    "softplus",
    "logsigmoid",
    "softshrink",
    "hardshrink",
]


@pytest.mark.parametrize("name", INTEGERS_REFUSED)
def test_integers_are_refused_as_on_cpu(name):
    assert_same_error(lambda d: ACTIVATIONS[name](torch.ones(2, dtype=torch.int64, device=d)))


@pytest.mark.parametrize(
    "call",
    [
        lambda d: F.relu(torch.ones(2, dtype=torch.bool, device=d)),
        lambda d: F.relu(torch.ones(2, dtype=torch.complex64, device=d)),
        lambda d: F.hardtanh(torch.ones(2, dtype=torch.bool, device=d)),
        lambda d: F.glu(torch.ones(3, device=d)),
        lambda d: F.celu(torch.ones(2, device=d), 0.0),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)
