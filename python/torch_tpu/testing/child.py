# SPDX-License-Identifier: Apache-2.0
"""Programs in a process of their own: for environment variables, forks, and whatever must not touch
this process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

__all__ = ["run"]


def run(
    program: str, check: bool = True, timeout_s: int = 120, **environment: str
) -> subprocess.CompletedProcess:
    """Runs a Python program, dedented, with these environment variables on top of ours.

    Args:
        check: assert that it ends with status 0; its stderr is the message.
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert not check or done.returncode == 0, done.stderr
    return done
