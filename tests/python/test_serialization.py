# SPDX-License-Identifier: Apache-2.0
"""Saving, loading, pickling, copying, printing, exchanging tensors of the device."""

from __future__ import annotations

import copy
import io
import pickle
import threading

import numpy
import pytest
import torch
from torch.testing import assert_close


def saved(obj: object) -> io.BytesIO:
    f = io.BytesIO()
    torch.save(obj, f)
    f.seek(0)
    return f


DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.float8_e4m3fn,
    torch.uint8,
]


def sample(dtype: torch.dtype) -> torch.Tensor:
    return (torch.arange(6).reshape(2, 3) - 2).to(torch.float32).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("weights_only", [True, False])
def test_save_and_load_restore_value_and_device(dtype, weights_only):
    x = sample(dtype)
    y = torch.load(saved(x.to("tpu")), weights_only=weights_only)
    assert y.device == torch.device("tpu:0") and y.dtype == dtype
    assert_close(y.cpu(), x)


@pytest.mark.parametrize(
    "location", ["cpu", "tpu", "tpu:0", torch.device("tpu"), {"tpu:0": "cpu"}, lambda s, _: s]
)
def test_load_maps_to_the_location_asked(location):
    y = torch.load(saved(torch.arange(3.0, device="tpu")), map_location=location)
    wanted = "tpu" if "tpu" in str(location) and not isinstance(location, dict) else "cpu"
    assert y.device.type == wanted
    assert y.tolist() == [0, 1, 2]


def test_cpu_checkpoint_loads_onto_the_device():
    model = torch.nn.Linear(3, 2)
    state = torch.load(saved(model.state_dict()), map_location="tpu", weights_only=True)
    assert all(v.is_tpu for v in state.values())
    other = torch.nn.Linear(3, 2).to("tpu")
    other.load_state_dict(state)
    assert_close(other.weight.cpu(), model.weight)


def test_load_for_a_device_that_is_not_there_names_it():
    f = saved(torch.ones(2, device="tpu"))
    with pytest.raises(RuntimeError, match="tpu"):
        torch.load(f, map_location="tpu:7")


def test_shared_storage_stays_shared_through_save():
    x = torch.arange(6.0, device="tpu")
    a, b = torch.load(saved([x, x[2:4]]))
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    a[2] = 9
    assert b.tolist() == [9, 3]


def test_optimizer_state_goes_through_save():
    model = torch.nn.Linear(3, 2).to("tpu")
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3, device="tpu")).sum().backward()
    optimizer.step()
    state = torch.load(saved(optimizer.state_dict()), weights_only=True)
    again = torch.optim.AdamW(model.parameters())
    again.load_state_dict(state)
    assert_close(
        again.state[model.weight]["exp_avg"].cpu(), optimizer.state[model.weight]["exp_avg"].cpu()
    )
    assert again.state[model.weight]["exp_avg"].is_tpu


def test_pickle_restores_value_and_device():
    x = torch.arange(6.0, device="tpu").reshape(2, 3).t()
    y = pickle.loads(pickle.dumps(x))
    assert y.is_tpu and y.stride() == x.stride()
    assert_close(y.cpu(), x.cpu())


def test_parameter_and_requires_grad_survive_pickle():
    p = pickle.loads(pickle.dumps(torch.nn.Parameter(torch.ones(2, device="tpu"))))
    assert isinstance(p, torch.nn.Parameter) and p.is_tpu and p.requires_grad


def test_deepcopy_is_independent_and_keeps_aliases():
    x = torch.arange(4.0, device="tpu")
    pair = copy.deepcopy([x, x[1:]])
    pair[0][1] = 7
    assert pair[1].tolist() == [7, 2, 3] and x.tolist() == [0, 1, 2, 3]
    model = torch.nn.Linear(3, 2).to("tpu")
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.weight.zero_()
    assert model.weight.abs().sum().item() > 0 and other.weight.is_tpu


