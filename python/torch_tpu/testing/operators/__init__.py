# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own databases of operators, modules and optimizers, run on `tpu` against the CPU.

`python -m torch_tpu.testing.operators` writes docs/operators.json and docs/operators.md;
tests/python/test_operators.py holds the code to them.
"""

from torch_tpu.testing.operators.check import Outcome, run_check
from torch_tpu.testing.operators.entries import checks_of, entries, find

__all__ = ["Outcome", "checks_of", "entries", "find", "run_check"]
