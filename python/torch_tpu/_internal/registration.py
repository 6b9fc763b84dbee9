# SPDX-License-Identifier: Apache-2.0
"""Makes "tpu" a device of PyTorch: once a process, without creating a client or loading a
plugin.
"""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Any

import torch

from torch_tpu import compat

__all__ = ["Unusable", "register"]

_registered = False


class Unusable(ImportError):
    """This installation cannot serve this PyTorch; the text says what to install."""


def register() -> None:
    """Registers the backend; calling it again does nothing.

    Raises:
        Unusable: another torch version than the one we are built for, another package of our
            name, or PyTorch's one slot for
            backends of others is taken.
    """
    global _registered
    if _registered:
        return
    _check_torch_version()
    _check_other_package()
    _check_slot()

    # This order: the name before its first use, the module before methods that look it up.
    torch.utils.rename_privateuse1_backend("tpu")
    try:
        from torch_tpu import _C
    except ImportError as e:
        raise Unusable(
            f"its C++ core does not load ({e}). "
            "Reinstall it: pip install --force-reinstall torch-tpu"
        ) from e
    from torch_tpu._internal import inductor, patches, platform

    platform.configure(_C)
    _C.set_decomposer(_decompose)

    import torch_tpu.tpu as module
    from torch_tpu import backends

    torch._register_device_module("tpu", module)
    for name, part in list(sys.modules.items()):
        if name.startswith(
            "torch_tpu.tpu."
        ):  # so that `import torch.tpu.memory` finds the same module, not a copy
            sys.modules["torch.tpu." + name.removeprefix("torch_tpu.tpu.")] = part
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    backends.install()
    patches.apply()
    inductor.refuse_tpu()
    # bfloat16 is what a TPU multiplies; PyTorch's default for a backend like ours is float16.
    torch.set_autocast_dtype("tpu", torch.bfloat16)
    _registered = True


def _decompose(name: str, args: list[Any]) -> Any:
    from torch_tpu._internal import (
        decompose,  # not at import: it brings make_fx and PyTorch's references
    )

    return decompose.decompose(name, args)


def _check_torch_version() -> None:
    if not compat.is_supported(torch.__version__):
        raise Unusable(
            f"this build is for torch {compat.BUILT_FOR}, "
            f"and torch {torch.__version__} is installed. "
            f"Install the one that fits: pip install 'torch=={compat.BUILT_FOR}.*', "
            "or a torch-tpu that is built for yours"
        )


def _check_other_package() -> None:
    """Google's backend is a distribution "torch-tpu" as well: its files and ours overwrite each
    other. Ours is told by its summary.
    """
    for found in metadata.distributions(name="torch-tpu"):
        if (found.metadata["Summary"] or "").startswith("A native PyTorch backend for TPUs"):
            continue
        raise Unusable(
            f"the package torch-tpu {found.version}, Google's backend, is installed too. "
            "It has the same import name, torch_tpu, so one of the two is broken. Keep one: "
            "pip uninstall torch-tpu (until none is left), then install the one you want"
        )


def _check_slot() -> None:
    taken = torch._C._get_privateuse1_backend_name()
    if taken != "privateuseone":
        raise Unusable(
            f'PyTorch has room for one backend from outside and it is taken by "{taken}". '
            "Uninstall one of the two, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0 "
            "and import the one you want"
        )
