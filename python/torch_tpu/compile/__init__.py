# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(f, backend="tpu")`: one program a graph, through AOTAutograd and eager's own
lowerings.

Example:
    >>> f = torch.compile(lambda x: torch.tanh(x) * 2, backend="tpu", fullgraph=True, dynamic=False)
    >>> f(torch.ones(3, device="tpu")).device.type
    'tpu'
"""

from torch_tpu.compile.backend import graph_records, register, tpu_backend

__all__ = ["graph_records", "register", "tpu_backend"]
