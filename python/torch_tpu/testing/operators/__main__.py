# SPDX-License-Identifier: Apache-2.0
"""python -m torch_tpu.testing.operators: runs the databases and writes the page of what works.

Each check runs in a worker process, so that a crash or a hang costs that check only. Results are
kept as they come: a run that was stopped goes on where it stopped with --resume.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from torch_tpu.testing.operators import page

PLUGINS = ["xla-cpu-pjrt", "lammps-jax-pjrt-cpu"]


def serve() -> None:
    """The worker: a line `[entry, check, samples]` in, a line `[kind, text, decomposed operators]`
    out.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    from torch_tpu import _C
    from torch_tpu.testing.operators import run_check

    for line in sys.stdin:
        outcome = run_check(*json.loads(line))
        out.write(json.dumps([*outcome, sorted(_C.decomposed_operators())]) + "\n")
        out.flush()


class Worker:
    """A child that runs checks, replaced when it dies or hangs."""

    def __init__(self, platform: str, timeout_s: float) -> None:
        self._platform, self._timeout_s = platform, timeout_s
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "torch_tpu.testing.operators", "--serve"],
            env={
                **os.environ,
                "TORCH_TPU_PLATFORM": self._platform,
                "TORCH_TPU_QUIET": "1",
                "TORCH_TPU_HOST_FALLBACK": "0",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        lines = self._lines = queue.Queue()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        return process

    def run(self, entry: str, check: str, samples: int) -> tuple[str, str, list[str]]:
        first = self._process is None
        if self._process is None:
            self._process = self._start()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([entry, check, samples]) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=self._timeout_s + (300 if first else 0))
        except queue.Empty:
            self.stop()
            return "timeout", f"over {self._timeout_s:.0f} s", []
        except BrokenPipeError:
            line = None
        if line is None:
            status = self._process.wait()
            self._process = None
            return "crash", f"exit {status}", []
        kind, text, decomposed = json.loads(line)
        return kind, text, decomposed

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def samples_for(check: str) -> int:
    return 4 if check in ("float32", "train", "eval", "for-loop", "foreach", "fused") else 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--platform", choices=PLUGINS, default=PLUGINS[0], help="the column of the page"
    )
    parser.add_argument("--only", default="", help="a regular expression of entries")
    parser.add_argument("--checks", default="", help="a regular expression of checks")
    parser.add_argument("--resume", action="store_true", help="only what the page has not")
    parser.add_argument(
        "--failing", action="store_true", help="only what the page says does not pass, or has not"
    )
    parser.add_argument("--render", action="store_true", help="run nothing: write the page anew")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one check")
    parser.add_argument("--page", type=Path, default=Path("docs/operators.json"))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()

    record = page.load(options.page)
    column = record["plugins"].setdefault(options.platform, {})
    todo: queue.Queue[tuple[str, str]] = queue.Queue()
    for entry, check in [] if options.render else page.all_checks():
        known = column.get(entry, {}).get(check)
        if not re.search(options.only, entry) or not re.search(options.checks, check):
            continue
        if options.resume and known or options.failing and known and known[0] in ("pass", "none"):
            continue
        todo.put((entry, check))
    # A part of the databases says nothing of lowerings that were added since.
    if not (options.only or options.checks or options.render):
        record["lowerings"] = page.lowerings()
    total, began, lock = todo.qsize(), time.time(), threading.Lock()
    decomposed = set(record["decomposed"])

    def drive() -> None:
        worker = Worker(options.platform, options.timeout)
        while True:
            try:
                entry, check = todo.get_nowait()
            except queue.Empty:
                return worker.stop()
            kind, text, names = worker.run(entry, check, samples_for(check))
            with lock:
                column.setdefault(entry, {})[check] = [kind, text] if text else [kind]
                decomposed.update(names)
                record["decomposed"] = sorted(decomposed)
                if todo.qsize() % 50 == 0:
                    page.save(options.page, record)
                    print(
                        f"{total - todo.qsize()} of {total}, {time.time() - began:.0f} s",
                        flush=True,
                    )

    threads = [threading.Thread(target=drive) for _ in range(options.workers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    page.save(options.page, record)
    print(page.summary(record))


if __name__ == "__main__":
    main()
