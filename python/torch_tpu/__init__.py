# SPDX-License-Identifier: Apache-2.0
"""PyTorch on TPUs: after `import torch` the device "tpu" exists, and plain programs run on it.

Nothing here needs to be called. PyTorch imports this package by itself (entry point group
`torch.backends`; switched off by TORCH_DEVICE_BACKEND_AUTOLOAD=0, then `import torch_tpu` does the
same). What programs use is `torch.tpu`, `torch.backends.tpu` and `torch.accelerator`.

Environment, read when torch is imported and again at the first use of the device:
    TORCH_TPU_PLATFORM          auto (a TPU if there is one, else XLA:CPU), tpu, cpu, lammps, or
                                the path of a PJRT plugin
    TORCH_TPU_DEVICES           number of devices that XLA:CPU pretends to have; 1
    TORCH_TPU_CACHE_DIR         compiled programs; the user's cache folder; empty: none are kept
    TORCH_TPU_CACHE_MAX_BYTES   their size on disk; 4 GiB
    TORCH_TPU_MAX_PROGRAMS      programs in memory, past which all are forgotten; 6000
    TORCH_TPU_BLOCKING          1: every operator waits, and one that fails is named at its own line
    TORCH_TPU_HOST_FALLBACK     1: operators that tpu has not run on the CPU, and are counted
    TORCH_TPU_QUIET             1: do not say that there is no TPU
"""

from __future__ import annotations

__all__ = ["__version__"]
__version__ = "0.1.0"


def _autoload() -> None:
    """The entry point that `import torch` calls. Never raises: torch must stay importable
    without us.
    """
    from torch_tpu._internal import registration

    try:
        registration.register()
    except registration.Unusable as e:
        import warnings

        warnings.warn(f"torch_tpu is not loaded: {e}", RuntimeWarning, stacklevel=2)


# `import torch` finds `_autoload` above and registers us at its end, even when it is this line that
# imports torch.
import torch  # noqa: E402, F401

from torch_tpu._internal import registration as _registration  # noqa: E402

# While torch itself is being imported it is about to call `_autoload`, which never raises; an
# explicit import does.
if not getattr(torch.__spec__, "_initializing", False):
    _registration.register()
