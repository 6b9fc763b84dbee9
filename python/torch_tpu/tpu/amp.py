# SPDX-License-Identifier: Apache-2.0
"""Automatic mixed precision: `torch.autocast("tpu")`, bfloat16 unless told otherwise, with
CUDA's lists of operators.
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
