# SPDX-License-Identifier: Apache-2.0
"""What differs between PyTorch versions, with the versions it is for."""

from __future__ import annotations

__all__ = ["BUILT_FOR", "is_supported"]

# The C++ interface of a backend has no stable ABI: one build, one minor.
BUILT_FOR = "2.13"


def is_supported(torch_version: str) -> bool:
    """Whether this build runs with torch `torch_version` ("2.13.0+cpu"): the minor must be the
    one it was built for.
    """
    return torch_version.split("+")[0].split(".")[:2] == BUILT_FOR.split(".")
