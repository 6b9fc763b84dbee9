# SPDX-License-Identifier: Apache-2.0
"""Random programs of views and writes; `python -m torch_tpu.testing.view_fuzz --programs 20000` runs many more."""

from __future__ import annotations

import pytest

from torch_tpu.testing import view_fuzz

# What the fuzzer has found, shrunk; each stays a test.
FOUND: list[list[str]] = []


@pytest.mark.parametrize("block", range(10))
def test_random_programs_agree_with_cpu(block):
    for seed in range(block * 40, block * 40 + 40):
        lines = view_fuzz.generate(seed)
        assert view_fuzz.check(lines) is None, "\n".join(view_fuzz.shrink(lines))


@pytest.mark.parametrize("lines", FOUND)
def test_found_program_agrees_with_cpu(lines):
    assert view_fuzz.check(lines) is None


def test_a_wrong_result_is_noticed_and_shrunk():
    lines = ["t0 = torch.zeros(3).to(device)", "t1 = t0[1:]", "t1.add_(1 if device == 'cpu' else 2)", "t2 = t0.clone()"]
    assert view_fuzz.check(lines) is not None
    assert view_fuzz.shrink(lines) == [lines[0], lines[1], lines[2]] or len(view_fuzz.shrink(lines)) < 4
