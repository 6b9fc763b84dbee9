# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing in a compiled function: the backward graph draws what the forward drew.

PyTorch wraps such a draw into `run_and_save_rng_state` and its twin into `run_with_rng_state`; the
importer turns both into lowerings (see fx_import.py). Here their shapes are said for tpu: PyTorch
knows the states of its own devices only.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

__all__ = ["register_shapes"]


@functools.cache
def register_shapes() -> None:
    """Tells fake tensors what the two give on tpu; other devices as before. Once a process."""
    from torch._higher_order_ops.utils import registered_hop_fake_fns
    from torch._prims import rng_prims

    save = registered_hop_fake_fns[rng_prims.run_and_save_rng_state]
    rerun = registered_hop_fake_fns[rng_prims.run_with_rng_state]

    def run_and_save(op: Any, *args: Any, **kwargs: Any) -> Any:
        if rng_prims.get_device(args, kwargs) != "tpu":
            return save(op, *args, **kwargs)
        return torch.empty(2, dtype=torch.uint64, device="tpu"), op(*args, **kwargs)

    def run_with(state: torch.Tensor, op: Any, *args: Any, **kwargs: Any) -> Any:
        if rng_prims.get_device(args, kwargs) != "tpu":
            return rerun(state, op, *args, **kwargs)
        return op(*args, **kwargs)

    registered_hop_fake_fns[rng_prims.run_and_save_rng_state] = run_and_save
    registered_hop_fake_fns[rng_prims.run_with_rng_state] = run_with
