# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torch_tpu.testing.against_cpu import assert_matches_cpu

INDICES, OFFSETS = torch.tensor([1, 2, 2, 0, 3, 2]), torch.tensor([0, 3, 3, 5])


def table(v=5, d=3, dtype=torch.float32):
    return torch.randn(v, d, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding_idx": 2},
        {"padding_idx": -1},
        {"include_last_offset": True},
    ],
)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_embedding_bag_matches_cpu(mode, options, dtype):
    offsets = OFFSETS
    if options.get("include_last_offset"):
        offsets = torch.cat([OFFSETS, torch.tensor([6])])
    assert_matches_cpu(
        lambda i, w, o: F.embedding_bag(i, w, o, mode=mode, **options),
        INDICES.to(dtype),
        table(),
        offsets.to(dtype),
    )


def test_embedding_bag_scales_gradients_by_frequency():
    # Not CPU's embedding_bag: it divides by the frequency of another row when rows repeat.
    w = table()
    F.embedding(INDICES, w, scale_grad_by_freq=True).sum().backward()
    ours = w.detach().to("tpu").requires_grad_()
    i, o = INDICES.to("tpu"), OFFSETS.to("tpu")
    F.embedding_bag(i, ours, o, mode="sum", scale_grad_by_freq=True).sum().backward()
    torch.testing.assert_close(ours.grad.cpu(), w.grad)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_of_a_matrix_of_indices_matches_cpu(mode):
    assert_matches_cpu(
        lambda i, w: F.embedding_bag(i, w, mode=mode), torch.randint(5, (4, 3)), table()
    )


@pytest.mark.parametrize("padding_idx", [None, 2])
def test_embedding_bag_with_weights_of_samples_matches_cpu(padding_idx):
    weights = torch.rand(6).requires_grad_()
    assert_matches_cpu(
        lambda i, w, o, s: F.embedding_bag(
            i, w, o, mode="sum", per_sample_weights=s, padding_idx=padding_idx
        ),
        INDICES,
        table(),
        OFFSETS,
        weights,
    )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("indices, offsets", [([], [0, 0]), ([], []), ([1, 1], [0])])
def test_embedding_bag_of_nothing_and_of_one_bag(mode, indices, offsets):
    assert_matches_cpu(
        lambda i, w, o: F.embedding_bag(i, w, o, mode=mode),
        torch.tensor(indices, dtype=torch.int64),
        table(),
        torch.tensor(offsets, dtype=torch.int64),
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_embedding_bag_of_16_bit_floats_sums_in_f32(dtype):
    i, o = torch.zeros(500, dtype=torch.int64), torch.tensor([0, 100])
    assert_matches_cpu(
        lambda i, w, o: F.embedding_bag(i, w, o, mode="mean"),
        i,
        table(dtype=dtype),
        o,
        reference=torch.float32,
    )


@pytest.mark.parametrize(
    "indices, offsets, text",
    [
        ([1, 5], [0], "not in the valid range"),
        ([-1, 1], [0], "not in the valid range"),
        ([1, 1], [1], "has to be 0"),
        ([1, 1], [0, 3], "can not be greater than input's length 2"),
    ],
)
def test_embedding_bag_refuses_what_cpu_refuses(indices, offsets, text):
    w = table()
    for device in ("cpu", "tpu"):
        i, o = (torch.tensor(x, device=device) for x in (indices, offsets))
        with pytest.raises(RuntimeError, match=text):
            F.embedding_bag(i, w.to(device), o, mode="mean").sum().item()
