# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu


def table(v=7, d=4, dtype=torch.float32):
    return torch.randn(v, d, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (2, 0)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_embedding_matches_cpu(shape, dtype):
    assert_matches_cpu(F.embedding, torch.randint(7, shape, dtype=dtype), table())


def test_embedding_adds_the_gradients_of_repeated_rows():
    assert_matches_cpu(F.embedding, torch.tensor([[1, 1, 3], [1, 0, 3]]), table())


@pytest.mark.parametrize("padding_idx", [1, -1, None])
@pytest.mark.parametrize("scale_grad_by_freq", [False, True])
def test_embedding_options_match_cpu(padding_idx, scale_grad_by_freq):
    def call(i, w):
        return F.embedding(i, w, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq)

    assert_matches_cpu(call, torch.tensor([1, 1, 6, 3, 6, 6]), table())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_embedding_of_16_bit_floats_sums_in_f32(dtype):
    indices = torch.zeros(500, dtype=torch.int64)
    assert_matches_cpu(F.embedding, indices, table(dtype=dtype), reference=torch.float32)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
def test_embedding_renorm_shrinks_only_the_rows_it_reads(norm_type):
    weight, indices = torch.randn(7, 4) * 3, torch.tensor([1, 3, 3])
    ours, theirs = weight.to("tpu"), weight.clone()
    out = F.embedding(indices.to("tpu"), ours, max_norm=1.5, norm_type=norm_type)
    assert_close(out.cpu(), F.embedding(indices, theirs, max_norm=1.5, norm_type=norm_type))
    assert_close(ours.cpu(), theirs)


def test_indices_share_one_program():
    weight, indices = table().detach().to("tpu"), torch.tensor([1, 2]).to("tpu")
    F.embedding(indices, weight)
    with count_compiles() as compiled:
        F.embedding(torch.tensor([0, 6]).to("tpu"), weight)
    assert compiled == []


@pytest.mark.parametrize("index", [7, -1, 2**40])
def test_an_index_out_of_range_reads_as_on_cpu(index):
    assert_same_error(
        lambda d: F.embedding(torch.tensor([0, index], device=d), torch.ones(7, 4, device=d))
    )


def test_the_device_works_on_after_an_index_out_of_range():
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(torch.tensor([9], device="tpu"), torch.ones(7, 4, device="tpu")).cpu()
    assert_close(
        F.embedding(torch.tensor([6], device="tpu"), torch.ones(7, 4, device="tpu")).cpu(),
        torch.ones(1, 4),
    )


def test_indices_of_floats_are_refused_as_on_cpu():
    assert_same_error(lambda d: F.embedding(torch.ones(2, device=d), torch.ones(7, 4, device=d)))
