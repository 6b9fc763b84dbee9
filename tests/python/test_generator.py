# SPDX-License-Identifier: Apache-2.0
"""Generators: seed and offset, states, and where PyTorch itself uses them."""

from __future__ import annotations

import struct

import pytest
import torch
from torch.testing import assert_close


def draw() -> list[float]:
    return torch.rand(5, device="tpu").tolist()


def test_state_is_16_bytes_of_seed_and_offset():
    g = torch.Generator("tpu").manual_seed(11)
    state = g.get_state()
    assert state.device.type == "cpu" and state.dtype == torch.uint8
    assert struct.unpack("<QQ", bytes(state.tolist())) == (11, 0)
    torch.rand(5, generator=g, device="tpu")
    seed, offset = struct.unpack("<QQ", bytes(g.get_state().tolist()))
    assert seed == 11 and offset == g.get_offset() and offset >= 5 and offset % 4 == 0


def test_same_seed_same_numbers():
    torch.manual_seed(3)
    first = draw()
    assert draw() != first
    torch.manual_seed(3)
    assert draw() == first
    torch.tpu.manual_seed(3)
    assert draw() == first
    torch.tpu.manual_seed_all(4)
    assert draw() != first


def test_state_restores_the_sequence():
    state = torch.tpu.get_rng_state()
    first = draw()
    torch.tpu.set_rng_state(state)
    assert draw() == first
    states = torch.tpu.get_rng_state_all()
    second = draw()
    torch.tpu.set_rng_state_all(states)
    assert draw() == second


def test_own_generator_leaves_the_default_one_alone():
    before = torch.tpu.get_rng_state()
    g = torch.Generator("tpu").manual_seed(1)
    a = torch.rand(5, generator=g, device="tpu")
    assert torch.equal(torch.tpu.get_rng_state(), before)
    b = torch.rand(5, generator=torch.Generator("tpu").manual_seed(1), device="tpu")
    assert_close(a.cpu(), b.cpu(), rtol=0, atol=0)


def test_clone_continues_where_the_original_is():
    g = torch.Generator("tpu").manual_seed(1)
    torch.rand(5, generator=g, device="tpu")
    copy = g.clone_state() if hasattr(g, "clone_state") else g.graphsafe_get_state()
    expected = torch.rand(5, generator=g, device="tpu")
    assert expected.shape == torch.rand(5, generator=copy, device="tpu").shape
    assert copy.device == g.device


def test_offset_can_be_set_to_multiples_of_four_only():
    g = torch.Generator("tpu").manual_seed(1)
    g.set_offset(8)
    assert g.get_offset() == 8
    with pytest.raises(RuntimeError, match="offset must be a multiple of 4"):
        g.set_offset(7)


def test_seed_is_new_each_time_and_sets_the_offset_to_zero():
    g = torch.Generator("tpu").manual_seed(1)
    torch.rand(5, generator=g, device="tpu")
    a, b = g.seed(), g.seed()
    assert a != b and g.initial_seed() == b and g.get_offset() == 0


@pytest.mark.parametrize(
    "state, text",
    [
        (torch.zeros(5, dtype=torch.uint8), "RNG state is wrong size"),
        (torch.zeros(16), "RNG state must be a torch.ByteTensor"),
        (torch.zeros(32, dtype=torch.uint8)[::2], "RNG state must be contiguous"),
    ],
)
def test_bad_state_is_refused(state, text):
    with pytest.raises((RuntimeError, TypeError), match=text):
        torch.tpu.set_rng_state(state)


def test_generator_of_the_cpu_is_refused_by_a_device_operator():
    with pytest.raises(
        RuntimeError, match="Expected a 'tpu' device type for generator but found 'cpu'"
    ):
        torch.rand(2, device="tpu", generator=torch.Generator())


def test_fork_rng_restores_both_states():
    before = torch.tpu.get_rng_state(), torch.get_rng_state()
    with torch.random.fork_rng(device_type="tpu"):
        torch.manual_seed(99)
        draw()
    assert torch.equal(torch.tpu.get_rng_state(), before[0])
    assert torch.equal(torch.get_rng_state(), before[1])


def test_checkpoint_replays_dropout_with_the_same_mask():
    from torch.utils.checkpoint import checkpoint

    layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5)).tpu()
    x = torch.randn(4, 8, device="tpu", requires_grad=True)
    torch.manual_seed(7)
    layer(x).sum().backward()
    plain = x.grad.cpu()
    x.grad = None
    torch.manual_seed(7)
    checkpoint(layer, x, use_reentrant=False).sum().backward()
    assert_close(x.grad.cpu(), plain)


def test_random_split_takes_a_cpu_generator_while_the_accelerator_is_tpu():
    parts = torch.utils.data.random_split(
        range(10), [7, 3], generator=torch.Generator().manual_seed(0)
    )
    assert sorted([*parts[0], *parts[1]]) == list(range(10))


def test_manual_seed_creates_no_client():
    from torch_tpu.testing.child import run

    program = """
        import torch, torch_tpu
        torch.manual_seed(1)
        torch.seed()
        print(torch.tpu.is_initialized())
    """
    assert run(program).stdout.strip() == "False"
