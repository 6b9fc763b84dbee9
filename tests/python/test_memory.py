# SPDX-License-Identifier: Apache-2.0
"""Memory figures are those of live arrays, and memory that is not there is
torch.OutOfMemoryError.
"""

from __future__ import annotations

import gc
import sys
import weakref

import pytest
import torch
from torch.testing import assert_close

MIB = 1 << 20


@pytest.fixture(autouse=True)
def collected():
    torch.ones(1, device="tpu") + 1
    torch.tpu.synchronize()
    gc.collect()


def test_upload_is_counted_and_freed():
    before = torch.tpu.memory_allocated()
    x = torch.randn(MIB // 4).to("tpu")
    assert torch.tpu.memory_allocated() - before == MIB
    assert torch.accelerator.memory_allocated() == torch.tpu.memory_allocated()
    y = x * 2
    assert torch.tpu.memory_allocated() - before >= 2 * MIB
    del x, y
    assert torch.tpu.memory_allocated() - before < 1024


def test_views_cost_nothing_and_a_copy_shares_until_written():
    x = torch.randn(MIB // 4).to("tpu")
    before = torch.tpu.memory_allocated()
    v, c = x.view(4, -1).t(), x.clone()
    assert torch.tpu.memory_allocated() == before
    c.add_(1)
    assert torch.tpu.memory_allocated() - before >= MIB
    assert_close((c - x).cpu(), torch.ones(MIB // 4), rtol=0, atol=1e-5)
    assert v.shape == (MIB // 16, 4)


def test_peak_is_kept_until_reset():
    x = torch.randn(MIB).to("tpu")
    del x
    peak, now = torch.tpu.max_memory_allocated(), torch.tpu.memory_allocated()
    assert peak >= now + 4 * MIB
    torch.tpu.reset_peak_memory_stats()
    assert torch.tpu.max_memory_allocated() == torch.tpu.memory_allocated()
    torch.tpu.reset_max_memory_allocated()


def test_accumulated_figures_grow_and_reset():
    def made() -> int:
        return torch.tpu.memory_stats()["allocated_bytes.all.allocated"]

    before = made()
    for _ in range(3):
        torch.randn(MIB // 4).to("tpu")
    assert made() - before >= 3 * MIB
    torch.tpu.reset_accumulated_memory_stats()
    assert made() == 0


def test_reserved_is_allocated():
    assert torch.tpu.memory_reserved() == torch.tpu.memory_allocated()
    assert torch.tpu.max_memory_reserved() == torch.tpu.max_memory_allocated()
    torch.tpu.empty_cache()
    torch.accelerator.empty_cache()


def test_mem_get_info_is_free_and_total():
    free, total = torch.tpu.mem_get_info()
    assert 0 < free <= total == torch.tpu.get_device_properties().total_memory
    assert torch.accelerator.get_memory_info()[1] == total


def test_summary_shows_the_figures():
    x = torch.randn(3 * MIB // 4).to("tpu")
    text = torch.tpu.memory_summary()
    assert "tpu:0" in text and "MiB" in text and "Reserved memory" in text
    assert "Reserved memory" not in torch.tpu.memory_summary(abbreviated=True)
    assert x.numel() == 3 * MIB // 4


def test_storage_resize_frees_and_gives_back():
    x = torch.randn(MIB // 4).to("tpu")
    before = torch.tpu.memory_allocated()
    x.untyped_storage().resize_(0)
    assert before - torch.tpu.memory_allocated() >= MIB and x.untyped_storage().nbytes() == 0
    x.untyped_storage().resize_(MIB)
    x.copy_(torch.ones(MIB // 4))
    assert_close(x.cpu(), torch.ones(MIB // 4))


def test_storage_resize_keeps_what_fits():
    x = torch.arange(4.0).to("tpu")
    x.untyped_storage().resize_(24)
    assert torch.empty(0, device="tpu").set_(x.untyped_storage(), 0, (6,), (1,)).tolist() == [
        0,
        1,
        2,
        3,
        0,
        0,
    ]


HUGE = 1 << 48  # elements of float32: a pebibyte


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.empty(HUGE, device="tpu"),
        lambda: torch.zeros(HUGE, device="tpu"),
        lambda: torch.full((HUGE,), 2.0, device="tpu"),
        lambda: torch.rand(HUGE, device="tpu"),
        lambda: torch.arange(HUGE, device="tpu"),
        lambda: torch.ones(1, device="tpu").expand(HUGE) + 1,
        lambda: torch.ones(1 << 24, 1, device="tpu") + torch.ones(1, 1 << 24, device="tpu"),
        lambda: torch.ones(1 << 24, 1, device="tpu") @ torch.ones(1, 1 << 24, device="tpu"),
        lambda: torch.ones(2, device="tpu").repeat(HUGE),
    ],
    ids=["empty", "zeros", "full", "rand", "arange", "expand", "broadcast", "matmul", "repeat"],
)
def test_too_much_memory_is_torchs_error_and_the_process_lives(call):
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        call()
    assert (torch.ones(3, device="tpu") + 1).tolist() == [2, 2, 2]


def test_out_of_memory_text_names_what_was_asked_and_what_there_is():
    with pytest.raises(torch.OutOfMemoryError) as e:
        torch.empty(HUGE, device="tpu")
    assert "Tried to allocate 1.00 PiB. tpu:0 has a total capacity of " in str(e.value)


def test_pinned_memory_is_pinned_and_plain_memory_is_not():
    x = torch.arange(5.0)
    assert not x.is_pinned()
    p = x.pin_memory()
    assert p.is_pinned() and p[2:].is_pinned() and p.data_ptr() % 64 == 0
    assert_close(p, x)
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert not p.clone().is_pinned()
    assert_close(p.to("tpu", non_blocking=True).cpu(), x)


def test_pinned_target_of_a_download():
    x = torch.arange(5.0, device="tpu")
    host = torch.empty(5, pin_memory=True)
    host.copy_(x, non_blocking=True)
    torch.tpu.synchronize()
    assert_close(host, torch.arange(5.0))


def test_pinned_source_may_change_after_the_copy_was_asked():
    p = torch.ones(MIB).pin_memory()
    x = p.to("tpu", non_blocking=True)
    torch.tpu.synchronize()
    p.zero_()
    assert x.sum().item() == MIB


def test_device_tensor_cannot_be_pinned():
    with pytest.raises(RuntimeError, match="cannot pin"):
        torch.ones(2, device="tpu").pin_memory()
    torch.accelerator.empty_host_cache()


def test_data_loader_pins():
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4))
    for x, y in DataLoader(data, batch_size=2, pin_memory=True):
        assert x.is_pinned() and y.is_pinned()
        assert x.to("tpu", non_blocking=True).is_tpu


def test_addresses_are_unique_and_views_point_inside():
    a, b = torch.ones(4, device="tpu"), torch.ones(4, device="tpu")
    assert a.data_ptr() and a.data_ptr() != b.data_ptr()
    assert a[2:].data_ptr() == a.data_ptr() + 8
    assert a.untyped_storage().data_ptr() == a.view(2, 2).untyped_storage().data_ptr()


def kernels(x: torch.Tensor, y: torch.Tensor) -> list:
    """One call of every signature that skips the dispatcher's stack, which owns its tensors."""
    return [
        lambda: torch.exp(x),
        lambda: torch.add(x, y, alpha=3),
        lambda: torch.lerp(x, y, x),
        lambda: torch.pow(x, 2.0),
        lambda: torch.clamp(x, -1, 1),
        lambda: torch.addmm(x, x, y, beta=0.5),
        lambda: torch.softmax(x, -1),
        lambda: x.abs_(),
        lambda: x.mul_(y),
        lambda: x.fmod_(2.0),
        lambda: x.sub_(y, alpha=2),
    ]


def test_a_kernel_keeps_no_reference_to_its_arguments():
    x, y = torch.randn(64, 64).to("tpu"), torch.randn(64, 64).to("tpu")
    alive = [weakref.ref(x), weakref.ref(y)]
    counts = [sys.getrefcount(x), sys.getrefcount(y)]
    before = torch.tpu.memory_allocated()
    for call in kernels(x, y):
        result = call()
        assert result.device == x.device
        assert (result is x) == (result.data_ptr() == x.data_ptr())
        del result
    del call
    assert [sys.getrefcount(x), sys.getrefcount(y)] == counts
    assert torch.tpu.memory_allocated() - before < 1024  # the numbers are kept
    del x, y
    gc.collect()
    assert [r() for r in alive] == [None, None]
    assert torch.tpu.memory_allocated() - before < 1024 - 2 * 64 * 64 * 4


def test_a_failed_kernel_keeps_no_reference_either():
    x, y = torch.randn(64, 64).to("tpu"), torch.randn(3, 5).to("tpu")
    counts = [sys.getrefcount(x), sys.getrefcount(y)]
    for call in (lambda: x + y, lambda: x @ y, lambda: x.add_(y), lambda: torch.addmm(x, x, y)):
        with pytest.raises(RuntimeError):
            call()
    del call
    gc.collect()
    assert [sys.getrefcount(x), sys.getrefcount(y)] == counts
