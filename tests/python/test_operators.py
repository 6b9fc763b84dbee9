# SPDX-License-Identifier: Apache-2.0
"""What docs/operators.json says passes, passes: PyTorch's operators, modules and optimizers against
the CPU.

One test an entry. Its first check (float32 with gradients, train, for-loop) runs each time; of all
other checks a tenth does, another tenth each day, or the one that TORCH_TPU_OPERATORS_TENTH says (0
to 9; "all" for all). `make operators-page` runs everything.
"""

from __future__ import annotations

import datetime
import json
import os
import zlib
from pathlib import Path

import pytest
import torch

from torch_tpu.testing.operators import checks_of, entries, run_check
from torch_tpu.testing.operators.page import COMPLETE, render, stale, status

PAGE = Path(__file__).parents[2] / "docs" / "operators.json"
RECORD = json.loads(PAGE.read_text())
COLUMN = RECORD["plugins"][COMPLETE]

TENTH = os.environ.get("TORCH_TPU_OPERATORS_TENTH") or str(datetime.date.today().toordinal() % 10)


def in_sample(entry: str, check: str) -> bool:
    return TENTH == "all" or zlib.crc32(f"{entry} {check}".encode()) % 10 == int(TENTH)


def chosen(entry: str) -> list[str]:
    passing = [c for c in checks_of(entry) if status(COLUMN, entry, c)[0] == "pass"]
    return [
        c
        for i, c in enumerate(passing)
        if (i == 0 and c == checks_of(entry)[0]) or in_sample(entry, c)
    ]


@pytest.mark.parametrize("entry", [e for e in entries() if chosen(e)])
def test_entry_that_passed_still_does(entry):
    for check in chosen(entry):
        outcome = run_check(entry, check, samples=2)
        assert outcome.kind == "pass", f"{check}: {outcome.text}"


def test_page_is_of_this_torch_and_this_registry():
    assert RECORD["torch"] == torch.__version__.partition("+")[0]
    assert stale(RECORD) == [], "run `make operators-page`"


def test_page_for_readers_is_rendered_from_the_record():
    assert PAGE.with_suffix(".md").read_text() == render(RECORD), "run `make operators-page`"


def test_nothing_is_wrong_crashes_or_hangs():
    bad = {
        f"{entry} {check}": status(COLUMN, entry, check)
        for entry in COLUMN
        for check in checks_of(entry)
        if status(COLUMN, entry, check)[0] in ("wrong", "crash", "timeout")
    }
    assert bad == {}
