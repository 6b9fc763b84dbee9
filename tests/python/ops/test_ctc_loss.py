# SPDX-License-Identifier: Apache-2.0
"""CTC loss and its gradient: what OpInfo's samples leave out."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from torch_tpu import compile as tpu_compile
from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu


def batch(frames=20, labels=(7, 3, 0, 0), classes=6, dtype=torch.float32, blank=0):
    log_probs = torch.randn(frames, len(labels), classes, dtype=dtype).log_softmax(-1)
    targets = torch.randint(classes - 1, (len(labels), 7))
    targets = targets + (targets >= blank)
    targets[0, 1] = targets[0, 0]  # a blank must come between
    return log_probs.requires_grad_(), targets


def loss(x, targets, frames, labels, **options):
    # Lengths are on the host, as CPU takes them.
    return F.ctc_loss(x, targets, torch.tensor(frames), torch.tensor(labels), **options)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("blank", [0, 3, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ctc_loss_and_gradient_match_cpu(reduction, blank, dtype):
    x, targets = batch(dtype=dtype, blank=blank)
    options = {"reduction": reduction, "blank": blank}
    assert_matches_cpu(lambda x, t: loss(x, t, (20, 15, 0, 8), (7, 3, 0, 0), **options), x, targets)


@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize(
    "frames, labels",
    [
        ((2, 15, 20, 20), (7, 3, 2, 0)),  # more labels than frames: no path
        ((7, 15, 20, 20), (7, 3, 2, 0)),  # a repeated label needs one frame more
        ((0, 0, 0, 0), (0, 1, 0, 0)),
    ],
)
def test_ctc_loss_of_an_impossible_target_is_inf_or_zero(zero_infinity, frames, labels):
    x, targets = batch()
    assert_matches_cpu(
        lambda x, t: loss(x, t, frames, labels, reduction="none", zero_infinity=zero_infinity),
        x,
        targets,
    )


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("labels", [(7, 3, 1, 2), (7, 0, 0, 2), (0, 0, 0, 0)])
def test_ctc_loss_of_concatenated_targets_matches_cpu(labels, dtype):
    x, targets = batch()
    flat = torch.cat([t[:n] for t, n in zip(targets, labels, strict=True)]).to(dtype)
    assert_matches_cpu(lambda x, t: loss(x, t, (20, 20, 9, 20), labels), x, flat)


def test_ctc_loss_where_a_frame_is_impossible_matches_cpu():
    x, targets = batch()
    with torch.no_grad():
        x[3] = -torch.inf
    assert_matches_cpu(
        lambda x, t: loss(x, t, (20, 3, 20, 20), (7, 2, 0, 1), zero_infinity=True), x, targets
    )


def test_other_lengths_compile_nothing():
    x, targets = batch()
    x, targets = x.detach().to("tpu"), targets.to("tpu")
    loss(x, targets, (20, 15, 3, 8), (7, 3, 0, 0)).item()
    with count_compiles() as compiled:
        loss(x, targets, (11, 12, 13, 14), (1, 2, 3, 4)).item()
    assert compiled == []


REFUSED = {
    "frames": lambda x, t: loss(x, t, (6, 5), (2, 2)),
    "negative frames": lambda x, t: loss(x, t, (5, -1), (2, 2)),
    "labels": lambda x, t: loss(x, t, (5, 5), (2, 4)),
    "negative labels": lambda x, t: loss(x, t, (5, 5), (2, -2)),
    "count": lambda x, t: loss(x, t, (5,), (2, 2)),
    "blank": lambda x, t: loss(x, t, (5, 5), (2, 2), blank=4),
    "batch": lambda x, t: loss(x, t[:1], (5, 5), (2, 2)),
    "concatenated": lambda x, t: loss(x, t.flatten(), (5, 5), (2, 2)),
    "half": lambda x, t: loss(x.half(), t, (5, 5), (2, 2)),
    "no frames": lambda x, t: loss(x[:0], t, (0, 0), (2, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_ctc_loss_refuses_what_cpu_refuses(name):
    assert_same_error(
        lambda d: REFUSED[name](
            torch.zeros(5, 2, 4, device=d), torch.ones(2, 3, dtype=torch.int64, device=d)
        )
    )


def test_loss_in_a_graph_matches_cpu_and_refuses_wrong_lengths():
    tpu_compile.register()
    torch._dynamo.reset()
    f = torch.compile(F.ctc_loss, backend="tpu", fullgraph=True)
    x = torch.randn(12, 2, 5).log_softmax(2).requires_grad_()
    y = x.detach().to("tpu").requires_grad_()
    targets = torch.tensor([[1, 2, 3], [2, 2, 0]])
    for frames, labels in (([12, 10], [3, 2]), ([9, 12], [1, 0])):
        lengths = torch.tensor(frames), torch.tensor(labels)
        expected = F.ctc_loss(x, targets, *lengths)
        loss = f(y, targets.to("tpu"), *(n.to("tpu") for n in lengths))
        assert_close(loss.detach().cpu(), expected.detach())
        (wanted,), (got,) = torch.autograd.grad(expected, x), torch.autograd.grad(loss, y)
        assert_close(got.cpu(), wanted)
    for frames, labels, name in (([13, 10], [3, 2], "input"), ([12, 10], [4, 2], "target")):
        lengths = torch.tensor(frames, device="tpu"), torch.tensor(labels, device="tpu")
        with pytest.raises(RuntimeError, match=f"Expected {name}_lengths to have values from 0"):
            f(y, targets.to("tpu"), *lengths).item()
