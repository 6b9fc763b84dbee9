# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from torch_tpu.testing.against_cpu import assert_matches_cpu, to_tpu

SHAPES = [
    (2, 4, 5, 7, 8, 8),
    (1, 2, 7, 5, 8, 6),
    (1, 1, 1, 9, 4, 4),
    (1, 2, 0, 3, 4, 4),
    (1, 2, 3, 0, 4, 4),
    (1, 2, 129, 127, 16, 16),
]


def qkv(b, h, lq, lk, e, ev, dtype=torch.float32, kv_heads=None):
    hk = kv_heads or h
    return [
        torch.randn(*s, dtype=dtype, requires_grad=True)
        for s in ((b, h, lq, e), (b, hk, lk, e), (b, hk, lk, ev))
    ]


def attend(*args, **kwargs):
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.OVERRIDEABLE]):  # math on CPU, ours on the device
        return F.scaled_dot_product_attention(*args, **kwargs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_matches_cpu(shape, is_causal, scale):
    assert_matches_cpu(
        lambda *x: attend(*x, is_causal=is_causal, scale=scale), *qkv(*shape), rtol=1e-4, atol=1e-4
    )


def mask_of(kind, b, h, lq, lk):
    shape = {
        "full": (b, h, lq, lk),
        "matrix": (lq, lk),
        "keys": (b, 1, 1, lk),
        "heads": (1, h, lq, lk),
    }[kind.split()[-1]]
    return (
        torch.rand(shape) > 0.3
        if kind.startswith("bool")
        else torch.randn(shape, requires_grad=True)
    )


@pytest.mark.parametrize(
    "kind", ["full", "matrix", "keys", "heads", "bool full", "bool matrix", "bool keys"]
)
def test_attention_with_a_mask_matches_cpu(kind):
    b, h, lq, lk = 2, 4, 5, 7
    mask = mask_of(kind, b, h, lq, lk)
    assert_matches_cpu(
        lambda q, k, v, m: attend(q, k, v, attn_mask=m),
        *qkv(b, h, lq, lk, 8, 8),
        mask,
        rtol=1e-4,
        atol=1e-4,
    )


def test_attention_that_sees_no_key_gives_zeros():
    mask = torch.ones(1, 1, 4, 6, dtype=torch.bool)
    mask[..., 2, :] = False
    q, k, v = qkv(1, 2, 4, 6, 8, 8)
    assert_matches_cpu(
        lambda q, k, v, m: attend(q, k, v, attn_mask=m), q, k, v, mask, rtol=1e-4, atol=1e-4
    )
    out = attend(*to_tpu((q, k, v)), attn_mask=mask.to("tpu"))
    assert (out[:, :, 2] == 0).all()


@pytest.mark.parametrize("kv_heads", [1, 2])
@pytest.mark.parametrize("is_causal", [False, True])
def test_grouped_query_attention_matches_cpu(kv_heads, is_causal):
    inputs = qkv(2, 4, 5, 5, 8, 8, kv_heads=kv_heads)
    assert_matches_cpu(
        lambda *x: attend(*x, is_causal=is_causal, enable_gqa=True), *inputs, rtol=1e-4, atol=1e-4
    )


def test_causal_attention_does_not_see_the_future():
    q, k, v = to_tpu(qkv(1, 2, 9, 9, 8, 8))
    before = attend(q, k, v, is_causal=True)
    with torch.no_grad():
        k[:, :, 5:] += 100
        v[:, :, 5:] -= 100
    after = attend(q, k, v, is_causal=True)
    assert torch.equal(before[:, :, :5].cpu(), after[:, :, :5].cpu())
    assert not torch.equal(before[:, :, 5:].cpu(), after[:, :, 5:].cpu())


def test_padded_keys_have_no_influence():
    q, k, v = to_tpu(qkv(2, 2, 3, 6, 8, 8))
    mask = torch.ones(2, 1, 1, 6, dtype=torch.bool, device="tpu")
    mask[0, ..., :2] = False
    before = attend(q, k, v, attn_mask=mask)
    with torch.no_grad():
        k[0, :, :2] += 100
        v[0, :, :2] -= 100
    assert torch.equal(before.cpu(), attend(q, k, v, attn_mask=mask).cpu())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attention_of_16_bit_floats_scores_in_f32(dtype):
    inputs = qkv(2, 4, 33, 65, 16, 16, dtype=dtype)
    tolerance = (
        {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {"rtol": 5e-3, "atol": 5e-3}
    )
    assert_matches_cpu(attend, *inputs, reference=torch.float32, **tolerance)


@pytest.mark.parametrize("shape", [(5, 8), (3, 5, 8), (2, 3, 2, 5, 8)])
def test_attention_of_other_ranks_matches_cpu(shape):
    inputs = [torch.randn(shape, requires_grad=True) for _ in range(3)]
    assert_matches_cpu(attend, *inputs, rtol=1e-4, atol=1e-4)


def test_attention_dropout_drops_the_same_weights_backward():
    q, k = to_tpu([torch.randn(1, 2, 64, 8) for _ in range(2)])
    v = torch.eye(64).expand(1, 2, 64, 64).contiguous().to("tpu").requires_grad_()
    out = attend(q, k, v, dropout_p=0.5)  # v is the identity: out is the dropped weights
    kept = (out != 0).float().mean().item()
    assert 0.45 < kept < 0.55
    whole = attend(q, k, v)
    dropped = out.detach().cpu()
    assert_close(dropped, torch.where(dropped != 0, 2 * whole.detach().cpu(), torch.zeros(())))
    (grad,) = torch.autograd.grad(out, v, torch.ones_like(out))
    assert_close(grad.cpu(), dropped.sum(-2).unsqueeze(-1).expand_as(dropped))  # dv = weights^T 1


def test_attention_dropout_repeats_by_seed_and_differs_without():
    inputs = to_tpu(qkv(1, 1, 8, 8, 4, 4))
    torch.manual_seed(3)
    first, second = attend(*inputs, dropout_p=0.5), attend(*inputs, dropout_p=0.5)
    torch.manual_seed(3)
    again = attend(*inputs, dropout_p=0.5)
    assert torch.equal(first.cpu(), again.cpu())
    assert not torch.equal(first.cpu(), second.cpu())


def test_attention_of_strided_views_matches_cpu():
    base = torch.randn(20000)
    assert_matches_cpu(
        lambda b: attend(*[b.as_strided((2, 4, 8, 16), (512, 128, 16, 1), 997)] * 3),
        base,
        rtol=1e-4,
        atol=1e-4,
    )


def test_nan_in_a_query_or_a_key_is_in_every_row_that_sees_it():
    q, k, v = (torch.randn(1, 2, 40, 8) for _ in range(3))
    q[0, 0, 3, 5], k[0, 1, 33, 0] = torch.nan, torch.nan
    assert_matches_cpu(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), q, k, v)
