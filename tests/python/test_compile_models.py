# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501
"""torch.compile(backend="tpu") of models: inference and training steps against CPU eager, one program a graph."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from torch_tpu import _C, compile as tpu_compile
from torch_tpu.testing import child, count_compiles
from torch_tpu.testing.against_cpu import to_tpu

tpu_compile.register()

IDS = torch.arange(22).view(2, 11) * 7 % 90 + 3


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def compiled(f):
    return torch.compile(f, backend="tpu", fullgraph=True, dynamic=False)


def transformer(kind: str, **sizes) -> Callable[[], nn.Module]:
    """A tiny model of transformers, without dropout, from a config."""

    def make() -> nn.Module:
        transformers = pytest.importorskip("transformers")
        config_name, model_name = kind.split("/")
        config = getattr(transformers, config_name)(**sizes)
        for name, value in vars(config).items():
            if "drop" in name and isinstance(value, float):
                setattr(config, name, 0.0)
        config.loss_type = None if "Image" in model_name else "ForCausalLMLoss"
        return getattr(transformers, model_name)(config)

    return make


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.up, self.groups = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.GroupNorm(2, 4)
        self.out = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.avg_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.out(self.groups(self.up(x)).amax((2, 3)))


class Counting(nn.Module):
    """Buffers that forward writes, one of which the gradient needs as it was."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.register_buffer("n", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n += 1
        y = self.linear(x)
        with torch.no_grad():
            self.mean.lerp_(y.mean(0).detach(), 0.1)
        return y * self.n + self.mean


class ScaledSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad * ctx.k, None


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))


def hooked() -> nn.Module:
    model = mlp()
    model[0].register_forward_hook(lambda module, inputs, output: output * 2)
    model[1].register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    return model


def square(model, *inputs):
    return model(*inputs).square().mean()


def language(model, ids):
    return F.cross_entropy(model(input_ids=ids).logits.flatten(0, 1), ids.flatten())


def in_bfloat16(model, x):
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        return model(x).float().square().mean()


SMALL = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)  # fmt: skip
VECTORS = [torch.linspace(-1, 2, 30).view(5, 6)]
IMAGES = [torch.linspace(-1, 1, 768).view(4, 3, 8, 8).sin(), torch.tensor([0, 1, 2, 1])]
# name: (model, loss, inputs, tolerance)
TRAINED: dict[str, tuple[Callable[[], nn.Module], Callable, list[torch.Tensor], float]] = {
    "llama": (transformer("LlamaConfig/LlamaForCausalLM", **SMALL, num_key_value_heads=2), language, [IDS], 1e-4),
    "gpt2": (transformer("GPT2Config/GPT2LMHeadModel", vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=64), language, [IDS], 1e-4),
    "bert": (transformer("BertConfig/BertForMaskedLM", **SMALL), language, [IDS], 1e-4),
    "t5": (transformer("T5Config/T5ForConditionalGeneration", vocab_size=97, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0), lambda m, i: m(input_ids=i, labels=i).loss, [IDS], 1e-3),
    "vit": (transformer("ViTConfig/ViTForImageClassification", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=8, patch_size=4, num_labels=5), lambda m, x, y: F.cross_entropy(m(pixel_values=x).logits, y), IMAGES, 1e-4),
    "cnn": (Cnn, lambda m, x, y: F.cross_entropy(m(x), y), IMAGES, 1e-3),
    "cnn, channels last": (Cnn, lambda m, x, y: F.cross_entropy(m(x), y), [IMAGES[0].contiguous(memory_format=torch.channels_last), IMAGES[1]], 1e-3),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True), 2, enable_nested_tensor=False), square, [torch.linspace(-2, 2, 160).view(2, 5, 16).sin()], 1e-4),
    "buffers": (Counting, square, VECTORS, 1e-4),
    "hooks": (hooked, square, VECTORS, 1e-4),
    "autocast": (mlp, in_bfloat16, VECTORS, 2e-2),
    "checkpoint": (mlp, lambda m, x: checkpoint(m, x, use_reentrant=False).square().mean(), VECTORS, 1e-4),
    "custom function": (mlp, lambda m, x: ScaledSquare.apply(m(x), 3).mean(), VECTORS, 1e-4),
    "embedding bag": (lambda: nn.EmbeddingBag(97, 4, mode="mean"), square, [IDS], 1e-4),
}  # fmt: skip


