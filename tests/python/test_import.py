# SPDX-License-Identifier: Apache-2.0
"""What `import torch` and `import torch_tpu` do, and what they refuse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

import torch_tpu
from torch_tpu import compat
from torch_tpu.testing.child import run

PACKAGE_FOLDER = str(Path(torch_tpu.__file__).parents[1])


OUR_SUMMARY = "A native PyTorch backend for TPUs: plain eager code"


def distribution(
    folder: Path, name: str, version: str, entry_points: str = "", summary: str = "Another"
) -> str:
    """An installed distribution as importlib.metadata sees it; gives the PYTHONPATH that shows
    it.
    """
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n"
    )
    if entry_points:
        (info / "entry_points.txt").write_text(entry_points)
    return os.pathsep.join([str(folder), PACKAGE_FOLDER, os.environ.get("PYTHONPATH", "")])


@pytest.fixture
def with_entry_point(tmp_path: Path) -> dict[str, str]:
    """The environment in which our entry point is installed."""
    points = "[torch.backends]\ntorch_tpu = torch_tpu:_autoload\n"
    path = distribution(tmp_path, "torch-tpu", "0.0.0", points, OUR_SUMMARY)
    return {"PYTHONPATH": path, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}


def test_import_torch_alone_registers_the_device(with_entry_point):
    done = run("import torch; print(torch.ones(2, device='tpu').device)", **with_entry_point)
    assert done.stdout.strip() == "tpu:0"


def test_import_torch_tpu_first_registers_once(with_entry_point):
    done = run("import torch_tpu, torch; print(torch.tpu.device_count())", **with_entry_point)
    assert done.stdout.strip() == "1"


def test_autoload_is_off_when_the_variable_is_0(with_entry_point):
    program = (
        "import torch; print(hasattr(torch, 'tpu')); import torch_tpu; print(hasattr(torch, 'tpu'))"
    )
    done = run(program, **{**with_entry_point, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert done.stdout.split() == ["False", "True"]


def test_import_loads_no_plugin_and_no_heavy_package():
    program = """
        import sys, torch
        before = set(sys.modules)
        import torch_tpu
        print(torch.tpu.is_initialized(), torch.tpu.is_available(), torch.tpu.is_initialized())
        heavy = ("jax", "jaxlib", "libtpu", "xla_plugins.xla_cpu_pjrt", "lammps_jax_pjrt_cpu")
        heavy += ("transformers", "torch._dynamo")
        print([m for m in heavy if m in sys.modules and m not in before])
        print("xla_cpu_pjrt.so" in open("/proc/self/maps").read())
    """
    done = run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.stdout.splitlines() == ["False True False", "[]", "False"]
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["memory", "random", "streams", "amp", "stats"])
def test_parts_of_the_device_module_import_as_torch_tpu_parts(name):
    import importlib

    assert importlib.import_module(f"torch.tpu.{name}") is importlib.import_module(
        f"torch_tpu.tpu.{name}"
    )


@pytest.mark.parametrize(
    "version, supported",
    [
        ("2.13.0", True),
        ("2.13.1+cpu", True),
        ("2.13.0a0+git12", True),
        ("2.14.0", False),
        ("2.1.3", False),
    ],
)
def test_torch_version_must_be_the_minor_built_for(version, supported):
    assert compat.is_supported(version) is supported


def test_other_torch_version_leaves_torch_importable_and_names_both(with_entry_point):
    program = """
        import torch
        from torch_tpu import compat
        print(torch.ones(2).sum().item(), hasattr(torch, "tpu"))
    """
    # The version is read from the module, so a torch of another version is one whose check fails.
    shim = Path(with_entry_point["PYTHONPATH"].split(os.pathsep)[0]) / "sitecustomize.py"
    shim.write_text(
        "import importlib.abc, importlib.machinery, sys\n"
        "class Finder(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name != 'torch_tpu.compat':\n"
        "            return None\n"
        "        spec = importlib.machinery.PathFinder.find_spec(name, path)\n"
        "        execute = spec.loader.exec_module\n"
        "        def exec_module(module):\n"
        "            execute(module)\n"
        "            module.BUILT_FOR = '2.99'\n"
        "        spec.loader.exec_module = exec_module\n"
        "        return spec\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    done = run(program, **with_entry_point)
    assert done.stdout.split() == ["2.0", "False"]
    assert (
        f"this build is for torch 2.99, and torch {torch.__version__} is installed" in done.stderr
    )
    assert "pip install 'torch==2.99.*'" in done.stderr


def test_googles_package_beside_ours_is_named_and_torch_goes_on(with_entry_point, tmp_path):
    distribution(tmp_path, "torch-tpu", "0.2.0")
    done = run(
        "import torch; print(torch.ones(2).sum().item(), hasattr(torch, 'tpu'))", **with_entry_point
    )
    assert done.stdout.split() == ["2.0", "False"]
    assert "the package torch-tpu 0.2.0, Google's backend, is installed too" in done.stderr


def test_taken_backend_slot_is_an_import_error_naming_the_owner():
    program = """
        import torch
        torch.utils.rename_privateuse1_backend("npu")
        try:
            import torch_tpu
        except ImportError as e:
            print(e)
    """
    done = run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert 'it is taken by "npu"' in done.stdout


USE = "import torch, torch_tpu; print((torch.ones(2, device='tpu') + 1).tolist())"


def test_auto_without_a_tpu_says_so_once_on_stderr():
    program = USE + "; torch.ones(3, device='tpu')"
    done = run(program, TORCH_TPU_PLATFORM="auto", TORCH_TPU_QUIET="")
    assert done.stdout.strip() == "[2.0, 2.0]"
    assert done.stderr.splitlines() == [
        "torch_tpu: no TPU on this machine; the device tpu runs on XLA:CPU "
        "(TORCH_TPU_QUIET=1 hides this line)"
    ]


@pytest.mark.parametrize("environment", [{"TORCH_TPU_QUIET": "1"}, {"TORCH_TPU_PLATFORM": "cpu"}])
def test_quiet_or_a_chosen_platform_prints_nothing(environment):
    assert (
        run(USE, **{"TORCH_TPU_PLATFORM": "auto", "TORCH_TPU_QUIET": "", **environment}).stderr
        == ""
    )


def plugin_paths() -> dict[str, str]:
    from torch_tpu._internal import platform

    return platform.installed_cpu_plugins()


@pytest.mark.parametrize(
    "word, package",
    [("cpu", None), ("xla-cpu-pjrt", "xla-cpu-pjrt"), ("lammps", "lammps-jax-pjrt-cpu")],
)
def test_platform_word_chooses_the_plugin(word, package):
    plugins = plugin_paths()
    if package is not None and package not in plugins:
        pytest.skip(f"{package} is not installed")
    done = run(
        "import torch, torch_tpu; print(torch.tpu.get_device_properties().plugin_path)",
        TORCH_TPU_PLATFORM=word,
    )
    assert done.stdout.strip() == (plugins[package] if package else next(iter(plugins.values())))


def test_platform_may_be_the_path_of_a_plugin():
    path = next(iter(plugin_paths().values()))
    assert run(USE, TORCH_TPU_PLATFORM=path).stdout.strip() == "[2.0, 2.0]"


ASK = """
    import torch, torch_tpu
    print(torch.tpu.is_available(), torch.tpu.device_count())
    torch.manual_seed(0)
    for _ in range(2):
        try:
            torch.ones(2, device="tpu")
        except RuntimeError as e:
            print(e)
    print(torch.ones(2).sum().item())
