# SPDX-License-Identifier: Apache-2.0
"""Tells Inductor, torch.compile's default backend, that it has no code for tpu.

Left alone it takes "tpu" for Google's backend and fails inside its Pallas code generator, for want
of jax. Loading Inductor takes more than a second, so this waits until it is loaded.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

__all__ = ["refuse_tpu"]

_MODULE = "torch._inductor.codegen.common"


def refuse_tpu() -> None:
    """Registers our answer with Inductor: now if it is loaded, else when it is."""
    if _MODULE in sys.modules:
        _register(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _WhenLoaded())


class _NoCode:
    """Stands where Inductor wants a device's scheduler and code writers."""

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "torch.compile's default backend, Inductor, does not generate code for tpu: "
            'use torch.compile(..., backend="tpu")'
        )

    @property
    def supports_caching(self) -> bool:
        """What Inductor asks before it looks at a graph."""
        self()


def _register(common: ModuleType) -> None:
    common.register_backend_for_device("tpu", *[_NoCode()] * 4)


class _WhenLoaded(importlib.abc.MetaPathFinder):
    """Lets the other finders find Inductor's registry, once, and registers after it has run."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        _register(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)
