# SPDX-License-Identifier: Apache-2.0
"""What is checked: an entry for each record of PyTorch's databases, and an entry's checks."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

__all__ = ["DTYPES", "checks_of", "depth", "entries", "find"]

# A dtype's check runs the operator on samples of it. The first is checked in depth, gradients
# included; an operator that has it not is checked in depth in the first one that it has.
DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "bool": torch.bool,
    "complex64": torch.complex64,
    "float64": torch.float64,
}


@cache
def _databases() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db
    from torch.testing._internal.common_optimizers import optim_db

    found: dict[str, Any] = {f"op/{info.full_name}": info for info in op_db}
    found |= {f"module/{info.name}": info for info in module_db}
    optimizers: list[Any] = optim_db  # typed as if `optim_cls` were an optimizer, not a class
    found |= {f"optim/{info.optim_cls.__name__}": info for info in optimizers}
    return dict(sorted(found.items()))


def entries() -> list[str]:
    """The names of all entries, `op/add`, `module/nn.Linear`, `optim/Adam`, sorted."""
    return list(_databases())


def find(entry: str) -> Any:
    """PyTorch's record (OpInfo, ModuleInfo or OptimizerInfo) of an entry."""
    return _databases()[entry]


def depth(op: Any) -> str | None:
    """The dtype in which an operator is checked in depth; None if it has none of ours."""
    return next((name for name, dtype in DTYPES.items() if dtype in op.dtypes), None)


@cache
def checks_of(entry: str) -> tuple[str, ...]:
    """The names of an entry's checks: dtypes, "in-place", "out="; "train", "eval"; "for-loop",
    "foreach", "fused".
    """
    info, kind = find(entry), entry.partition("/")[0]
    if kind == "module":
        return ("train", "eval") if info.train_and_eval_differ else ("train",)
    if kind == "optim":
        return ("for-loop", *(i for i in ("foreach", "fused") if i in info.supported_impls))
    checks = [name for name, dtype in DTYPES.items() if dtype in info.dtypes]
    if depth(info) is not None:
        checks += ["in-place"] if info.get_inplace() is not None else []
        checks += ["out="] if info.supports_out else []
    return tuple(checks)
