# SPDX-License-Identifier: Apache-2.0
"""Operators said in terms of others where PyTorch has no decomposition of its own.

Each has the operator's schema; what CPU's kernel refuses and its meta function lets through is not
refused here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from torch_tpu._internal import fractional_pool, histogram, segment_reduce

aten = torch.ops.aten


def _merged_mask(mask: Tensor, mask_type: int | None) -> Tensor:
    """The mask of MultiheadAttention's fast path as bools that broadcast to [batch, heads, queries,
    keys]; where it is not zero the key is hidden (-inf of an additive mask, True of a bool one).
    """
    hidden = mask.to(torch.bool)
    if mask_type == 1:  # [batch, keys]
        return hidden[:, None, None, :]
    return hidden  # 0: [queries, keys], 2: [batch, heads, queries, keys]


def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """nn.MultiheadAttention without gradients: [batch, queries, width], and the weights if asked.

    softmax(q k^T / sqrt(head width)) v by head, then the output projection; a row that the mask
    hides entirely is NaN, as on CPU.
    """
    projected = [
        F.linear(x, w, b).unflatten(-1, (num_head, -1)).transpose(1, 2)
        for x, w, b in zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    ]
    q, k, v = projected
    scores = (q * (embed_dim // num_head) ** -0.5) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(_merged_mask(mask, mask_type), -torch.inf)
    weights = scores.softmax(-1)
    out = F.linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, weights.mean(1) if average_attn_weights else weights


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """nn.TransformerEncoderLayer without gradients: attention and feed-forward, each with its
    residual and its LayerNorm (before it if `norm_first`, else after the sum).
    """

    def attend(x: Tensor) -> Tensor:
        qkv = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return native_multi_head_attention(
            x, x, x, embed_dim, num_heads, *qkv, mask, need_weights=False, mask_type=mask_type
        )[0]

    def feed_forward(x: Tensor) -> Tensor:
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = F.gelu(hidden) if use_gelu else F.relu(hidden)
        return F.linear(hidden, ffn_weight_2, ffn_bias_2)

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), weight, bias, eps)

    x = src
    for f, weight, bias in (
        (attend, norm_weight_1, norm_bias_1),
        (feed_forward, norm_weight_2, norm_bias_2),
    ):
        x = x + f(norm(x, weight, bias)) if norm_first else norm(x + f(x), weight, bias)
    return x


def weight_norm_interface_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Gradients (v's, g's) of w = g v / |v|, with the norm over all dimensions but `dim`."""
    dims = [d for d in range(saved_v.dim()) if d != dim]
    norms = saved_norms.to(saved_g.dtype)
    along = (grad_w * saved_v).sum(dims, keepdim=True)
    grad_v = saved_g / norms * (grad_w - saved_v * (along / (norms * norms)))
    return grad_v, along / norms


TABLE: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    aten._native_multi_head_attention.default: native_multi_head_attention,
    aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
    aten._weight_norm_interface_backward.default: weight_norm_interface_backward,
    **fractional_pool.TABLE,
    **histogram.TABLE,
    **segment_reduce.TABLE,
}
