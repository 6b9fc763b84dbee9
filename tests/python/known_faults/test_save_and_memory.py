# SPDX-License-Identifier: Apache-2.0
"""Faults of saving, loading and memory on other devices.

Each test is named by the row of the collection that it stands for; test_rows.py lists the rows.
"""

from __future__ import annotations

import copy
import gc
import io
import pickle
import resource

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from torch_tpu.testing import child


def saved(x) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(x, buffer)
    buffer.seek(0)
    return buffer


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(11, 6), nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


def test_sav_01_storages_have_addresses_and_safetensors_saves_them(tmp_path):
    from safetensors.torch import load_file, save_file

    a, b = torch.randn(4, 3, device="tpu"), torch.randn(5, device="tpu").bfloat16()
    assert a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr() != 0
    assert a[1:].untyped_storage().data_ptr() == a.untyped_storage().data_ptr()
    save_file({"a": a, "b": b}, tmp_path / "x.safetensors")
    loaded = load_file(tmp_path / "x.safetensors")
    assert torch.equal(loaded["a"], a.cpu()) and torch.equal(loaded["b"], b.cpu())


def test_sav_02_tied_weights_stay_tied_through_move_step_and_checkpoint():
    model = Tied().to("tpu")
    assert model.head.weight is model.embed.weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.tensor([1, 2], device="tpu")).square().sum().backward()
    optimizer.step()
    state = torch.load(saved(model.state_dict()), map_location="cpu")
    assert list(state) == list(Tied().state_dict())
    loaded = Tied()
    loaded.load_state_dict(state)
    assert loaded.head.weight is loaded.embed.weight
    assert torch.equal(loaded.head.weight, model.embed.weight.cpu())


@pytest.mark.parametrize("device", ["cpu", "tpu"])
def test_sav_04_saved_view_keeps_its_offset(device):
    x = torch.arange(10, device=device)
    view = torch.load(saved(x[3:5]))
    assert view.tolist() == [3, 4] and view.storage_offset() == 3 and view.device.type == device
    assert view.to("tpu").tolist() == [3, 4] and view.cpu().tolist() == [3, 4]
    strided = torch.load(saved(x[1::3]))
    assert strided.tolist() == [1, 4, 7] and strided.stride() == (3,)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_sav_05_pickled_state_dict_comes_back_on_the_device(protocol):
    state = nn.Linear(8, 8).to("tpu").state_dict()
    loaded = pickle.loads(pickle.dumps(state, protocol))
    for name, x in state.items():
        assert loaded[name].device.type == "tpu" and torch.equal(loaded[name], x)


def test_sav_05_queue_to_another_process_refuses_and_names_the_way():
    import multiprocessing.reduction

    import torch.multiprocessing  # noqa: F401  registers how tensors are sent

    x = torch.ones(3, device="tpu")
    with pytest.raises(RuntimeError, match=r"another process.*x\.cpu\(\)"):
        multiprocessing.reduction.ForkingPickler.dumps(x)
    with pytest.raises(RuntimeError, match=r"another process.*x\.cpu\(\)"):
        multiprocessing.reduction.ForkingPickler.dumps({"w": nn.Parameter(x)})


def test_sav_07_location_tags_are_whole_device_names():
    x = torch.arange(3.0, device="tpu")
    for location in ("tpu", "tpu:0", torch.device("tpu", 0)):
        assert torch.load(saved(x), map_location=location).device == torch.device("tpu:0")
    with pytest.raises(RuntimeError, match="tpu"):
        torch.load(saved(x), map_location="tpu:7")


def test_sav_08_checkpoint_loads_where_the_backend_is_not(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"w": torch.arange(4.0, device="tpu")}, path)
    program = f"""
        import torch
        assert torch.load({str(path)!r}, map_location="cpu")["w"].tolist() == [0, 1, 2, 3]
        try:
            torch.load({str(path)!r})
        except Exception as e:
            text = str(e).lower()
            assert "map_location" in text or "tpu" in text or "privateuse" in text, e
        else:
            raise SystemExit("it loaded without a device")
        """
    child.run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.Adam(p, 0.1),
        lambda p: torch.optim.AdamW(p, 0.1, foreach=True),
        lambda p: torch.optim.Adam(p, 0.1, fused=True),
    ],
)
def test_sav_10_optimizer_state_of_the_cpu_moves_to_the_parameters(make):
    start = torch.randn(5)
    p, q = start.clone().requires_grad_(), start.clone().to("tpu").requires_grad_()
    cpu, tpu = make([p]), make([q])
    for _ in range(2):
        p.grad = torch.ones(5)
        cpu.step()
    tpu.load_state_dict(
        copy.deepcopy(cpu.state_dict())
    )  # or the two would share their step counters
    with torch.no_grad():
        q.copy_(p)
    moments = [s for s in tpu.state[q].values() if isinstance(s, torch.Tensor) and s.dim()]
    assert moments and all(m.device.type == "tpu" for m in moments)
    p.grad, q.grad = torch.ones(5), torch.ones(5, device="tpu")
    cpu.step(), tpu.step()
    assert_close(q.detach().cpu(), p.detach())