def train(model: nn.Module, loss: Callable, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Losses of three steps, then parameters and buffers."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    seen: list[torch.Tensor] = []
    for _ in range(3):
        optimizer.zero_grad()
        value = loss(model, *inputs)
        value.backward()
        optimizer.step()
        seen.append(value.detach().cpu())
    return seen + [t.detach().cpu() for t in (*model.parameters(), *model.buffers())]


@pytest.mark.parametrize("name", TRAINED)
def test_training_steps_match_cpu_and_each_graph_is_one_program(name):
    make, loss, inputs, tolerance = TRAINED[name]
    model = make().train()
    twin = copy.deepcopy(model).to("tpu")
    expected = train(model, loss, inputs)
    before = len(tpu_compile.graph_records())
    got = train(twin, compiled(loss), to_tpu(inputs))
    for e, a in zip(expected, got, strict=True):
        assert_close(a, e, rtol=tolerance, atol=tolerance)
    records = tpu_compile.graph_records()[before:]
    assert {r.name.split(".")[1] for r in records} == {"forward", "backward"}
    assert all(r.compiled.num_programs == 1 for r in records)
    assert {n for r in records for n in r.lowerings} <= set(_C.lowerings())


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01),
    "adamw, fused": lambda p: torch.optim.AdamW(p, 0.01, fused=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.1),
    "nadam": lambda p: torch.optim.NAdam(p, 0.01),
    "adamax": lambda p: torch.optim.Adamax(p, 0.01),
    "adadelta": lambda p: torch.optim.Adadelta(p, 1.0),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_compiled_optimizer_steps_match_cpu(name):
    model = mlp()
    twin = copy.deepcopy(model).to("tpu")
    for net, inputs, wrap in (
        (model, VECTORS, lambda step: step),
        (twin, to_tpu(VECTORS), lambda step: torch.compile(step, backend="tpu", dynamic=False)),
    ):
        optimizer = OPTIMIZERS[name](net.parameters())
        step = wrap(optimizer.step)
        for _ in range(5):
            optimizer.zero_grad()
            square(net, *inputs).backward()
            step()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert_close(q.cpu(), p, rtol=1e-3, atol=1e-4)


def test_decode_writes_the_static_cache_in_its_own_buffers():
    transformers = pytest.importorskip("transformers")
    model = transformer("LlamaConfig/LlamaForCausalLM", **SMALL, num_key_value_heads=2)().eval()
    twin = copy.deepcopy(model).to("tpu")

    def decode(net, device, wrap):
        cache = transformers.StaticCache(config=net.config, max_cache_len=32)
        ids = IDS.to(device)
        logits = []
        with torch.no_grad():
            net(ids[:, :4], past_key_values=cache, use_cache=True)
            step = wrap(
                lambda token, at: (
                    net(token, position_ids=at, past_key_values=cache, use_cache=True).logits
                )
            )
            for i in range(4, 8):
                logits.append(step(ids[:, i : i + 1], torch.tensor([[i]], device=device)).cpu())
        return logits, [t for layer in cache.layers for t in (layer.keys, layer.values)]

    expected, theirs = decode(model, "cpu", lambda f: f)
    before = len(tpu_compile.graph_records())
    got, ours = decode(twin, "tpu", compiled)
    for e, a in zip(expected + theirs, got + ours, strict=True):
        assert_close(a.cpu(), e, rtol=1e-4, atol=1e-5)
    (record,) = tpu_compile.graph_records()[before:]
    assert record.compiled.num_programs == 1
    # The plugin's own account of what the program writes where its operands lie.
    assert record.compiled.alias_bytes() >= sum(t.numel() * t.element_size() for t in ours)


def test_one_compiled_step_of_model_loss_and_optimizer_repeats_without_compiles():
    model = mlp().to("tpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loss, update = compiled(square), torch.compile(optimizer.step, backend="tpu", dynamic=False)
    inputs = to_tpu(VECTORS)

    def step() -> float:
        optimizer.zero_grad()
        value = loss(model, *inputs)
        value.backward()
        update()
        return value.item()

    losses = [step() for _ in range(3)]
    with count_compiles() as compiles:
        losses += [step() for _ in range(3)]
    assert compiles == [] and losses == sorted(losses, reverse=True)


def test_second_process_compiles_nothing_for_training_and_decoding(tmp_path):
    program = """
        import json, torch, torch_tpu
        from torch import nn
        from torch_tpu import compile as tpu_compile
        tpu_compile.register()
        def compiled(f):
            return torch.compile(f, backend="tpu", fullgraph=True, dynamic=False)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 2)).to("tpu")
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        loss = compiled(lambda m, x: m(x).square().mean())
        update = torch.compile(optimizer.step, backend="tpu", dynamic=False)
        for _ in range(2):
            optimizer.zero_grad()
            value = loss(model, torch.ones(4, 6, device="tpu"))
            value.backward()
            update()
        cache = torch.zeros(8, 4, device="tpu")
        write = compiled(lambda c, i, x: c.index_copy_(0, i, x).sum())
        write(cache, torch.tensor([3], device="tpu"), torch.ones(1, 4, device="tpu"))
        stats = torch.tpu.compile_stats()
        print(json.dumps([stats["compiles"], len(tpu_compile.graph_records()), value.item(), cache.sum().item()]))
    """
    runs = [
        json.loads(child.run(program, TORCH_TPU_CACHE_DIR=str(tmp_path)).stdout.splitlines()[-1])
        for _ in range(2)
    ]
    assert runs[0][0] > 0 and runs[1][0] == 0
    assert runs[0][1:] == runs[1][1:]
