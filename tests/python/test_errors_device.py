# SPDX-License-Identifier: Apache-2.0
"""Operands of several devices, dtypes and layouts that tpu has not, memory that is not set."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from torch_tpu.testing.child import run


def on(device: str, *shape: int) -> torch.Tensor:
    return torch.ones(*shape, device=device)


MIXED = {
    "add": lambda: on("tpu", 3) + on("cpu", 3),
    "add, cpu first": lambda: on("cpu", 3) + on("tpu", 3),
    "matmul": lambda: on("tpu", 3, 3) @ on("cpu", 3, 3),
    "cat": lambda: torch.cat([on("tpu", 3), on("cpu", 3)]),
    "where": lambda: torch.where(on("tpu", 3) > 0, on("cpu", 3), on("tpu", 3)),
    "linear": lambda: torch.nn.Linear(3, 3)(on("tpu", 1, 3)),
    "layer_norm": lambda: F.layer_norm(on("tpu", 2, 3), (3,), on("cpu", 3)),
    "embedding": lambda: F.embedding(torch.tensor([0]), on("tpu", 3, 2)),
    "in place": lambda: on("cpu", 3).add_(on("tpu", 3)),
    "out": lambda: torch.add(on("tpu", 3), 1, out=on("cpu", 3)),
    "index of a cpu tensor": lambda: on("cpu", 3)[torch.tensor([1], device="tpu")],
}


@pytest.mark.parametrize("name", MIXED)
def test_operands_of_two_devices_are_refused_naming_both(name):
    with pytest.raises(RuntimeError, match="same device") as e:
        MIXED[name]()
    assert "tpu:0" in str(e.value) and "cpu" in str(e.value)
    assert (on("tpu", 2) + 1).tolist() == [2, 2]


def test_cpu_scalar_tensor_and_cpu_indices_are_operands_as_on_cuda():
    x = torch.arange(5.0, device="tpu")
    assert (x + torch.tensor(2.0)).tolist() == [2, 3, 4, 5, 6]
    assert (torch.tensor(2.0) * x).tolist() == [0, 2, 4, 6, 8]
    assert x[torch.tensor([1, 3])].tolist() == [1, 3]
    x[torch.tensor([0])] = 9
    assert x.tolist() == [9, 1, 2, 3, 4]


def test_copies_go_between_devices():
    host = torch.empty(3)
    assert host.copy_(torch.arange(3, device="tpu")).tolist() == [0, 1, 2]
    assert torch.empty(3, device="tpu").copy_(torch.arange(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [torch.complex32, torch.int4, torch.bits8], ids=str)
def test_dtype_that_xla_has_not_is_a_type_error_naming_it(dtype):
    with pytest.raises((TypeError, RuntimeError), match="(?i)tpu: unsupported dtype"):
        torch.empty(2, dtype=dtype, device="tpu")


def test_storage_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match='device "tpu:0" to a storage on different device "cpu"'):
        torch.empty(0, device="tpu").set_(torch.ones(3).untyped_storage())


def test_torch_dlpack_of_a_device_tensor_is_refused_by_name():
    with pytest.raises(ValueError, match="Unknown device type tpu for Dlpack"):
        torch.from_dlpack(on("tpu", 2))


def test_deterministic_mode_fills_memory_that_is_not_set():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3, device="tpu").isnan().all().item()
        assert torch.empty_strided((2,), (1,), device="tpu").isnan().all().item()
        largest = torch.iinfo(torch.int32).max
        assert torch.empty(2, dtype=torch.int32, device="tpu").tolist() == [largest] * 2
    finally:
        torch.use_deterministic_algorithms(False)


def test_module_moves_keep_parameters_ties_gradients_and_optimizers():
    model = torch.nn.ModuleDict({n: torch.nn.Linear(3, 3, bias=False) for n in "ab"})
    model["b"].weight = model["a"].weight
    weight = model["a"].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model["a"](torch.ones(1, 3)).sum().backward()
    model.to("tpu")
    assert model["a"].weight is model["b"].weight is weight
    assert weight.is_tpu and weight.grad.is_tpu and len(list(model.parameters())) == 1
    before = weight.detach().cpu()
    optimizer.step()
    assert_close(model["b"].weight.detach().cpu(), before - 1)
    model.cpu()
    assert model["a"].weight is model["b"].weight is weight and not weight.is_tpu
    assert_close(weight.detach(), before - 1)


def test_data_may_be_set_across_devices():
    p = torch.nn.Parameter(torch.ones(2))
    p.data = p.data.to("tpu")
    assert p.is_tpu and (p * 3).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        p.data = torch.sparse_coo_tensor([[0]], [1.0], (2,), check_invariants=False)


def test_checkpoint_of_the_device_loads_where_the_backend_is_missing(tmp_path):
    path = tmp_path / "weights.pt"
    torch.save({"w": torch.arange(3.0, device="tpu")}, path)
    program = f"""
        import torch
        assert not hasattr(torch, "tpu")
        print(torch.load({str(path)!r}, map_location="cpu")["w"].tolist())
        try:
            torch.load({str(path)!r})
        except RuntimeError as e:
            print(e)
    """
    done = run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    first, rest = done.stdout.split("\n", 1)
    assert first == "[0.0, 1.0, 2.0]" and "tagged with tpu:0" in rest


def test_host_memory_may_be_overwritten_after_an_asynchronous_upload():
    kept = []
    for i in range(20):
        host = torch.full((10_000,), float(i))
        kept.append(host.to("tpu", non_blocking=True))
        host.fill_(-1)
    assert torch.stack(kept).mean(1).tolist() == [float(i) for i in range(20)]
