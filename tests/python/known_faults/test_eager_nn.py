# SPDX-License-Identifier: Apache-2.0
"""Faults of neural-network operators on other devices: attention, pools, norms, recurrence, steps.

Each test is named by the row of the collection that it stands for; test_rows.py lists the rows.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from torch_tpu.testing.against_cpu import assert_matches_cpu, to_tpu

INF = math.inf


def assert_module_matches_cpu(module: nn.Module, *args: torch.Tensor, **tolerance) -> None:
    """Values and the gradients of parameters and arguments, through functional_call."""
    names = [n for n, _ in module.named_parameters()]
    parameters = [p.detach().requires_grad_() for _, p in module.named_parameters()]

    def f(*tensors):
        weights = dict(zip(names, tensors[: len(names)], strict=True))
        buffers = {n: b.to(tensors[0].device) for n, b in module.named_buffers()}
        return torch.func.functional_call(module, {**weights, **buffers}, tensors[len(names) :])

    assert_matches_cpu(f, *parameters, *args, **tolerance)


def test_eag_31_padding_row_of_an_embedding_gets_no_gradient():
    weight = torch.randn(5, 3, device="tpu", requires_grad=True)
    F.embedding(torch.tensor([0, 1, 1, 2], device="tpu"), weight, padding_idx=0).sum().backward()
    assert weight.grad[:, 0].tolist() == [0, 2, 1, 0, 0]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_eag_31_padding_row_of_an_embedding_bag_gets_no_gradient(mode):
    weight = torch.ones(5, 3, device="tpu", requires_grad=True)
    ids = torch.tensor([0, 1, 0, 2], device="tpu")
    offsets = torch.tensor([0, 2], device="tpu")
    F.embedding_bag(ids, weight, offsets, mode=mode, padding_idx=0).sum().backward()
    assert weight.grad[:, 0].tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_eag_35_log_softmax_of_far_apart_logits(dtype):
    x = torch.tensor([0, 100.0, -200.0], dtype=dtype)
    assert torch.log_softmax(x.to("tpu"), 0).tolist() == [-100, 0, -300]
    assert_matches_cpu(lambda x: torch.logsumexp(x, 0), x)
    assert_matches_cpu(lambda x: torch.logaddexp(x, x.flip(0)), x)


def test_eag_37_rows_that_a_mask_hides():
    q = torch.randn(1, 1, 2, 4, requires_grad=True)
    mask = torch.tensor([[False, False], [True, True]])
    assert_matches_cpu(lambda q, m: F.scaled_dot_product_attention(q, q, q, m), q, mask)
    qt = q.detach().to("tpu").requires_grad_()
    out = F.scaled_dot_product_attention(qt, qt, qt, mask.to("tpu"))
    assert out[0, 0, 0].tolist() == [0, 0, 0, 0]
    out.sum().backward()
    assert qt.grad.isfinite().all()
    assert torch.full((2,), -INF, device="tpu").softmax(0).isnan().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("length", [1, 5, 63, 64, 65, 200])
def test_eag_38_causal_attention_sees_no_future_key(length, dtype):
    q, k, v = (torch.randn(1, 4, length, 64, dtype=dtype, device="tpu") for _ in range(3))
    cut = length // 2 + 1
    before = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    k[:, :, cut:], v[:, :, cut:] = 7.0, -5.0
    after = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.equal(before[:, :, :cut], after[:, :, :cut])
    assert cut >= length or not torch.equal(before, after)


def test_eag_40_mask_broadcast_over_heads_or_batch():
    q = torch.randn(2, 4, 8, 16)
    mask = torch.zeros(2, 1, 8, 8)
    mask[0, :, :, 4:] = -INF
    attend = F.scaled_dot_product_attention
    assert_matches_cpu(attend, q, q, q, mask)
    assert_close(
        attend(*to_tpu((q, q, q, mask))),
        attend(*to_tpu((q, q, q, mask.expand(2, 4, 8, 8).contiguous()))),
    )
    kv = torch.randn(2, 4, 512, 16)
    assert_matches_cpu(attend, q, kv, kv, torch.rand(8, 512) > 0.5)


@pytest.mark.parametrize(
    "size, out", [((5, 5), 3), ((2, 2), 4), ((7, 5), (3, 2)), ((6, 6), (None, 4))]
)
def test_eag_41_adaptive_pools_that_do_not_divide(size, out):
    x = torch.arange(float(size[0] * size[1])).view(1, 1, *size).requires_grad_()
    assert_matches_cpu(lambda x: F.adaptive_max_pool2d(x, out, return_indices=True), x)
    assert_matches_cpu(lambda x: F.adaptive_avg_pool2d(x, out), x)


def test_eag_43_average_pool_options_do_not_share_a_program():
    x, y = torch.ones(1, 3, 3), torch.ones(1, 4, 4)
    for include in (True, False, True):
        assert_matches_cpu(lambda x, i=include: F.avg_pool2d(x, 2, 2, 1, True, i), x)
    for divisor in (2, 3, None):
        assert_matches_cpu(lambda y, d=divisor: F.avg_pool2d(y, 2, divisor_override=d), y)
    assert F.avg_pool2d(y.to("tpu"), 2, divisor_override=2).flatten().tolist() == [2] * 4


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("recompute", [None, True])
def test_eag_44_upsampling_uses_the_given_scale(mode, recompute):
    x = torch.arange(9.0).view(1, 1, 3, 3).requires_grad_()
    align = False if mode in ("bilinear", "bicubic") else None
    assert_matches_cpu(
        lambda x: F.interpolate(
            x, scale_factor=1.5, mode=mode, align_corners=align, recompute_scale_factor=recompute
        ),
        x,
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_eag_44_antialiased_upsampling(mode):
    x = torch.rand(1, 2, 7, 9)
    assert_matches_cpu(lambda x: F.interpolate(x, size=(4, 5), mode=mode, antialias=True), x)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_eag_46_batch_norm_gradients_in_either_memory_format(memory_format, training):
    norm = nn.BatchNorm2d(3).train(training)
    nn.init.uniform_(norm.weight)
    x = torch.randn(4, 3, 8, 8).to(memory_format=memory_format).requires_grad_()
    assert_module_matches_cpu(norm, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer", [nn.Conv1d(4, 3, 3, padding=1), nn.ConvTranspose1d(4, 3, 3)])
def test_eag_47_convolution_backward_of_a_transposed_input(layer):
    x = torch.randn(2, 9, 4)
    a, b = (x.detach().to("tpu").requires_grad_() for _ in range(2))
    weight, bias = (p.detach().to("tpu") for p in layer.parameters())
    f = F.conv1d if isinstance(layer, nn.Conv1d) else F.conv_transpose1d
    f(a.transpose(1, 2), weight, bias).square().sum().backward()
    f(b.transpose(1, 2).contiguous(), weight, bias).square().sum().backward()
    assert_close(a.grad, b.grad)


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, nn.RNN])
def test_eag_49_recurrent_layers_in_both_directions_and_orders(cell):
    torch.manual_seed(1)
    layer = cell(5, 4, 2, bidirectional=True)
    x = torch.randn(7, 3, 5, requires_grad=True)
    assert_module_matches_cpu(layer, x, rtol=1e-4, atol=1e-5)
    first = cell(5, 4, 2, bidirectional=True, batch_first=True)
    first.load_state_dict(layer.state_dict())
    assert_close(
        first.to("tpu")(x.detach().to("tpu").transpose(0, 1))[0].transpose(0, 1),
        layer.to("tpu")(x.detach().to("tpu"))[0],
    )


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_eag_49_packed_sequences(cell):
    layer, x = cell(5, 4), torch.randn(6, 3, 5)

    def pack(x):
        return nn.utils.rnn.pack_padded_sequence(x, [6, 4, 1])

    expected, _ = nn.utils.rnn.pad_packed_sequence(layer(pack(x))[0])
    got, _ = nn.utils.rnn.pad_packed_sequence(layer.to("tpu")(pack(x.to("tpu")))[0])
    assert_close(got.cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_eag_53_argmax_of_softmax(dtype):
    x = torch.tensor(
        [[-0.5, 0.25], [1.5, -1.25], [-0.75, 0.5], [-2.5, 2]], dtype=dtype, device="tpu"
    )
    assert x.softmax(1).argmax(1).tolist() == [1, 0, 1, 1]
    assert x.softmax(1).max(1).indices.tolist() == [1, 0, 1, 1]
    assert x.softmax(1).max(1).values.dtype == dtype


@pytest.mark.parametrize("kind", ["fused", "foreach", "plain"])
@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_eag_56_scaler_skips_a_step_with_an_infinite_gradient(optimizer, kind):
    p = torch.ones(4, device="tpu", requires_grad=True)
    q = torch.ones(3, device="tpu", requires_grad=True)
    opt = optimizer([p, q], lr=0.1, fused=kind == "fused", foreach=kind == "foreach")
    scaler = torch.amp.GradScaler("tpu", init_scale=4.0)
    for bad in (True, False):
        p.grad, q.grad = torch.full((4,), 4.0, device="tpu"), torch.full((3,), 4.0, device="tpu")
        if bad:
            p.grad[1] = INF
        scaler.scale(torch.ones((), device="tpu"))
        scaler.step(opt)
        scaler.update()
        assert (p.tolist() == [1.0] * 4) is bad and (q.tolist() == [1.0] * 3) is bad


def test_eag_56_fused_adam_obeys_found_inf_and_grad_scale():
    p = torch.ones(4, device="tpu", requires_grad=True)
    p.grad = torch.ones(4, device="tpu")
    opt = torch.optim.Adam([p], lr=0.1, fused=True)
    opt.grad_scale, opt.found_inf = torch.tensor(1.0, device="tpu"), torch.tensor(1.0, device="tpu")
    opt.step()
    assert p.tolist() == [1.0] * 4
    opt.found_inf = torch.tensor(0.0, device="tpu")
    opt.step()
    assert p.tolist() != [1.0] * 4


@pytest.fixture(scope="module")
def vision():
    """Operators as torchvision has them: of another library, with CPU kernels only."""
    library = torch.library.Library("tpu_test_vision", "DEF")
    library.define("nms(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
    library.define("roi_align(Tensor input, Tensor rois, int height, int width) -> Tensor")
    library.impl("nms", lambda boxes, scores, t: scores.argsort(descending=True)[:2], "CPU")
    library.impl("roi_align", lambda x, rois, h, w: F.adaptive_avg_pool2d(x, (h, w)), "CPU")
    yield torch.ops.tpu_test_vision
    library._destroy()


@pytest.mark.host_fallback
def test_eag_61_operator_of_another_library_is_named_and_can_run_on_the_host(vision):
    boxes, scores = torch.rand(3, 4), torch.tensor([0.9, 0.1, 0.5])
    x, rois = torch.rand(1, 1, 8, 8), torch.rand(1, 5)
    for name, call, args in (
        ("nms", vision.nms, (boxes, scores, 0.5)),
        ("roi_align", vision.roi_align, (x, rois, 4, 4)),
    ):
        with pytest.raises(
            NotImplementedError, match=f"tpu_test_vision::{name} .*for tpu: got Flo"
        ):
            call(*to_tpu(args))
        with torch.tpu.allow_host_fallback():
            before = torch.tpu.fallback_stats().get(f"tpu_test_vision::{name}", 0)
            got = call(*to_tpu(args))
            assert torch.tpu.fallback_stats()[f"tpu_test_vision::{name}"] == before + 1
        assert got.device.type == "tpu" and torch.equal(got.cpu(), call(*args))
