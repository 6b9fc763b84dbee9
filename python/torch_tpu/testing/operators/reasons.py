# SPDX-License-Identifier: Apache-2.0
"""Entries that neither pass nor are missing, and why: `tpu` does here what it should."""

from __future__ import annotations

import re

__all__ = ["reason"]

# (entry, check, reason), regular expressions that match whole names.
REASONS: list[tuple[str, str, str]] = [
    (
        r"op/torch\.ops\.aten\._flash_attention.*|op/torch\.ops\.aten\._efficient_attention.*",
        ".*",
        "names a CUDA kernel",
    ),
    (r"op/_?scaled_dot_product.*_for_cpu.*", ".*", "names a CPU kernel"),
    (
        r"op/(sparse\.|to_sparse|_?sparse_).*",
        ".*",
        "makes or takes a sparse tensor: layouts other than strided are refused",
    ),
    (r"op/chalf", ".*", "complex32, which XLA has not, is refused by name"),
    (
        r"op/(native|_native|_batch)_(batch_norm|norm|layer_norm).*",
        "bfloat16|float32|float64|out=",
        "what it keeps for its backward has the shape and dtype of PyTorch's meta function and of "
        "CUDA, not of the CPU's kernel",
    ),
    (
        r"op/special\.bessel_.*",
        "float64",
        "the CPU's float64 is off by up to 5e-7; tpu's is within 1e-15 of SciPy's",
    ),
    (
        r"op/matrix_exp",
        "float32",
        "the samples' gradients reach 1e10 and both sides lose digits: "
        "the CPU is 3.5 % off float64's, tpu 1.9 %",
    ),
    (
        r"module/nn\.FractionalMaxPool[23]d",
        ".*",
        "PyTorch's sample has float64 _random_samples for a float32 input, "
        "which its meta function refuses",
    ),
    (r"optim/SparseAdam", ".*", "takes sparse gradients: layouts other than strided are refused"),
]


def reason(entry: str, check: str) -> str | None:
    """Why this check of this entry is not expected to pass; None if it is."""
    for entries, checks, text in REASONS:
        if re.fullmatch(entries, entry) and re.fullmatch(checks, check):
            return text
    return None
