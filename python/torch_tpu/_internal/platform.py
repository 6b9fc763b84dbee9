# SPDX-License-Identifier: Apache-2.0
"""Which PJRT plugin this process runs on, from the environment and from what is installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import torch

__all__ = ["announce", "configure", "failure", "installed_cpu_plugins", "libtpu_path"]

# Half a MiB and three memory mappings each on XLA:CPU; Linux allows a process 65,530 mappings.
_MAX_PROGRAMS = 6000

_failure: str | None = None
_guessed = False


def _package_file(package: str, file: str) -> str:
    """The path of `file` in an installed package, or "". Finds the package without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # of a parent package
        return ""
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / file
        if path.is_file():
            return str(path)
    return ""


def libtpu_path() -> str:
    """libtpu's path: TPU_LIBRARY_PATH, or that of the pip package; "" if there is none."""
    return os.environ.get("TPU_LIBRARY_PATH") or _package_file("libtpu", "libtpu.so")


def installed_cpu_plugins() -> dict[str, str]:
    """XLA:CPU plugins by the name of their pip package, preferred first."""
    found = {
        "xla-cpu-pjrt": _package_file("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so"),
        "lammps-jax-pjrt-cpu": _package_file("lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so"),
    }
    return {name: path for name, path in found.items() if path}


def _number(name: str, default: int, smallest: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdigit() or int(text) < smallest:
        raise RuntimeError(f"{name}={text}: expected a whole number of at least {smallest}")
    return int(text)


def _flag(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() not in ("", "0", "false", "off", "no")


def _cache_dir() -> str:
    folder = os.environ.get("TORCH_TPU_CACHE_DIR")
    if folder is not None:
        return folder
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "torch_tpu")


def _plugin_choice() -> tuple[str, list[str]]:
    """The word for the C++ choice and the XLA:CPU plugins it may take."""
    platform = os.environ.get("TORCH_TPU_PLATFORM", "").strip() or "auto"
    plugins = installed_cpu_plugins()
    if platform not in ("lammps", "lammps-jax-pjrt-cpu", "xla-cpu-pjrt"):
        return platform, list(plugins.values())
    name = "lammps-jax-pjrt-cpu" if platform == "lammps" else platform
    if name not in plugins:
        raise RuntimeError(
            f"TORCH_TPU_PLATFORM={platform}, but its plugin is not installed: pip install {name}"
        )
    return "cpu", [plugins[name]]


def configure(core: ModuleType) -> None:
    """Reads the environment and tells the core; loads nothing. What is wrong is kept for
    `failure`: import must go on.
    """
    global _failure, _guessed
    if core.is_initialized():
        return
    _failure, _guessed = None, False
    config = {
        "plugin_path": "",
        "platform": "",
        "num_devices": 0,
        "cache_dir": _cache_dir(),
        "cache_max_bytes": 4 << 30,
        "max_programs": _MAX_PROGRAMS,
        "blocking": _flag("TORCH_TPU_BLOCKING"),
        "torch_version": torch.__version__,
    }
    try:
        platform, plugins = _plugin_choice()
        choice = core.find_plugin(platform, libtpu_path(), plugins)
        num_devices = _number("TORCH_TPU_DEVICES", 1, 1)
        config["cache_max_bytes"] = _number("TORCH_TPU_CACHE_MAX_BYTES", 4 << 30, 0)
        config["max_programs"] = _number("TORCH_TPU_MAX_PROGRAMS", _MAX_PROGRAMS, 1)
        config["plugin_path"], config["platform"] = choice["path"], choice["platform"]
        config["num_devices"] = (
            choice["num_devices"] if choice["platform"] == "tpu" else num_devices
        )
        _guessed = choice["guessed"]
    except RuntimeError as e:
        _failure = str(e)
    core.configure(**config)
    if _flag("TORCH_TPU_HOST_FALLBACK"):
        core.set_host_fallback(True)


def failure() -> str | None:
    """Why there is no device, or None."""
    return _failure


def announce() -> None:
    """Says on stderr, once, that `auto` found no TPU and runs on the CPU; TORCH_TPU_QUIET=1
    silences it.
    """
    global _guessed
    if _guessed and not _flag("TORCH_TPU_QUIET"):
        print(
            "torch_tpu: no TPU on this machine; the device tpu runs on XLA:CPU "
            "(TORCH_TPU_QUIET=1 hides this line)",
            file=sys.stderr,
        )
    _guessed = False
