# SPDX-License-Identifier: Apache-2.0
"""What a TPU's compiler says of programs, with no TPU: libtpu compiles ahead of time for a named
topology.

Example (in a process of its own: libtpu reads its environment once and stays loaded):
    python -m torch_tpu.plan programs.json --target v6e --out report.json
"""

from torch_tpu.plan.compile import TARGETS, compile_programs, recording

__all__ = ["TARGETS", "compile_programs", "recording"]
