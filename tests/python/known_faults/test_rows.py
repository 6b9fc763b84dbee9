# SPDX-License-Identifier: Apache-2.0
"""The rows of the collection of faults that users of other devices reported, and where each is.

A row is a test in this folder whose name starts with its id, or it waits. Rows of other areas
(diffusers, distributed, dynamic shape, generate, install, kernels, profiler) belong to the suites
of those areas.
"""

from __future__ import annotations

import re
from pathlib import Path

ROWS = {
    "CMP": [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25],
    "DTY": [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29],
    "EAG": [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32]
    + [34, 35, 37, 38, 40, 41, 43, 44, 46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61],
    "MEM": [1, 2, 4, 5, 7, 8],
    "RNG": [1, 2, 4, 5, 7, 8, 10, 11, 13],
    "SAV": [1, 2, 4, 5, 7, 8, 10, 11],
    "VIW": [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31],
}  # fmt: skip

WAITING = {
    "SAV-11": "safetensors' own code accepts a fixed list of device names "
    '("device tpu is invalid"); load on the CPU and move',
    "EAG-61": "torchvision is not among the test requirements; nms and roi_align are its operators",
}


def rows() -> set[str]:
    return {f"{area}-{number:02d}" for area, numbers in ROWS.items() for number in numbers}


def rows_tested() -> set[str]:
    found = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for name in re.findall(r"^def test_(\w+)", path.read_text(), re.MULTILINE):
            ids = re.match(r"([a-z]{3})_(\d\d)((?:_and_\d\d)*)", name)
            if ids:
                numbers = [ids[2], *re.findall(r"\d\d", ids[3])]
                found |= {f"{ids[1].upper()}-{n}" for n in numbers}
    return found


def test_every_row_has_a_test_or_waits_for_something():
    assert rows_tested() | set(WAITING) == rows()
    assert not rows_tested() & set(WAITING)
