# SPDX-License-Identifier: Apache-2.0
"""Operators that PyTorch's modules take instead of their parts when no gradient is needed."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from torch_tpu import compile as tpu_compile
from torch_tpu.testing.against_cpu import to_tpu

tpu_compile.register()

PADDING = torch.tensor([[False, False, False, True, True], [False] * 5])
CAUSAL = torch.ones(5, 5).triu(1).bool()
MASKS = {
    "none": {},
    "padding": {"src_key_padding_mask": PADDING},
    "causal": {"src_mask": CAUSAL},
    "both": {"src_key_padding_mask": PADDING, "src_mask": CAUSAL},
    "all hidden": {"src_key_padding_mask": torch.ones(2, 5).bool()},  # NaN, as on CPU
}


def compare(module: nn.Module, compiled: bool, *args: torch.Tensor, **kwargs) -> None:
    module = module.eval()
    f = copy.deepcopy(module).to("tpu")
    if compiled:
        torch._dynamo.reset()
        f = torch.compile(f, backend="tpu", fullgraph=True, dynamic=False)
    with torch.no_grad():
        expected = module(*args, **kwargs)
        got = f(*to_tpu(args), **{k: to_tpu((v,))[0] for k, v in kwargs.items()})
    assert_close(torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu, got), expected, equal_nan=True)  # fmt: skip # noqa: E501


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("norm_first, activation", [(False, "relu"), (True, "gelu")])
def test_encoder_layer_for_inference_matches_cpu(norm_first, activation, masks, compiled):
    layer = nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation
    )
    compare(layer, compiled, torch.randn(2, 5, 16), **MASKS[masks])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("weights", [{}, {"average_attn_weights": False}, {"need_weights": False}])
def test_multi_head_attention_for_inference_matches_cpu(weights, compiled):
    mha = nn.MultiheadAttention(8, 2, batch_first=True)
    nn.init.normal_(mha.in_proj_bias)
    x = torch.randn(2, 5, 8)
    compare(mha, compiled, x, x, x, key_padding_mask=PADDING, **weights)


def test_encoder_of_a_padded_batch_matches_cpu_where_it_is_not_padded():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    encoder, x = nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, 5, 16)
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=PADDING)
        got = encoder.to("tpu")(x.to("tpu"), src_key_padding_mask=PADDING.to("tpu")).cpu()
    assert_close(got[~PADDING], expected[~PADDING])


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("compiled", [False, True])
def test_weight_norm_gradients_match_cpu(dim, compiled):
    torch._dynamo.reset()
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(6, 4), dim=dim)
    twin, x = copy.deepcopy(layer).to("tpu"), torch.randn(3, 6)
    f = torch.compile(twin, backend="tpu", fullgraph=True) if compiled else twin
    layer(x).square().sum().backward()
    f(x.to("tpu")).square().sum().backward()
    for p, q in zip(layer.parameters(), twin.parameters(), strict=True):
        assert_close(q.grad.cpu(), p.grad, rtol=1e-4, atol=1e-5)
