# SPDX-License-Identifier: Apache-2.0
"""The rows of the collection of faults that users of other devices reported, and where each is.

A row is a test in this folder whose name starts with its id, or it waits. Rows of other areas
(diffusers, distributed, dynamic shape, generate, install, kernels, profiler) belong to the suites
of those areas.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

ROWS = {
    "CMP": [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25],
    "DTY": [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29],
    "EAG": [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32]
    + [34, 35, 37, 38, 40, 41, 43, 44, 46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61],
    "MEM": [1, 2, 4, 5, 7, 8],
    "RNG": [1, 2, 4, 5, 7, 8, 10, 11, 13],
    "SAV": [1, 2, 4, 5, 7, 8, 10, 11],
    "VIW": [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31],
}  # fmt: skip

WAITING = {
    "SAV-11": "safetensors' own code accepts a fixed list of device names "
    '("device tpu is invalid"); load on the CPU and move',
}


def rows() -> set[str]:
    return {f"{area}-{number:02d}" for area, numbers in ROWS.items() for number in numbers}


def rows_tested() -> set[str]:
    found = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for name in re.findall(r"^def test_(\w+)", path.read_text(), re.MULTILINE):
            ids = re.match(r"([a-z]{3})_(\d\d)((?:_and_\d\d)*)", name)
            if ids:
                numbers = [ids[2], *re.findall(r"\d\d", ids[3])]
                found |= {f"{ids[1].upper()}-{n}" for n in numbers}
    return found


def test_every_row_has_a_test_or_waits_for_something():
    assert rows_tested() | set(WAITING) == rows()
    assert not rows_tested() & set(WAITING)


def test_safetensors_still_refuses_the_device_that_sav_11_waits_for(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    from safetensors.torch import load_file, save_file

    x = torch.arange(6.0).view(2, 3)
    save_file({"x": x}, tmp_path / "x.safetensors")
    for device in ("tpu", "tpu:0"):
        with pytest.raises(safetensors.SafetensorError, match=f"device {device} is invalid"):
            load_file(tmp_path / "x.safetensors", device=device)
        with pytest.raises(safetensors.SafetensorError, match=f"device {device} is invalid"):
            safetensors.safe_open(tmp_path / "x.safetensors", "pt", device=device)
    assert torch.equal(load_file(tmp_path / "x.safetensors")["x"].to("tpu").cpu(), x)


def test_sharded_checkpoint_loads_straight_to_the_device(tmp_path):
    # The part of SAV-11 that does not wait.
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    config = transformers.GPT2Config(vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=32)
    saved = transformers.GPT2LMHeadModel(config)
    saved.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, device_map="tpu")
    for (name, p), q in zip(saved.named_parameters(), loaded.parameters(), strict=True):
        assert q.device.type == "tpu" and torch.equal(q.cpu(), p), name
