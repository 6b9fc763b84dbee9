# SPDX-License-Identifier: Apache-2.0
"""Recording the programs of a run and compiling them for TPU topologies in a child process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch_tpu import _C
from torch_tpu._internal import platform

__all__ = ["TARGETS", "compile_here", "compile_programs", "recording"]

# One chip each (tpu7x's two cores are two devices).
TARGETS = {"v5e": "v5e:1x1", "v6e": "v6e:1x1", "v7x": "tpu7x:1x1x1"}

# Peak figures of one device from JAX's public table (jax/_src/tpu_info.py): bf16 FLOP/s, HBM
# bytes/s.
PEAK = {"v5e": (197e12, 0.82e12), "v6e": (920e12, 1.64e12), "v7x": (1155e12, 3.70e12)}


@contextlib.contextmanager
def recording() -> Iterator[dict[str, str]]:
    """Collects the programs compiled or loaded meanwhile: {StableHLO text: operator or graph}.

    They are in the form that a TPU gets, without what is special to XLA:CPU.
    """
    programs: dict[str, str] = {}
    _C.set_portable_programs(True)
    _C.clear_programs()
    _C.keep_program_texts(True)
    try:
        yield programs
    finally:
        programs.update({text: name for name, text in _C.program_texts()})
        _C.keep_program_texts(False)
        _C.set_portable_programs(False)


def floor_seconds(target: str, cost: dict[str, float]) -> float:
    """Roofline bound of a program: the larger of FLOPs at bf16 peak and bytes moved at HBM
    bandwidth, in seconds.
    """
    flops, bandwidth = PEAK[target]
    return max(cost.get("flops", 0.0) / flops, cost.get("bytes accessed", 0.0) / bandwidth)


def compile_here(programs: Sequence[tuple[str, str]], target: str) -> list[dict[str, Any]]:
    """Compiles (name, text) pairs in this process, which loads libtpu.

    Returns: one record a program: name, ok, memory (bytes), flops, bytes, optimal_seconds (the
        compiler's), floor_seconds (roofline), or error (the compiler's message).
    """
    compiler = _C.CompileTarget(platform.libtpu_path(), TARGETS[target])
    records = []
    for name, text in programs:
        try:
            result = compiler.compile(text)
        except RuntimeError as e:
            records.append({"name": name, "ok": False, "error": str(e)[:2000]})
            continue
        cost = result["cost"]
        records.append(
            {
                "name": name,
                "ok": True,
                "memory": result["memory"],
                "flops": cost.get("flops", 0.0),
                "bytes": cost.get("bytes accessed", 0.0),
                "optimal_seconds": cost.get("optimal_seconds", 0.0),
                "floor_seconds": floor_seconds(target, cost),
            }
        )
    return records


def compile_programs(
    programs: Sequence[tuple[str, str]], target: str, timeout_s: float = 3600
) -> list[dict[str, Any]]:
    """The same in a child process, so that libtpu is not loaded into this one.

    Raises:
        FileNotFoundError: the libtpu wheel is not installed.
        RuntimeError: the child died; its last words are in the text.
    """
    if not platform.libtpu_path():
        raise FileNotFoundError("libtpu is not installed: pip install libtpu")
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "programs.json", Path(folder) / "report.json"
        source.write_text(json.dumps(list(programs)))
        command = [
            sys.executable,
            "-m",
            "torch_tpu.plan",
            str(source),
            "--target",
            target,
            "--out",
            str(out),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
        if done.returncode != 0 or not out.exists():
            raise RuntimeError(
                f"the compile for {target} ended with {done.returncode}: {done.stderr[-2000:]}"
            )
        return json.loads(out.read_text())
