# SPDX-License-Identifier: Apache-2.0
"""Automatic mixed precision: `torch.autocast("tpu")`, bfloat16 unless told otherwise, with CUDA's
lists of operators.

PyTorch keeps the default dtype by thread and starts each at float16 for a backend like ours. Set to
bfloat16 are the thread that imported torch and autograd's, which follow it. In a thread of your own
say `torch.autocast("tpu", dtype=torch.bfloat16)`.
"""

from __future__ import annotations

import torch

__all__ = ["get_amp_supported_dtype", "is_bf16_supported"]


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that autocast can cast to."""
    return [torch.bfloat16, torch.float16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: bfloat16 is what a TPU multiplies.

    Args:
        including_emulation: count XLA:CPU, which computes bfloat16 in float32, too.
    """
    if including_emulation:
        return True
    from torch_tpu.tpu.devices import get_device_properties

    return get_device_properties().platform == "tpu"
