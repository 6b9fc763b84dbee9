# SPDX-License-Identifier: Apache-2.0
"""Every Python test: the backend is loaded, the seed is fixed, and no operator went to the host
unnoticed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

# Before torch is imported, for that configures the backend. Kept between runs and shared by xdist's
# workers: compiling is most of the suite's time.
os.environ.setdefault(
    "TORCH_TPU_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"torch_tpu-tests-{os.getuid()}")
)
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest  # noqa: E402
import torch  # noqa: E402

import torch_tpu  # noqa: E402, F401

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)  # the workers share the cores


@pytest.fixture
def device() -> torch.device:
    return torch.device("tpu")


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def no_host_fallback(request: pytest.FixtureRequest):
    """A value that the CPU computed proves nothing about the device."""
    before = torch.tpu.fallback_stats()
    yield
    if request.node.get_closest_marker("host_fallback") is None:
        assert torch.tpu.fallback_stats() == before, "an operator ran on the host"
