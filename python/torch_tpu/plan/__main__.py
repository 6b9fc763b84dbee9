# SPDX-License-Identifier: Apache-2.0
"""What a TPU's compiler says of programs, with no TPU: of a file's, or of those that code makes.

python -m torch_tpu.plan PROGRAMS.json --target v6e --out REPORT.json
python -m torch_tpu.plan --code "torch.ones(3, device='tpu').exp()"
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from torch_tpu.plan.compile import TARGETS, compile_here, compile_programs, recording


def compile_code(code: str, targets: list[str]) -> bool:
    """Runs `code`, compiles its programs for each target, a line for each: did all compile?"""
    import torch

    with recording() as programs:
        exec(code, {"torch": torch})
    assert programs, "the code ran no program"
    ok = True
    for target in targets:
        for r in compile_programs([(name, text) for text, name in programs.items()], target):
            ok &= r["ok"]
            print(target, r["name"], "ok" if r["ok"] else r["error"], flush=True)
    return ok


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("programs", type=Path, nargs="?", help="JSON list of [name, StableHLO text]")
    what.add_argument("--code", help="Python code that runs on `tpu`; `torch` is imported")
    parser.add_argument("--target", choices=sorted(TARGETS), help="with --code: all if not given")
    parser.add_argument("--out", type=Path, help="the report on PROGRAMS.json")
    args = parser.parse_args()
    if args.code:
        sys.exit(not compile_code(args.code, [args.target] if args.target else list(TARGETS)))
    if not args.target or not args.out:
        parser.error("PROGRAMS.json wants --target and --out")
    args.out.write_text(
        json.dumps(compile_here(json.loads(args.programs.read_text()), args.target))
    )


if __name__ == "__main__":
    main()
