# SPDX-License-Identifier: Apache-2.0
"""Sides measured in turns: each has a process of its own and waits while another measures.

A benchmark calls `serve` when it is started with --serve, and otherwise `Side(...)` once per side
and `alternate`. Only torch may be imported here: the peer's environment runs this file too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable


def _environment(python: str) -> dict[str, str]:
    """Another interpreter has other packages: what PYTHONPATH shows us is not for it."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if python != sys.executable:
        env.pop("PYTHONPATH", None)
    return env


class Side:
    """A process that measures named cases; ended by `close` or with the parent."""

    def __init__(self, name: str, program: str, *arguments: str, python: str = sys.executable):
        self.name = name
        self._process = subprocess.Popen(
            [python, program, "--serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(python),
        )

    def ask(self, case: str) -> object:
        """Returns what the side measured, or None where it failed (its message is on stderr)."""
        try:
            print(json.dumps(case), file=self._process.stdin, flush=True)
            while line := self._process.stdout.readline():
                if line.startswith("answer "):
                    return json.loads(line.removeprefix("answer "))
        except BrokenPipeError:
            pass
        return None  # the process is gone

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def serve(measure: Callable[[str], object]) -> None:
    """Answers one case a line until standard input ends."""
    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer = measure(case)
        except Exception as error:
            print(f"{case}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
            answer = None
        print("answer", json.dumps(answer), flush=True)


def alternate(sides: Iterable[Side], cases: Iterable[str], *, rounds: int) -> dict:
    """Returns {case: {side: median or None}}; a round asks every side before the next begins."""
    sides = list(sides)
    medians: dict[str, dict[str, float | None]] = {}
    for case in cases:
        values: dict[str, list[float]] = {side.name: [] for side in sides}
        dead: set[str] = set()
        for _ in range(rounds):
            for side in sides:
                answer = None if side.name in dead else side.ask(case)
                if answer is None:
                    dead.add(side.name)
                else:
                    values[side.name].append(answer)
        medians[case] = {
            name: statistics.median(v) if v and name not in dead else None
            for name, v in values.items()
        }
    return medians


def ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


def cell(value: float | None, width: int = 10) -> str:
    if value is None:
        return "-".rjust(width)
    return (
        f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"
    ).rjust(width)
