# SPDX-License-Identifier: Apache-2.0
"""The programs that eager and compiled code make, compiled by libtpu for v5e, v6e and v7x: no TPU,
a child process each.

CI compiles a rotating tenth of the operators' programs and one model graph; TORCH_TPU_COMPILE_ALL=1
(make test-tpu-compile) all of them. What the compiler says of each program (memory, FLOPs, time
floor) is written to build/tpu_compile/<target>.json.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

from torch_tpu import plan
from torch_tpu._internal import platform

pytestmark = [
    pytest.mark.tpu_compile,
    pytest.mark.skipif(not platform.libtpu_path(), reason="the libtpu wheel is not installed"),
    pytest.mark.xdist_group("tpu_compile"),
]

ALL = os.environ.get("TORCH_TPU_COMPILE_ALL") == "1"
TENTH = datetime.date.today().toordinal() % 10
REPORTS = Path(__file__).parents[2] / "build" / "tpu_compile"

# Programs that libtpu refuses, by operator, with what it says: found by compiling all, not guessed.
FFT_OF_DOUBLES = "Unexpected operand type for FFT: "  # f64 and c128: XLA's TPU compiler has none
REFUSED: dict[str, str] = {
    "aten::_fft_r2c": FFT_OF_DOUBLES,  # f64, or c128 after the first dimension
    "aten::_fft_c2c": FFT_OF_DOUBLES + "c128",
    "aten::_fft_c2r": FFT_OF_DOUBLES + "c128",
}
DTYPES = [
    torch.bool,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.float64,
    torch.complex64,
    torch.bfloat16,
]


def train(model: nn.Module, *inputs: torch.Tensor) -> None:
    model = model.to("tpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        out = model(*[i.to("tpu") for i in inputs])
        out = out[0] if isinstance(out, tuple) else out
        out.square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.out = (
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.Linear(128, 10),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).flatten(1))


MODELS = {
    "mlp": lambda: train(
        nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 4)),
        torch.randn(8, 16),
    ),
    "cnn": lambda: train(Cnn(), torch.randn(4, 1, 8, 8)),
    "transformer": lambda: train(
        nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), torch.randn(2, 7, 32)
    ),
    "lstm": lambda: train(nn.LSTM(8, 16, batch_first=True), torch.randn(2, 5, 8)),
}


def record_operators(dtypes_of: Callable[[OpInfo], list[torch.dtype]]) -> dict[str, str]:
    """One sample of each operator of PyTorch's database in each of `dtypes_of(op)`, forward.

    What is missing is the operator tests' matter.
    """
    chosen = [op for k, op in enumerate(op_db) if ALL or k % 10 == TENTH]
    with plan.recording() as programs:
        for op, dtype in [(o, dtype) for o in chosen for dtype in dtypes_of(o)]:
            try:
                sample = next(iter(op.sample_inputs("tpu", dtype)))
                op(sample.input, *sample.args, **sample.kwargs)
            except (NotImplementedError, RuntimeError, StopIteration, TypeError, AssertionError):
                continue
    return programs


def compile_all(name: str, programs: dict[str, str], target: str) -> None:
    assert programs, "nothing was recorded"
    records = plan.compile_programs([(n, text) for text, n in programs.items()], target)
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / f"{name}-{target}.json").write_text(json.dumps(records, indent=1))
    failed = {
        r["name"]: r["error"][:400]
        for r in records
        if not r["ok"] and REFUSED.get(r["name"], "not listed") not in r["error"]
    }
    assert not failed, (
        f"{len(failed)} of {len(records)} programs do not compile for {target}: "
        + json.dumps(failed, indent=1)
    )
    assert all(r["memory"]["code"] > 0 for r in records if r["ok"])


@pytest.fixture(scope="module")
def operator_programs() -> dict[str, str]:
    return record_operators(
        lambda op: [d for d in (torch.float32, torch.int64, torch.bool) if d in op.dtypes][:1]
    )


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", plan.TARGETS)
def test_operators_compile(operator_programs, target):
    compile_all("operators", operator_programs, target)


@pytest.mark.timeout(3600)
def test_operators_of_other_dtypes_compile():
    programs = record_operators(lambda op: [d for d in DTYPES if d in op.dtypes])
    compile_all("operators-dtypes", programs, "v6e")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", plan.TARGETS)
def test_products_and_convolutions_of_integers_compile(target):
    def ones(*shape: int) -> torch.Tensor:
        return torch.ones(shape, dtype=torch.int64, device="tpu")

    with plan.recording() as programs:
        ones(3, 4) @ ones(4, 5)
        ones(2, 3, 4) @ ones(2, 4, 5)
        torch.addmm(ones(5), ones(3, 4), ones(4, 5))
        ones(4) @ ones(4)
        torch.einsum("abc,cbd->ad", ones(2, 3, 4), ones(4, 3, 5))
        F.conv1d(ones(2, 3, 8), ones(4, 3, 3))
        F.conv2d(ones(2, 4, 8, 8), ones(4, 2, 3, 3), stride=2, padding=1, groups=2)
        F.conv_transpose2d(ones(2, 4, 8, 8), ones(4, 2, 3, 3), stride=2)
        F.conv3d(ones(2, 3, 8, 8, 8), ones(4, 3, 3, 3, 3))
    compile_all("integers", programs, target)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", plan.TARGETS)
def test_max_pool_of_one_dimension_compiles(target):
    with plan.recording() as programs:
        for shape in [(3, 8), (2, 3, 8)]:
            x = torch.randn(shape, device="tpu", requires_grad=True)
            F.max_pool1d(x, 2, padding=1).sum().backward()
    compile_all("max-pool", programs, target)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", plan.TARGETS if ALL else ["v6e"])
@pytest.mark.parametrize("model", MODELS)
def test_training_programs_compile(model, target):
    with plan.recording() as programs:
        MODELS[model]()
    compile_all(model, programs, target)


def compiled(f, fullgraph: bool = True):
    from torch_tpu import compile as tpu_compile

    tpu_compile.register()
    torch._dynamo.reset()
    return torch.compile(f, backend="tpu", fullgraph=fullgraph, dynamic=False)


def compiled_training(model: nn.Module, *inputs: torch.Tensor) -> None:
    """Forward, backward and the AdamW step, each one program."""
    model = model.to("tpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = compiled(lambda *inputs: model(*inputs).square().mean())
    loss(*[i.to("tpu") for i in inputs]).backward()
    compiled(optimizer.step, fullgraph=False)()


def compiled_prefill_and_decode(model: nn.Module, tokens: int, cache_length: int) -> None:
    from transformers import StaticCache

    model = model.to("tpu").eval()
    ids = torch.arange(tokens, device="tpu")[None]
    with torch.no_grad():
        compiled(lambda ids: model(ids, use_cache=False).logits)(ids)
        cache = StaticCache(config=model.config, max_cache_len=cache_length)
        model(ids, past_key_values=cache, use_cache=True)
        step = compiled(
            lambda token, at: (
                model(token, position_ids=at, past_key_values=cache, use_cache=True).logits
            )
        )
        step(ids[:, :1], torch.tensor([[tokens]], device="tpu"))


def tiny_llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config)


def smollm2() -> nn.Module:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
    from smollm2 import load_model

    return load_model("tpu")


# name: (what is run, parts of the names of the programs that it must have made)
COMPILED = {
    "compiled-mlp": (
        lambda: compiled_training(
            nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 4)),
            torch.randn(8, 16),
        ),
        ("forward", "backward", "inference"),
    ),
    "compiled-cnn": (
        lambda: compiled_training(Cnn(), torch.randn(4, 1, 8, 8)),
        ("forward", "backward", "inference"),
    ),
    "compiled-transformer": (
        lambda: compiled_training(
            nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), torch.randn(2, 7, 32)
        ),
        ("forward", "backward", "inference"),
    ),
    "compiled-llama": (
        lambda: compiled_prefill_and_decode(tiny_llama(), 16, 32),
        ("inference",),
    ),
}
if ALL:
    COMPILED["compiled-smollm2"] = (
        lambda: compiled_prefill_and_decode(smollm2(), 128, 256),
        ("inference",),
    )
ROTATING = [list(COMPILED)[datetime.date.today().toordinal() % len(COMPILED)]]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", plan.TARGETS if ALL else ["v7x"])
@pytest.mark.parametrize("name", COMPILED if ALL else ROTATING)
def test_compiled_graphs_compile(name, target):
    run, parts = COMPILED[name]
    with plan.recording() as programs:
        run()
    for part in parts:
        assert any(f".{part}" in n for n in programs.values()), part
    compile_all(name, programs, target)


def test_reports_hold_memory_flops_and_time_of_each_program():
    with plan.recording() as programs:
        x = torch.randn(64, 64, device="tpu")
        (x @ x).sum().item()
    compile_all("report", programs, "v6e")
    records = json.loads((REPORTS / "report-v6e.json").read_text())
    product = next(r for r in records if r["name"] == "aten::mm")
    assert product["flops"] >= 2 * 64**3 and product["bytes"] >= 2 * 64 * 64 * 4
    assert product["floor_seconds"] > 0
    assert product["memory"]["arguments"] >= 64 * 64 * 4
    assert {r["name"] for r in records} == set(programs.values())
