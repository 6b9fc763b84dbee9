# SPDX-License-Identifier: Apache-2.0
"""Streams and events of torch, torch.tpu and torch.accelerator."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from torch.testing import assert_close


def long_work() -> torch.Tensor:
    """Several tens of milliseconds of matrix products, launched and not waited for."""
    x = torch.randn(700, 700, device="tpu")
    torch.tpu.synchronize()
    for _ in range(8):
        x = (x @ x) * 0.01
    return x


def test_default_stream_is_current_at_first():
    s = torch.tpu.current_stream()
    assert s == torch.tpu.default_stream() and s.stream_id == 0
    assert isinstance(s, torch.tpu.Stream) and isinstance(s, torch.Stream)
    assert torch.accelerator.current_stream() == s
    assert s.device == torch.device("tpu:0")


def test_new_streams_differ_and_the_pool_is_a_ring():
    streams = [torch.tpu.Stream() for _ in range(32)]
    assert len({s.stream_id for s in streams}) == 32
    assert torch.tpu.Stream() == streams[0]
    assert torch.tpu.Stream(priority=-1) not in streams
    assert torch.Stream(device="tpu").device.type == "tpu"


def test_stream_context_sets_and_restores_the_current_stream():
    s = torch.tpu.Stream()
    before = torch.tpu.current_stream()
    with torch.tpu.stream(s):
        assert torch.tpu.current_stream() == s
        with torch.tpu.stream(None):
            assert torch.tpu.current_stream() == s
        y = torch.ones(3, device="tpu") + 1
    assert torch.tpu.current_stream() == before
    with s:
        assert torch.tpu.current_stream() == s
    assert torch.tpu.current_stream() == before
    torch.tpu.set_stream(s)
    assert torch.accelerator.current_stream() == s
    torch.tpu.set_stream(before)
    assert y.tolist() == [2, 2, 2]


def test_current_stream_is_the_threads_own():
    s = torch.tpu.Stream()
    seen = []
    with torch.tpu.stream(s):
        t = threading.Thread(target=lambda: seen.append(torch.tpu.current_stream().stream_id))
        t.start()
        t.join()
    assert seen == [0]


def test_stream_id_that_was_never_given_out_is_refused():
    s = torch.tpu.default_stream()
    strange = torch.Stream(stream_id=4711, device_index=0, device_type=s.device_type)
    with pytest.raises(RuntimeError, match="has id 4711"):
        torch.accelerator.set_stream(strange)


def test_work_on_two_streams_is_seen_by_each_other():
    side = torch.tpu.Stream()
    x = torch.ones(64, device="tpu")
    with torch.tpu.stream(side):
        y = x * 3
        event = side.record_event()
    torch.tpu.current_stream().wait_event(event)
    torch.tpu.current_stream().wait_stream(side)
    side.wait_stream(torch.tpu.current_stream())
    y.record_stream(torch.tpu.current_stream())
    assert_close((y + 1).cpu(), torch.full((64,), 4.0))


def test_stream_query_tells_whether_work_is_left():
    y = long_work()
    torch.tpu.current_stream().synchronize()
    assert torch.tpu.current_stream().query()
    assert y.isfinite().all().item()


def test_event_is_complete_only_after_the_work_before_it():
    start, end = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    assert start.query()
    start.record()
    began = time.perf_counter()
    y = long_work()
    # A transfer that is ready at once does not make the event ready: the products before it still
    # run.
    z = torch.arange(4.0).to("tpu")
    end.record()
    end.synchronize()
    waited_ms = (time.perf_counter() - began) * 1e3
    assert end.query() and start.query()
    assert 0 < start.elapsed_time(end) <= waited_ms + 1
    assert torch.tpu.current_stream().query(), "work was left after the event"
    assert y.shape == (700, 700) and z.tolist() == [0, 1, 2, 3]


def test_elapsed_time_grows_with_the_work():
    def timed(n: int) -> float:
        start, end = (torch.Event(device="tpu", enable_timing=True) for _ in range(2))
        start.record()
        kept = [long_work() for _ in range(n)]
        end.record()
        end.synchronize()
        assert len(kept) == n
        return start.elapsed_time(end)

    timed(1)
    assert timed(8) > timed(1)


def test_elapsed_time_needs_timing_recording_and_completion():
    plain, timed = torch.tpu.Event(), torch.tpu.Event(enable_timing=True)
    plain.record()
    timed.record()
    with pytest.raises(ValueError, match="enable_timing=True"):
        plain.elapsed_time(timed)
    with pytest.raises(ValueError, match="must be recorded before calculating elapsed time"):
        timed.elapsed_time(torch.tpu.Event(enable_timing=True))


def test_event_records_again():
    e, first = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    e.record()
    first.record()
    first.synchronize()
    time.sleep(0.02)
    e.record()
    e.synchronize()
    assert first.elapsed_time(e) > 10


def test_events_between_processes_are_refused():
    with pytest.raises(NotImplementedError, match="between processes"):
        torch.tpu.Event(interprocess=True)


def test_event_outlives_its_stream_and_work():
    event = torch.tpu.Event()
    with torch.tpu.stream(torch.tpu.Stream()):
        long_work()
        event.record()
    event.wait()
    event.synchronize()
    assert event.query()
