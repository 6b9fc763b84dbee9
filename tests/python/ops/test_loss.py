# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

REDUCTIONS = ["none", "mean", "sum"]


def tensor(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 3), (129,)])
@pytest.mark.parametrize(
    "loss",
    [
        F.mse_loss,
        F.l1_loss,
        lambda x, y, **k: F.smooth_l1_loss(x, y, beta=0.7, **k),
        lambda x, y, **k: F.huber_loss(x, y, delta=0.7, **k),
        F.soft_margin_loss,
        F.binary_cross_entropy_with_logits,
    ],
)
def test_loss_of_two_arrays_matches_cpu(loss, shape, reduction):
    assert_matches_cpu(
        lambda x, y: loss(x, y, reduction=reduction), tensor(*shape), torch.rand(shape)
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_cross_entropy_matches_cpu(reduction, weighted):
    x = torch.rand(3, 4).requires_grad_()
    weight = torch.rand(4) if weighted else None
    y = torch.rand(3, 4)
    assert_matches_cpu(
        lambda x, y, w: F.binary_cross_entropy(x, y, w, reduction=reduction), x, y, weight
    )


def test_binary_cross_entropy_at_0_and_1_is_bounded():
    x, y = torch.tensor([0.0, 1.0, 0.0, 1.0]).requires_grad_(), torch.tensor([0.0, 1.0, 1.0, 0.0])
    assert_matches_cpu(lambda x, y: F.binary_cross_entropy(x, y, reduction="none"), x, y)


def test_binary_cross_entropy_with_logits_weighs_positives():
    x, y, w, p = tensor(3, 4), torch.rand(3, 4), torch.rand(3, 4), torch.rand(4)
    assert_matches_cpu(
        lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p), x, y, w, p
    )
    large = torch.tensor([100.0, -100.0, 0.0]).requires_grad_()
    assert_matches_cpu(F.binary_cross_entropy_with_logits, large, torch.tensor([0.0, 1.0, 0.5]))


@pytest.mark.parametrize(
    "dtypes, rtol",
    # CPU rounds the logarithm of the logistic function to the input's dtype: 2^-8 in bfloat16.
    [((torch.bfloat16, torch.float32), 2**-8), ((torch.float32, torch.float64), 1e-6)],
)
def test_binary_cross_entropy_with_logits_takes_a_target_of_another_dtype(dtypes, rtol):
    x, y = (torch.rand(4, 5, dtype=t) for t in dtypes)
    assert_matches_cpu(F.binary_cross_entropy_with_logits, x, y, rtol=rtol, atol=0)


def test_nll_loss_of_one_sample_takes_a_target_of_one_element():
    x = torch.randn(3).log_softmax(0)
    assert_matches_cpu(lambda x, y: F.nll_loss(x, y, reduction="none"), x, torch.tensor([1]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5, 4), (4,), (2, 4, 3), (2, 4, 3, 2), (0, 4), (2, 4, 2, 3, 2)])
def test_cross_entropy_matches_cpu(shape, reduction, weighted):
    samples = shape[:1] + shape[2:] if len(shape) > 1 else ()
    weight = torch.rand(4) if weighted else None
    target = torch.randint(4, samples)
    assert_matches_cpu(
        lambda x, t, w: F.cross_entropy(x, t, w, reduction=reduction),
        tensor(*shape),
        target,
        weight,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_leaves_out_ignored_targets(reduction):
    x, target = tensor(5, 4), torch.tensor([0, -100, 3, -100, 1])
    assert_matches_cpu(lambda x, t: F.cross_entropy(x, t, reduction=reduction), x, target)
    assert_matches_cpu(
        lambda x, t: F.cross_entropy(x, t, reduction=reduction, ignore_index=3), x, target.clamp(0)
    )
    everything = torch.full((5,), -100)
    assert_matches_cpu(lambda x, t: F.cross_entropy(x, t, reduction=reduction), x, everything)


def test_nll_loss_of_an_infinite_score_that_is_ignored_is_finite():
    x = torch.tensor([[0.5, -torch.inf], [1.0, 2.0]]).requires_grad_()
    assert_matches_cpu(lambda x, t: F.nll_loss(x, t, ignore_index=1), x, torch.tensor([1, 0]))


def test_cross_entropy_with_smoothing_and_probabilities_matches_cpu():
    assert_matches_cpu(
        lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
        tensor(5, 4),
        torch.randint(4, (5,)),
    )
    assert_matches_cpu(F.cross_entropy, tensor(5, 4), torch.rand(5, 4).softmax(-1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_cross_entropy_of_16_bit_floats_sums_in_f32(dtype):
    x = torch.randn(300, 10, dtype=dtype).requires_grad_()
    tolerance = {"rtol": 1e-2, "atol": 1e-2}
    assert_matches_cpu(
        F.cross_entropy, x, torch.randint(10, (300,)), reference=torch.float32, **tolerance
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(5, 4), (4,)])
def test_margin_losses_match_cpu(shape, reduction):
    if shape == (4,) and reduction == "none":
        pytest.skip(
            "PyTorch's meta function says [1] for one sample without reduction, its CPU kernel []"
        )
    x, target = tensor(*shape), torch.randint(4, shape[:-1])
    for p in (1, 2):
        options = {"p": p, "margin": 0.7, "reduction": reduction}
        assert_matches_cpu(
            lambda x, t, w, o=options: F.multi_margin_loss(x, t, weight=w, **o),
            x,
            target,
            torch.rand(4),
        )
    listed = torch.tensor([3, 0, -1, 1]).expand(shape).contiguous()
    assert_matches_cpu(lambda x, t: F.multilabel_margin_loss(x, t, reduction=reduction), x, listed)


def test_betas_share_one_program():
    x, y = torch.randn(3, device="tpu"), torch.randn(3, device="tpu")
    F.smooth_l1_loss(x, y, beta=0.5)
    F.huber_loss(x, y, delta=0.5)
    with count_compiles() as compiled:
        F.smooth_l1_loss(x, y, beta=0.25)
        F.huber_loss(x, y, delta=2.0)
    assert compiled == []


@pytest.mark.parametrize(
    "call",
    [
        lambda d: F.nll_loss(torch.ones(2, 3, device=d), torch.ones(2, device=d)),
        lambda d: F.nll_loss(
            torch.ones(2, 3, device=d), torch.ones(3, device=d, dtype=torch.int64)
        ),
        lambda d: F.mse_loss(torch.ones(2, 3, device=d), torch.ones(4, device=d)),
        lambda d: F.mse_loss(*(torch.ones(2, device=d, dtype=torch.int64) for _ in range(2))),
        lambda d: F.binary_cross_entropy(torch.full((2,), 2.0, device=d), torch.ones(2, device=d)),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_errors_read_as_on_cpu(call):
    assert_same_error(call)


@pytest.mark.parametrize("target", [7, -1])
def test_a_target_out_of_range_is_reported(target):
    with pytest.raises(IndexError, match="Target .*is out of bounds"):
        F.nll_loss(torch.ones(1, 3, device="tpu"), torch.tensor([target], device="tpu")).item()
