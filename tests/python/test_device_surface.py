# SPDX-License-Identifier: Apache-2.0
"""torch.tpu and torch.accelerator: devices, properties, several virtual devices, forks."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from torch_tpu.testing.child import run


def test_device_string_means_the_current_device():
    assert torch.ones(2, device="tpu").device == torch.device("tpu:0")
    assert torch.device("tpu").index is None


def test_accelerator_is_tpu():
    assert torch.accelerator.current_accelerator() == torch.device("tpu")
    assert torch.accelerator.is_available() and torch.tpu.is_available()
    assert torch.accelerator.device_count() == torch.tpu.device_count() >= 1
    assert torch.accelerator.current_device_index() == torch.tpu.current_device() == 0
    assert torch.get_device_module("tpu") is torch.tpu


def test_set_device_takes_index_name_and_device():
    for device in (0, "tpu", "tpu:0", torch.device("tpu", 0), -1):
        torch.tpu.set_device(device)
        assert torch.tpu.current_device() == 0


def test_device_contexts_restore_the_current_device():
    with (
        torch.tpu.device(0),
        torch.tpu.device_of(torch.ones(1, device="tpu")),
        torch.tpu.device(None),
    ):
        assert torch.tpu.current_device() == 0
    with torch.tpu.device_of(torch.ones(1)):
        assert torch.tpu.current_device() == 0
    with torch.accelerator.device_index(0):
        assert torch.tpu.current_device() == 0


MISSING = "tpu:7 does not exist: this process has 1 tpu device"


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.ones(2, device="tpu:7"),
        lambda: torch.empty(0, device="tpu:7"),
        lambda: torch.ones(2).to("tpu:7"),
        lambda: torch.nn.Linear(2, 2).to("tpu:7"),
        lambda: torch.tpu.set_device(7),
        lambda: torch.tpu.synchronize(7),
        lambda: torch.accelerator.set_device_index(7),
        lambda: torch.tpu.get_device_properties("tpu:7"),
        lambda: torch.tpu.device("tpu:7").__enter__(),
        lambda: torch.tpu.current_stream(7),
        lambda: torch.tpu.Stream(7),
        lambda: torch.Generator("tpu:7"),
        lambda: torch.tpu.get_rng_state("tpu:7"),
        lambda: torch.tpu.memory_allocated(7),
        lambda: torch.tpu.mem_get_info(7),
    ],
)
def test_device_that_is_not_there_is_an_error_naming_it(call):
    torch.ones(1, device="tpu")
    with pytest.raises(RuntimeError, match=MISSING):
        call()
    assert (torch.ones(2, device="tpu") + 1).tolist() == [2, 2]


def test_index_beyond_a_byte_is_an_error_naming_it():
    with pytest.raises(RuntimeError, match="tpu:256 does not exist"):
        torch.tpu.set_device(256)


@pytest.mark.parametrize("device", ["cuda", "cpu", torch.device("meta")])
def test_device_of_another_type_is_a_value_error(device):
    with pytest.raises(ValueError, match="Expected a tpu device, but got: "):
        torch.tpu.set_device(device)


def test_properties_say_what_the_device_is():
    p = torch.tpu.get_device_properties()
    assert p.platform in ("cpu", "tpu")
    assert torch.tpu.get_device_name() == p.name
    if p.platform == "cpu":
        assert "tpu" not in p.name.lower() and not p.has_own_memory
    assert p.total_memory > 1 << 28
    assert p.plugin_path.endswith(".so")
    assert torch.tpu.get_device_capability() == (0, 0)


def test_capability_lists_xlas_dtypes_and_no_others():
    dtypes = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {
        torch.float32,
        torch.bfloat16,
        torch.float64,
        torch.int64,
        torch.bool,
        torch.complex64,
    } <= dtypes
    assert {torch.float8_e4m3fn, torch.uint16} <= dtypes
    assert not {torch.quint8, torch.qint8, torch.complex32} & dtypes
    for dtype in sorted(dtypes, key=str):
        assert torch.empty(2, dtype=dtype, device="tpu").dtype == dtype


def test_quantized_dtype_is_refused_by_name():
    with pytest.raises(
        (TypeError, RuntimeError, NotImplementedError), match="(?i)quint8|quantized"
    ):
        torch.empty(2, dtype=torch.quint8, device="tpu")


def test_synchronize_by_both_modules():
    y = torch.ones(8, device="tpu") * 2
    torch.tpu.synchronize()
    torch.tpu.synchronize("tpu:0")
    torch.accelerator.synchronize()
    assert_close(y.cpu(), torch.full((8,), 2.0))


def test_generated_methods():
    x = torch.arange(3.0)
    y = x.tpu()
    assert y.is_tpu and not x.is_tpu and y.device.type == "tpu"
    assert y.tpu() is y
    assert_close(y.cpu(), x)
    model = torch.nn.Linear(3, 2).tpu()
    assert all(p.is_tpu for p in model.parameters())
    storage = x.untyped_storage().tpu()
    assert storage.is_tpu and storage.nbytes() == 12
    assert bytes(storage.cpu()) == bytes(x.untyped_storage())


def test_default_device_is_used_by_factories():
    with torch.device("tpu"):
        assert torch.zeros(2).is_tpu
    torch.set_default_device("tpu")
    try:
        assert torch.zeros(2).is_tpu and torch.tensor([1, 2]).is_tpu
    finally:
        torch.set_default_device(None)
    assert not torch.zeros(2).is_tpu


def test_blocking_mode_is_restored():
    from torch_tpu import _C

    assert not _C.blocking()
    with torch.tpu.blocking():
        assert _C.blocking()
        assert (torch.ones(3, device="tpu") + 1).tolist() == [2, 2, 2]
    assert not _C.blocking()


def test_host_fallback_switch_is_restored():
    from torch_tpu import _C

    with torch.tpu.allow_host_fallback():
        assert _C.host_fallback()
        with torch.tpu.allow_host_fallback(False):
            assert not _C.host_fallback()
    assert not _C.host_fallback()


def test_matmul_precision_follows_torch_and_can_be_set_alone():
    from torch_tpu import _C

    before = torch.get_float32_matmul_precision()
    try:
        for level, name in enumerate(("medium", "high", "highest")):
            torch.set_float32_matmul_precision(name)
            assert _C.matmul_precision() == level
        with torch.backends.tpu.flags(precision="medium"):
            assert _C.matmul_precision() == 0 and torch.get_float32_matmul_precision() == "highest"
        assert _C.matmul_precision() == 2 and torch.backends.tpu.matmul.precision is None
        with pytest.raises(ValueError, match="expected one of"):
            torch.backends.tpu.matmul.precision = "tf32"
    finally:
        torch.set_float32_matmul_precision(before)


def test_compile_stats_count_and_reset():
    x = torch.ones(11, 3, device="tpu")
    before = torch.tpu.compile_stats()
    for _ in range(3):
        x = x * 1.5
    after = torch.tpu.compile_stats()
    made = after["compiles"] + after["disk_hits"] - before["compiles"] - before["disk_hits"]
    assert made <= 1 and after["memory_hits"] - before["memory_hits"] >= 2
    assert all(
        r.source in ("compiled", "disk") and r.seconds >= 0 for r in torch.tpu.compile_records()
    )


SEVERAL = {"TORCH_TPU_PLATFORM": "cpu", "TORCH_TPU_DEVICES": "3"}


def test_three_virtual_devices_hold_and_exchange_tensors():
    program = """
        import torch, torch_tpu
        assert torch.tpu.device_count() == torch.accelerator.device_count() == 3
        x = torch.arange(4.0)
        on = [x.to(f"tpu:{i}") * (i + 1) for i in range(3)]
        assert [t.device.index for t in on] == [0, 1, 2]
        assert [t.tolist() for t in on] == [(x * (i + 1)).tolist() for i in range(3)]
        moved = on[2].to("tpu:1")
        assert moved.device == torch.device("tpu:1") and moved.tolist() == on[2].tolist()
        assert (moved + on[1]).tolist() == (x * 5).tolist()
        with torch.tpu.device(2):
            assert torch.ones(1, device="tpu").device.index == 2
            assert torch.tpu.current_stream().device.index == 2
        assert torch.tpu.current_device() == 0
        torch.tpu.set_device(1)
        assert torch.ones(1, device="tpu").device.index == 1 and x.tpu().device.index == 1
        assert torch.ones_like(on[2]).device.index == 2
        try:
            on[0] + on[1]
        except RuntimeError as e:
            assert "at least two devices, tpu:0 and tpu:1" in str(e), e
        else:
            raise AssertionError("devices were mixed")
        try:
            torch.ones(1, device="tpu:3")
        except RuntimeError as e:
            assert "tpu:3 does not exist: this process has 3 tpu devices" in str(e), e
        else:
            raise AssertionError("tpu:3 was there")
    """
    run(program, **SEVERAL)


def test_three_virtual_devices_have_their_own_streams_generators_and_memory():
    program = """
        import torch, torch_tpu
        torch.manual_seed(5)
        assert len(torch.tpu.default_generators) == len(torch.tpu.get_rng_state_all()) == 3
        assert [g.device.index for g in torch.tpu.default_generators] == [0, 1, 2]
        assert [g.initial_seed() for g in torch.tpu.default_generators] == [5] * 3
        a, b = torch.rand(4, device="tpu:1"), torch.rand(4, device="tpu:2")
        assert a.tolist() == b.tolist()
        s = torch.tpu.Stream(device=2)
        with torch.tpu.stream(s):
            assert torch.tpu.current_device() == 2 and torch.tpu.current_stream() == s
        assert torch.tpu.current_device() == 0
        before = [torch.tpu.memory_allocated(i) for i in range(3)]
        kept = torch.arange(1000.0).to("tpu:1")
        assert [torch.tpu.memory_allocated(i) - n for i, n in enumerate(before)] == [0, 4000, 0]
        e = torch.Event("tpu:1")
        e.record(torch.tpu.current_stream(1))
        torch.tpu.current_stream(2).wait_event(e)
        for i in range(3):
            torch.tpu.synchronize(i)
    """
    run(program, **SEVERAL)


def test_fork_after_use_gives_cudas_error_instead_of_hanging():
    program = """
        import os, torch, torch_tpu
        x = torch.ones(3, device="tpu") + 1
        x.cpu()
        calls = {
            "factory": lambda: torch.ones(2, device="tpu"),
            "upload": lambda: torch.ones(2).to("tpu"),
            "operator": lambda: x + 1,
            "download": lambda: x.cpu(),
            "synchronize": lambda: torch.tpu.synchronize(),
            "init": lambda: torch.tpu.init(),
        }
        assert not torch.tpu._is_in_bad_fork()
        child = os.fork()
        if child == 0:
            bad = []
            if not torch.tpu._is_in_bad_fork() or torch.tpu.is_initialized():
                bad.append("state")
            torch.manual_seed(0)  # must not touch the device
            for name, call in calls.items():
                try:
                    call()
                    bad.append(name)
                except RuntimeError as e:
                    if "Cannot re-initialize tpu in forked subprocess" not in str(e):
                        bad.append(f"{name}: {e}")
            print(bad, flush=True)
            os._exit(len(bad))
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert (x + 1).tolist() == [3, 3, 3]
    """
    run(program)


def test_fork_before_use_works_in_the_child():
    program = """
        import os, torch, torch_tpu
        assert torch.tpu.is_available() and torch.tpu.device_count() == 1
        torch.manual_seed(0)
        child = os.fork()
        if child == 0:
            ok = (torch.ones(2, device="tpu") + 1).tolist() == [2, 2]
            os._exit(0 if ok else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert (torch.ones(2, device="tpu") + 1).tolist() == [2, 2]
    """
    run(program)


def test_data_loader_with_forked_workers_works_after_the_device_was_used():
    program = """
        import torch, torch_tpu
        from torch.utils.data import DataLoader, TensorDataset
        torch.ones(1, device="tpu") + 1
        data = TensorDataset(torch.arange(12.0).reshape(6, 2))
        loader = DataLoader(data, batch_size=2, num_workers=2, pin_memory=True)
        got = [batch.to("tpu", non_blocking=True) for (batch,) in loader]
        assert torch.cat(got).cpu().tolist() == data.tensors[0].tolist()
    """
    run(program)
