# SPDX-License-Identifier: Apache-2.0
"""Seconds that `import torch_tpu` adds to `import torch` in fresh processes. Goal: at most 0.3."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

PROGRAM = (
    "import time, torch; t = time.perf_counter(); import torch_tpu; print(time.perf_counter() - t)"
)


def main(rounds: int = 7) -> None:
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-c", PROGRAM]
    seconds = [
        float(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
        for _ in range(rounds)
    ]
    print(
        f"import torch_tpu: median {statistics.median(seconds):.3f} s, "
        f"least {min(seconds):.3f} s of {rounds}; goal 0.3 s"
    )


if __name__ == "__main__":
    main()
