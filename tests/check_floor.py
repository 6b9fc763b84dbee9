# SPDX-License-Identifier: Apache-2.0
"""Fails when fewer tests passed than tests/floor.json asks: a suite that shrank is not green.

    python tests/check_floor.py RESULTS_FOLDER

Raise a floor in the commit that adds tests; lower it only in a commit that says which tests went
and why.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def passed(report: Path) -> int:
    """Number of test cases in a JUnit file that ran and neither failed nor were skipped."""
    if not report.exists():
        return 0
    unwell = {"failure", "error", "skipped"}
    cases = ElementTree.parse(report).iter("testcase")
    return sum(
        1
        for case in cases
        if case.get("status") not in {"notrun", "disabled", "fail"}
        and not unwell & {child.tag for child in case}
    )


def main(folder: Path) -> int:
    floors: dict[str, int] = json.loads(Path(__file__).with_name("floor.json").read_text())
    short = False
    for name, floor in floors.items():
        count = passed(folder / name)
        verdict = "ok" if count >= floor else "TOO FEW"
        short |= count < floor
        print(f"{name}: {count} tests passed, floor {floor}: {verdict}")
    return int(short)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
