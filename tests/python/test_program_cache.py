# SPDX-License-Identifier: Apache-2.0
"""Programs in memory are bounded: past the bound they are forgotten and come back from disk."""

from __future__ import annotations

import pytest
import torch

from torch_tpu import _C
from torch_tpu.testing.child import run


@pytest.fixture
def few_programs():
    before = _C.max_programs()
    _C.set_max_programs(10)
    yield
    _C.set_max_programs(before)


def test_many_shapes_forget_programs_and_stay_right(few_programs):
    for _ in range(2):
        for n in range(1, 41):
            x = torch.arange(float(n), device="tpu")
            assert (x * 2 + 1).sum().item() == n * n


def test_a_check_outlives_its_forgotten_program(few_programs):
    bad = torch.ones(3, 4, device="tpu")[torch.tensor([9], device="tpu")]
    for n in range(1, 30):
        torch.ones(n, 2, device="tpu") + 1
    with pytest.raises(IndexError, match="out of bounds"):
        bad.cpu()


def test_the_bound_is_an_environment_variable():
    program = """
        import torch, torch_tpu
        from torch_tpu import _C
        torch.ones(2, device="tpu").sum().item()
        print(_C.max_programs())
    """
    assert run(program, TORCH_TPU_MAX_PROGRAMS="12").stdout == "12\n"
    assert run(program, TORCH_TPU_MAX_PROGRAMS="").stdout == "6000\n"
