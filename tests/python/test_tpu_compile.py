# SPDX-License-Identifier: Apache-2.0
"""The programs that eager and compiled code make, compiled by libtpu for v5e, v6e and v7x: no TPU,
a child process each.

CI compiles a rotating tenth of the databases' programs and one model graph; TORCH_TPU_COMPILE_ALL=1
(make test-tpu-compile) all of them. What the compiler says of each program (memory, FLOPs, time
floor) is written to build/tpu_compile/<target>.json.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves, tree_map

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


def forms(op: OpInfo, dtype: torch.dtype) -> Iterator[Callable[[], Any]]:
    """Calls of `op` with its first sample: forward and backward, `out=`, in place."""
    autograd = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")

    def sample(requires_grad: bool = False) -> SampleInput:
        return next(iter(op.sample_inputs("tpu", dtype, requires_grad=requires_grad)))

    def both_ways() -> None:
        s = sample(autograd)
        result = op(s.input, *s.args, **s.kwargs)
        roots = [
            x
            for x in tree_leaves(s.output_process_fn_grad(result))
            if isinstance(x, torch.Tensor) and x.requires_grad
        ]
        if roots:
            torch.autograd.backward(roots, [torch.ones_like(x) for x in roots])

    def out() -> None:
        s = sample()
        result = op(s.input, *s.args, **s.kwargs)
        op(s.input, *s.args, **s.kwargs, out=tree_map(torch.empty_like, result))

    def in_place() -> None:
        s = sample()
        op.inplace_variant(s.input.clone(), *s.args, **s.kwargs)

    yield both_ways
    if op.supports_out:
        yield out
    if op.inplace_variant is not None:
        yield in_place


def record(calls: Iterable[Callable[[], Any]]) -> dict[str, str]:
    """The programs of these calls. What is missing is the operator tests' matter."""
    with plan.recording() as programs:
        for call in calls:
            with contextlib.suppress(
                NotImplementedError, RuntimeError, StopIteration, TypeError, AssertionError
            ):
                call()
    return programs


def chosen(database: Sequence[Any]) -> list[Any]:
    return [entry for k, entry in enumerate(database) if ALL or k % 10 == TENTH]


def module_calls(info: ModuleInfo) -> Iterator[Callable[[], Any]]:
    for m in info.module_inputs_func(
        info, device="tpu", dtype=torch.float32, requires_grad=True, training=True
    ):

        def call(m: ModuleInput = m) -> None:
            module = info.module_cls(*m.constructor_input.args, **m.constructor_input.kwargs)
            module.to("tpu").train()
            result = module(*m.forward_input.args, **m.forward_input.kwargs)
            roots = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
            roots = [x for x in roots if x.requires_grad]
            torch.autograd.backward(roots, [torch.ones_like(x) for x in roots])

        yield call


def optimizer_calls(info: OptimizerInfo) -> Iterator[Callable[[], Any]]:
    for inputs in info.optim_inputs_func(device="tpu"):

        def call(kwargs: dict[str, Any] = inputs.kwargs) -> None:
            params = [torch.ones(3, 4, device="tpu", requires_grad=True) for _ in range(2)]
            optimizer = info.optim_cls(params, **kwargs)
            for _ in range(2):

                def closure() -> torch.Tensor:
                    optimizer.zero_grad()
                    loss = torch.stack([(p * p).sum() for p in params]).sum()
                    loss.backward()
                    return loss

                optimizer.step(closure)

        yield call


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
def database_programs() -> dict[str, dict[str, str]]:
    """Programs of PyTorch's databases: operators in the first of three dtypes that they have."""

    def dtype(op: OpInfo) -> list[torch.dtype]:
        return [d for d in (torch.float32, torch.int64, torch.bool) if d in op.dtypes][:1]

    return {
        "operators": record(f for op in chosen(op_db) for d in dtype(op) for f in forms(op, d)),
        "modules": record(c for info in chosen(module_db) for c in module_calls(info)),
        "optimizers": record(c for info in chosen(optim_db) for c in optimizer_calls(info)),
    }


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", plan.TARGETS)
@pytest.mark.parametrize("database", ["operators", "modules", "optimizers"])
def test_databases_compile(database_programs, database, target):
    compile_all(database, database_programs[database], target)


@pytest.mark.timeout(3600)
def test_operators_of_other_dtypes_compile():
    calls = (
        next(forms(op, dtype)) for op in chosen(op_db) for dtype in DTYPES if dtype in op.dtypes
    )
    compile_all("operators-dtypes", record(calls), "v6e")


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