def test_safetensors_find_shared_weights_and_round_trip(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model = torch.nn.ModuleDict(
        {"a": torch.nn.Linear(4, 4, bias=False), "b": torch.nn.Linear(4, 4, bias=False)}
    )
    model["b"].weight = model["a"].weight
    model.to("tpu")
    assert model["b"].weight is model["a"].weight
    with pytest.raises(RuntimeError, match="share memory"):
        safetensors.save_file(model.state_dict(), tmp_path / "plain.safetensors")
    safetensors.save_model(model, str(tmp_path / "model.safetensors"))
    loaded = safetensors.load_file(tmp_path / "model.safetensors")
    assert len(loaded) == 1
    assert_close(next(iter(loaded.values())), model["a"].weight.detach().cpu())


def test_print_shows_values_and_device():
    assert repr(torch.arange(3.0, device="tpu")) == "tensor([0., 1., 2.], device='tpu:0')"
    assert repr(torch.tensor(2, device="tpu")) == "tensor(2, device='tpu:0')"
    assert repr(torch.ones(1, dtype=torch.bool, device="tpu")) == "tensor([True], device='tpu:0')"
    assert "requires_grad=True" in repr(torch.ones(1, device="tpu", requires_grad=True))
    assert repr(torch.empty(0, 2, device="tpu")) == "tensor([], device='tpu:0', size=(0, 2))"
    assert f"{torch.tensor(1.5, device='tpu'):.2f}" == "1.50"


def test_large_print_is_as_on_the_cpu():
    x = torch.randn(40, 50)
    shown = (
        repr(x.to("tpu")).replace(", device='tpu:0'", "").replace(",\n       device='tpu:0'", "")
    )
    assert shown == repr(x)


def test_numpy_asks_for_cpu():
    x = torch.ones(2, device="tpu")
    for call in (x.numpy, lambda: numpy.asarray(x)):
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            call()
    assert x.cpu().numpy().tolist() == [1, 1]
    assert torch.from_numpy(numpy.arange(3)).to("tpu").tolist() == [0, 1, 2]


def test_python_conversions():
    x = torch.tensor([3], device="tpu")
    assert (
        int(x) == 3 and float(x) == 3.0 and bool(x) and x.item() == 3 and [10, 20, 30, 40][x] == 40
    )
    with pytest.raises(
        RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"
    ):
        torch.ones(2, device="tpu").item()
    with pytest.raises(
        RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"
    ):
        bool(torch.ones(2, device="tpu"))


def test_dlpack_of_the_host_comes_in_and_of_the_device_does_not_go_out():
    x = torch.from_dlpack(numpy.arange(4.0)).to("tpu")
    assert x.tolist() == [0, 1, 2, 3]
    # An opaque buffer has no address that another library could read.
    with pytest.raises((BufferError, ValueError, RuntimeError), match="(?i)tpu|dlpack|device"):
        numpy.from_dlpack(x)


def test_sparse_and_sharing_between_processes_are_refused_clearly():
    with pytest.raises((NotImplementedError, RuntimeError), match="(?i)sparse"):
        torch.sparse_coo_tensor([[0]], [1.0], (2,), device="tpu")
    assert torch.ones(1, device="tpu").is_shared()


def test_packed_sequence_moves():
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    moved = packed.to("tpu")
    assert moved.is_tpu and moved.data.is_tpu
    assert_close(moved.data.cpu(), packed.data)


def test_autocast_casts_to_bfloat16_by_default():
    a, b = torch.randn(4, 4, device="tpu"), torch.randn(4, 4, device="tpu")
    with torch.autocast("tpu"):
        assert torch.get_autocast_dtype("tpu") == torch.bfloat16
        assert (a @ b).dtype == torch.bfloat16
        assert (a @ b).exp().dtype == torch.float32
        assert torch.cat([a.bfloat16(), a]).dtype == torch.float32
    with torch.autocast("tpu", dtype=torch.float16):
        assert (a @ b).dtype == torch.float16
    assert (a @ b).dtype == torch.float32
    assert (
        torch.tpu.get_amp_supported_dtype() == [torch.bfloat16, torch.float16]
        and torch.tpu.is_bf16_supported()
    )


def test_autocast_in_autograds_threads_casts_to_bfloat16_by_default():
    dtypes = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            with torch.autocast("tpu"):
                dtypes.append((threading.current_thread(), (g @ g).dtype))
            return g

    Product.apply(torch.ones(3, 3, device="tpu", requires_grad=True)).sum().backward()
    ((thread, dtype),) = dtypes
    assert thread is not threading.main_thread() and dtype == torch.bfloat16


def test_autocast_bans_binary_cross_entropy():
    p = torch.full((2,), 0.5, device="tpu")
    with torch.autocast("tpu"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        torch.nn.functional.binary_cross_entropy(p, p)