"""


@pytest.mark.parametrize(
    "variable, value, text",
    [
        ("TORCH_TPU_PLATFORM", "gpu", "expected auto, tpu, cpu or the path of a PJRT plugin"),
        ("TORCH_TPU_PLATFORM", "/nowhere/plugin.so", "no such file"),
        ("TORCH_TPU_DEVICES", "0", "TORCH_TPU_DEVICES=0: expected a whole number of at least 1"),
        (
            "TORCH_TPU_DEVICES",
            "two",
            "TORCH_TPU_DEVICES=two: expected a whole number of at least 1",
        ),
        (
            "TORCH_TPU_CACHE_MAX_BYTES",
            "-1",
            "TORCH_TPU_CACHE_MAX_BYTES=-1: expected a whole number of at least 0",
        ),
        (
            "TORCH_TPU_MAX_PROGRAMS",
            "0",
            "TORCH_TPU_MAX_PROGRAMS=0: expected a whole number of at least 1",
        ),
    ],
)
def test_bad_setting_fails_at_first_use_with_its_name_and_torch_goes_on(variable, value, text):
    done = run(ASK, **{"TORCH_TPU_PLATFORM": "cpu", variable: value})
    lines = done.stdout.splitlines()
    assert lines[0] == "False 0"
    assert (
        lines[1] == lines[2] and lines[1].startswith("tpu is not available: ") and text in lines[1]
    )
    assert lines[3] == "2.0"


def test_file_that_is_no_plugin_is_an_error_naming_it(tmp_path):
    path = tmp_path / "plugin.so"
    path.write_text("not a library")
    done = run(ASK, TORCH_TPU_PLATFORM=str(path))
    lines = done.stdout.splitlines()
    assert str(path) in lines[1] and lines[-1] == "2.0"


def test_torch_library_as_a_plugin_is_an_error_naming_what_it_lacks():
    path = str(Path(torch.__file__).parent / "lib" / "libc10.so")
    done = run(ASK, TORCH_TPU_PLATFORM=path)
    assert "GetPjrtApi" in done.stdout and done.stdout.splitlines()[-1] == "2.0"


def test_devices_variable_set_after_import_still_counts_before_first_use():
    program = """
        import os, torch, torch_tpu
        os.environ["TORCH_TPU_DEVICES"] = "2"
        print(torch.ones(2, device="tpu").device, torch.tpu.device_count())
    """
    assert run(program, TORCH_TPU_PLATFORM="cpu").stdout.split() == ["tpu:0", "2"]


@pytest.mark.parametrize("attempt", range(3))
def test_a_program_that_ends_in_backward_ends_well(attempt):
    run("""
        import torch
        x = torch.ones(3, device="tpu", requires_grad=True)
        (x * 2).sum().backward()
        """)
