# SPDX-License-Identifier: Apache-2.0
"""python -m torch_tpu.plan PROGRAMS.json --target v6e --out REPORT.json"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from torch_tpu.plan.compile import TARGETS, compile_here


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Compile StableHLO programs for a TPU, ahead of time."
    )
    parser.add_argument("programs", type=Path, help="JSON list of [name, StableHLO text]")
    parser.add_argument("--target", choices=sorted(TARGETS), required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.write_text(
        json.dumps(compile_here(json.loads(args.programs.read_text()), args.target))
    )


if __name__ == "__main__":
    main()
