# SPDX-License-Identifier: Apache-2.0
"""How the package loads: by itself, quickly, and without dragging others in."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from importlib.metadata import entry_points

import pytest


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_torch_finds_the_backend_by_its_entry_point():
    named = entry_points(group="torch.backends", name="torch_tpu")
    assert [entry.value for entry in named] == ["torch_tpu:_autoload"]


def test_import_torch_loads_the_backend():
    assert run("import torch; print(torch.ones(2, device='tpu').sum().item())") == "2.0"


def test_import_torch_leaves_it_out_when_autoload_is_off():
    code = "import sys, torch; print('torch_tpu' in sys.modules)"
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "False"


def test_import_torch_tpu_alone_is_enough_when_autoload_is_off():
    code = "import torch_tpu, torch; print(torch.ones(2, device='tpu').sum().item())"
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "2.0"


@pytest.mark.parametrize("module", ["jax", "transformers", "torch._dynamo", "numpy.testing"])
def test_importing_does_not_bring(module):
    loaded = f"import torch, sys; before = {module!r} in sys.modules; import torch_tpu; "
    assert (
        run(
            loaded + f"print(before or {module!r} not in sys.modules)",
            TORCH_DEVICE_BACKEND_AUTOLOAD="0",
        )
        == "True"
    )


def test_importing_creates_no_client():
    # A fork after `import torch` must stay possible: data loaders do it.
    code = "import torch; print(torch.tpu.is_available(), torch.tpu.is_initialized())"
    assert run(code) == "True False"


def test_importing_costs_at_most_three_tenths_of_a_second():
    code = (
        "import time, torch; started = time.perf_counter(); "
        "import torch_tpu; print(time.perf_counter() - started)"
    )
    times = [float(run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")) for _ in range(5)]
    # The least of five: a loaded machine only ever adds.
    assert min(times) <= 0.3, f"median {statistics.median(times):.2f} s"
