# SPDX-License-Identifier: Apache-2.0
"""Random programs of views and writes; `python -m torch_tpu.testing.view_fuzz --programs 20000`
runs many more.
"""

from __future__ import annotations

import pytest

from torch_tpu.testing import view_fuzz

# What the fuzzer has found, shrunk; each stays a test.
FOUND: list[list[str]] = [
    [  # CPU refuses a source that is the destination, shifted
        "t0 = (torch.arange(16, dtype=torch.float32) % 7 - 2).reshape((4, 4)).to(device)",
        "t1 = t0.transpose(0, 1)",
        "t0.copy_(t1)",
    ],
    [  # as_strided counts in the storage, not in the view it is given
        "t0 = (torch.arange(24, dtype=torch.float32) % 7 - 2).reshape((3, 8)).to(device)",
        "t2 = torch.as_strided(t0, (3,), (3,), 9)",
        "t3 = torch.as_strided(t2, (3,), (0,), 12)",
    ],
    [  # compiled: a write to part of an overlapping window, which comes back as the whole window
        "t0 = (torch.arange(24, dtype=torch.float32) % 7 - 2).reshape((2, 3, 4)).to(device)",
        "t1 = torch.as_strided(t0, (2, 2), (1, 1), 14)",
        "t2 = t1[:, 1::3]",
        "t2[t2 < 2] = -4",
    ],
    [  # the same under autograd
        "t0 = (torch.arange(16, dtype=torch.float32) % 7 - 2)"
        ".reshape((4, 4)).to(device).requires_grad_()",
        "t1 = t0 * 2",
        "t2 = torch.as_strided(t1, (2, 2), (4, 4), 1)",
        "t4 = t2.select(0, 0)",
        "t4[1] = 12",
    ],
    [  # compiled: functionalization's as_strided_scatter counts in the storage as well
        "t0 = (torch.arange(24, dtype=torch.float32) % 7 - 2).reshape((2, 3, 4)).to(device)",
        "t3 = t0.diagonal(0, 0, 1).clone()",
        "t4 = torch.as_strided(t3, (3,), (1,), 1)",
        "t4.copy_(t4)",
    ],
]


@pytest.mark.parametrize("block", range(10))
def test_random_programs_agree_with_cpu(block):
    for seed in range(block * 40, block * 40 + 40):
        lines = view_fuzz.generate(seed)
        assert view_fuzz.check(lines) is None, "\n".join(view_fuzz.shrink(lines))


@pytest.mark.parametrize("lines", FOUND)
def test_found_program_agrees_with_cpu(lines):
    assert view_fuzz.check(lines) is None


@pytest.mark.parametrize("lines", FOUND[1:])  # in the first, CPU refuses a line
def test_found_program_agrees_with_cpu_compiled(lines):
    assert view_fuzz.check(lines, compiled=True) is None


def test_a_wrong_result_is_noticed_and_shrunk():
    lines = [
        "t0 = torch.zeros(3).to(device)",
        "t1 = t0[1:]",
        "t1.add_(1 if device == 'cpu' else 2)",
        "t2 = t0.clone()",
    ]
    assert view_fuzz.check(lines) is not None
    assert (
        view_fuzz.shrink(lines) == [lines[0], lines[1], lines[2]]
        or len(view_fuzz.shrink(lines)) < 4
    )
