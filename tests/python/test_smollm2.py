# SPDX-License-Identifier: Apache-2.0
"""The main job: unmodified Transformers generates with SmolLM2-135M as it does on the CPU."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

from smollm2 import load_model, load_tokenizer  # noqa: E402

PROMPTS = [
    "Why is the sky blue?",
    "List three uses of a lighthouse.",
    "Write one sentence about bread.",
    "What is the sum of 17 and 25?",
    "Name a river in Africa and say where it ends.",
]
NEW_TOKENS = 64

# All of these share one worker: the model is loaded once, and each program is compiled once.
pytestmark = pytest.mark.xdist_group("smollm2")


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer()


@pytest.fixture(scope="module")
def models():
    return {device: load_model(device) for device in ("cpu", "tpu")}


def chat(tokenizer, prompt: str) -> torch.Tensor:
    return tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )["input_ids"]


def greedy(model, ids: torch.Tensor, **options) -> torch.Tensor:
    ids = ids.to(model.device)
    options = {"attention_mask": torch.ones_like(ids), **options}
    return model.generate(
        ids, do_sample=False, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, **options
    ).cpu()


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_tokens_equal_the_cpus(models, tokenizer, prompt):
    ids = chat(tokenizer, prompt)
    assert_close(greedy(models["tpu"], ids), greedy(models["cpu"], ids), rtol=0, atol=0)


def test_greedy_tokens_with_a_static_cache_equal_the_cpus_with_a_dynamic_one(models, tokenizer):
    ids = chat(tokenizer, PROMPTS[0])
    # disable_compile: `generate` compiles static-cache decoding by itself on some devices; this is
    # the eager path.
    ours = greedy(models["tpu"], ids, cache_implementation="static", disable_compile=True)
    assert_close(ours, greedy(models["cpu"], ids), rtol=0, atol=0)


def test_left_padded_batch_generates_the_cpus_tokens(models, tokenizer):
    rows = [chat(tokenizer, prompt)[0] for prompt in PROMPTS[:4]]
    length = max(map(len, rows))
    assert len({len(row) for row in rows}) > 1, "the batch needs padding"
    ids = torch.stack([torch.nn.functional.pad(row, (length - len(row), 0)) for row in rows])
    mask = torch.stack([torch.arange(length) >= length - len(row) for row in rows]).long()
    outputs = [
        greedy(model, ids, attention_mask=mask.to(model.device)) for model in models.values()
    ]
    assert_close(outputs[1], outputs[0], rtol=0, atol=0)


def test_sampling_repeats_with_the_seed_and_changes_with_it(models, tokenizer):
    model = models["tpu"]
    ids = chat(tokenizer, PROMPTS[2]).to("tpu")

    def sample(seed: int) -> list[int]:
        torch.manual_seed(seed)
        return model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, max_new_tokens=24
        )[0].tolist()

    first = sample(1)
    assert sample(1) == first
    assert sample(2) != first


def test_bfloat16_logits_are_as_near_to_float32_as_the_cpus(models, tokenizer):
    ids = chat(tokenizer, PROMPTS[1])
    half = copy.deepcopy(models["cpu"]).to(torch.bfloat16)

    def logits(model) -> torch.Tensor:
        with torch.no_grad():
            return model(ids.to(model.device)).logits.float().cpu()

    exact, cpu = logits(models["cpu"]), logits(half)
    ours = logits(half.to("tpu"))
    # Two CPU paths (mkldnn on and off) differ by 1.6 at most and 0.15 on average, for logits of up
    # to 38 that lie 0.2 from float32's: so the error is compared, not the values.
    assert (ours - exact).abs().mean() <= 1.25 * (cpu - exact).abs().mean()
    assert (ours - exact).abs().max() <= 2 * (cpu - exact).abs().max()


def test_a_second_generation_compiles_nothing(models, tokenizer):
    from torch_tpu.testing import count_compiles

    ids = chat(tokenizer, PROMPTS[3])
    greedy(models["tpu"], ids)
    with count_compiles() as compiled:
        greedy(models["tpu"], ids)
    assert compiled == []


def compiled(f):
    from torch_tpu import compile as tpu_compile

    tpu_compile.register()
    torch._dynamo.reset()
    return torch.compile(f, backend="tpu", fullgraph=True, dynamic=False)


def only_record(before: int):
    """The graph that was compiled since: one, of one program, of eager's lowerings."""
    from torch_tpu import _C, compile as tpu_compile

    (record,) = tpu_compile.graph_records()[before:]
    assert record.compiled.num_programs == 1
    assert set(record.lowerings) <= set(_C.lowerings())
    return record


def test_compiled_prefill_gives_the_cpus_logits_in_one_program(models):
    from torch_tpu import compile as tpu_compile

    ids = torch.arange(100, 228)[None]
    before = len(tpu_compile.graph_records())
    with torch.no_grad():
        expected = models["cpu"](ids, use_cache=False).logits
        prefill = compiled(lambda ids: models["tpu"](ids, use_cache=False).logits)
        assert_close(prefill(ids.to("tpu")).cpu(), expected, rtol=1e-3, atol=1e-3)
    only_record(before)


def test_compiled_decode_gives_the_cpus_logits_and_writes_its_cache_in_place(models):
    from transformers import StaticCache

    from torch_tpu import compile as tpu_compile
    from torch_tpu.testing import count_compiles

    ids = torch.arange(100, 112)[None]

    def decode(model, wrap):
        cache = StaticCache(config=model.config, max_cache_len=32)
        mine = ids.to(model.device)
        with torch.no_grad():
            model(mine[:, :8], past_key_values=cache, use_cache=True)
            step = wrap(
                lambda token, at: (
                    model(token, position_ids=at, past_key_values=cache, use_cache=True).logits
                )
            )
            place = torch.arange(12, device=model.device)[None]
            logits = [step(mine[:, 8:9], place[:, 8:9]).cpu()]
            with count_compiles() as compiles:
                logits += [step(mine[:, i : i + 1], place[:, i : i + 1]).cpu() for i in (9, 10, 11)]
        return logits, [t for layer in cache.layers for t in (layer.keys, layer.values)], compiles

    expected, theirs, _ = decode(models["cpu"], lambda f: f)
    before = len(tpu_compile.graph_records())
    got, ours, compiles = decode(models["tpu"], compiled)
    for e, a in zip(expected + theirs, got + ours, strict=True):
        assert_close(a.cpu(), e, rtol=1e-3, atol=1e-3)
    # The slice of the step's place is compiled on its second value; the step itself is not.
    assert not [name for name in compiles if "graph" in name]
    nbytes = sum(t.numel() * t.element_size() for t in ours)
    assert only_record(before).compiled.alias_bytes() >= nbytes