def test_mem_01_memory_comes_back_after_del():
    x = torch.zeros(1 << 20, device="tpu") + 1  # numbers that programs take stay on the device
    del x
    gc.collect()
    before = torch.tpu.memory_allocated()
    for _ in range(20):
        x = torch.zeros(1 << 20, device="tpu") + 1
        assert torch.tpu.memory_allocated() >= before + (4 << 20)
        del x
        gc.collect()
        torch.tpu.empty_cache()
        assert torch.tpu.memory_allocated() == before
    model = nn.Linear(64, 64).to("tpu")
    model.to("cpu")
    gc.collect()
    assert torch.tpu.memory_allocated() == before


def test_mem_02_host_copy_of_a_moved_module_is_freed():
    child.run(
        """
        import gc, torch, torch_tpu
        def rss():
            return int(open("/proc/self/statm").read().split()[1]) * 4096
        torch.ones(3).to("tpu").cpu()
        big = 256 << 20
        module = torch.nn.Linear(1 << 13, 1 << 13, bias=False)  # 256 MiB
        torch.nn.init.zeros_(module.weight)
        held = rss()
        module.to("tpu")
        gc.collect()
        # XLA:CPU's device memory is host memory too: one copy is held, not two.
        assert rss() < held + 0.25 * big, (held, rss())
        """,
        timeout_s=250,
    )


def test_mem_04_second_pass_over_shapes_adds_nothing():
    layer = nn.Linear(8, 8).to("tpu")
    sizes = range(1, 9)
    for n in sizes:
        layer(torch.ones(n, 8, device="tpu"))
    gc.collect()
    held, made = torch.tpu.memory_allocated(), len(torch.tpu.compile_records())
    for n in sizes:
        layer(torch.ones(n, 8, device="tpu"))
    gc.collect()
    assert torch.tpu.memory_allocated() == held
    assert len(torch.tpu.compile_records()) == made


def test_mem_05_long_loops_do_not_leak():
    lstm = nn.LSTM(4, 4).to("tpu")
    optimizer = torch.optim.SGD(lstm.parameters(), lr=0.01)
    x = torch.randn(3, 2, 4, device="tpu")

    def step(train: bool) -> None:
        if train:
            optimizer.zero_grad()
            lstm(x)[0].square().mean().backward()
            optimizer.step()
        else:
            with torch.no_grad():
                lstm(x)

    for train in (False, True):
        for _ in range(20):
            step(train)
        torch.tpu.synchronize()
        gc.collect()
        held, peak = (
            torch.tpu.memory_allocated(),
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        )
        for _ in range(100):
            step(train)
        torch.tpu.synchronize()
        gc.collect()
        assert torch.tpu.memory_allocated() == held
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < peak + (32 << 10)  # KiB


def test_mem_07_memory_figures_exist_and_grow():
    gc.collect()
    torch.tpu.reset_peak_memory_stats()
    before = torch.tpu.memory_allocated()
    x = torch.randn(1 << 20, device="tpu")
    assert 0 <= torch.tpu.memory_allocated() - before - (4 << 20) < 64  # the seed and offset too
    assert torch.tpu.max_memory_allocated() >= before + (4 << 20)
    assert torch.accelerator.memory_allocated() == torch.tpu.memory_allocated()
    assert torch.accelerator.max_memory_allocated() == torch.tpu.max_memory_allocated()
    assert all(isinstance(n, int) for n in torch.tpu.mem_get_info())
    assert x.numel() == 1 << 20


def test_mem_08_device_map_loading_holds_one_copy(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    config = transformers.LlamaConfig(
        vocab_size=4000,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    gc.collect()
    before = torch.tpu.memory_allocated()
    torch.tpu.reset_peak_memory_stats()
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, device_map="tpu")
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    assert torch.tpu.max_memory_allocated() - before <= 1.3 * weights
    assert {p.device.type for p in model.parameters()} == {"tpu"}
    assert model.lm_head.weight is model.model.embed_tokens.weight
