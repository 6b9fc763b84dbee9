# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` need only Debian 12's python3 (3.11, with venv), g++ 12 and make; the C++ tests also GoogleTest (libgtest-dev).
# Everything else goes into .venv, at the versions in requirements/.

PYTHON ?= python3
VENV   ?= .venv
BUILD  ?= build/venv
JOBS   ?= 2

VENV := $(abspath $(VENV))
PY   := $(VENV)/bin/python
PIP  := $(PY) -m pip --disable-pip-version-check -q
# Programs compiled by one run serve the next one and every pytest worker. What a test wants to compile anew it compiles in a folder of its own.
TORCH_TPU_CACHE_DIR ?= $(abspath build/cache)
export TORCH_TPU_CACHE_DIR
# cmake, ninja and clang-format of the venv come before the system's.
export PATH := $(VENV)/bin:$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)

RESULTS := build/results
PYTEST  := $(PY) -m pytest -n $(JOBS) --dist loadgroup

.PHONY: demo tools operators-page test test-wheel test-cpp test-python test-python-lammps test-tpu-compile bench wheel lint format clean build build-tests gtest help

help:
	@echo "make demo | test | test-cpp | test-python | test-python-lammps | test-tpu-compile | operators-page | bench | wheel | test-wheel | lint | format | clean"

# --- set-up ------------------------------------------------------------------------------------------------------

$(PY):
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip

$(VENV)/demo.stamp: requirements/constraints.txt requirements/build.txt requirements/demo.txt requirements/nodeps.txt | $(PY)
	$(PIP) install -c requirements/constraints.txt -r requirements/demo.txt
	$(PIP) install --no-deps -r requirements/nodeps.txt
	@touch $@

$(VENV)/test.stamp: requirements/test.txt $(VENV)/demo.stamp
	$(PIP) install -c requirements/constraints.txt -r requirements/test.txt
	@touch $@

# No build isolation: the extension must be built against the very torch that will load it, and that is the venv's.
# An editable install: Python edits need no rebuild, and ninja redoes only what changed in csrc/.
INSTALL = TORCH_DEVICE_BACKEND_AUTOLOAD=0 $(PIP) install --no-build-isolation --no-deps -e . \
	--config-settings=build-dir=$(BUILD) --config-settings=editable.mode=redirect

build: $(VENV)/demo.stamp
	$(INSTALL)

build-tests: $(VENV)/test.stamp gtest
	$(INSTALL) --config-settings=cmake.define.TORCH_TPU_TESTS=ON

# CMake's find_package(GTest) needs Debian's libgtest-dev (headers and a CMake package).
gtest:
	@echo '#include <gtest/gtest.h>' | $${CXX:-g++} -E -x c++ - >/dev/null 2>&1 || { \
	  echo "GoogleTest is missing: apt-get install libgtest-dev"; exit 1; }

# --- what it does ------------------------------------------------------------------------------------------------

demo: build
	$(PY) examples/generate_smollm2.py

bench: build
	$(PY) benchmarks/eager.py
	$(PY) benchmarks/generate.py
	$(PY) benchmarks/compile.py
	$(PY) benchmarks/import_time.py

# A wheel in dist/, built in pip's own environment. The venv of the checks is not touched.
wheel: $(PY)
	TORCH_DEVICE_BACKEND_AUTOLOAD=0 $(PIP) wheel --no-deps -w dist .

# The wheel as a user has it: installed in an environment of its own, whose torch is that of .venv.
WHEEL_VENV := $(abspath build/wheel-venv)
test-wheel: build
	@rm -rf build/wheel $(WHEEL_VENV)
	TORCH_DEVICE_BACKEND_AUTOLOAD=0 $(PIP) wheel --no-build-isolation --no-deps -w build/wheel . --config-settings=build-dir=$(BUILD)
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(PY) -c "import sysconfig; print(sysconfig.get_path('purelib'))" > "$$($(WHEEL_VENV)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/base.pth"
	$(WHEEL_VENV)/bin/python -m pip --disable-pip-version-check -q install --no-deps build/wheel/*.whl
	cd build/wheel && $(WHEEL_VENV)/bin/python -c "import torch; x = torch.ones(3, device='tpu'); assert (x + x).sum().item() == 6; \
	  import torch_tpu; assert 'wheel-venv' in torch_tpu.__file__, torch_tpu.__file__; print('the wheel works')"

# --- tests -------------------------------------------------------------------------------------------------------

# The floor (tests/floor.json) is checked last: a suite that silently shrank is a failure.
test: build-tests
	@rm -rf $(RESULTS) && mkdir -p $(RESULTS)
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) --output-junit $(abspath $(RESULTS))/ctest.xml
	$(PYTEST) --junit-xml $(RESULTS)/pytest.xml
	TORCH_TPU_PLATFORM=lammps $(PYTEST) -m "not examples and not tpu_compile" --junit-xml $(RESULTS)/pytest-lammps.xml
	$(MAKE) test-wheel
	$(PY) tests/check_floor.py $(RESULTS)

test-python: build-tests
	$(PYTEST)

test-python-lammps: build-tests
	TORCH_TPU_PLATFORM=lammps $(PYTEST) -m "not examples and not tpu_compile"

# The layers below torch, built and tested with no torch on the path: a virtual environment of their own, which has only the plugin wheel.
CPP_VENV := $(abspath build/cpp-venv)
build/cpp-venv/stamp: requirements/build.txt
	$(PYTHON) -m venv $(CPP_VENV)
	$(CPP_VENV)/bin/python -m pip --disable-pip-version-check -q install $$(grep -E '^(cmake|ninja|xla-cpu-pjrt)==' $<)
	@touch $@

test-cpp: build/cpp-venv/stamp gtest
	PATH=$(CPP_VENV)/bin:$$PATH cmake -S . -B build/cpp -G Ninja -DTORCH_TPU_WITH_TORCH=OFF -DTORCH_TPU_TESTS=ON \
	  -DPython_EXECUTABLE=$(CPP_VENV)/bin/python
	PATH=$(CPP_VENV)/bin:$$PATH cmake --build build/cpp -j $(JOBS)
	PATH=$(CPP_VENV)/bin:$$PATH ctest --test-dir build/cpp --output-on-failure -j $(JOBS)

# Every program that the tests and examples make, compiled by libtpu for v5e, v6e and v7x. CI runs a sample of them as part of `make test`.
test-tpu-compile: build-tests
	TORCH_TPU_COMPILE_ALL=1 $(PYTEST) -m tpu_compile

# docs/operators.json and .md: PyTorch's databases of operators, modules and optimizers on both plugins. CI holds the code to the page.
# ARGS=--failing runs only what does not pass yet, ARGS=--resume what was never run.
operators-page: build-tests
	$(PY) -m torch_tpu.testing.operators --platform xla-cpu-pjrt --workers $(JOBS) $(ARGS)
	$(PY) -m torch_tpu.testing.operators --platform lammps-jax-pjrt-cpu --workers $(JOBS) $(ARGS)

# --- form --------------------------------------------------------------------------------------------------------

# mypy reads the types of the torch that the package runs with.
$(VENV)/lint.stamp: requirements/lint.txt $(VENV)/demo.stamp
	$(PIP) install -c requirements/constraints.txt -r requirements/lint.txt
	@touch $@

# The linters, for pre-commit too.
tools: $(VENV)/lint.stamp

PY_SOURCES  := python tests benchmarks examples tools
CXX_SOURCES := $$(git ls-files 'csrc/*.h' 'csrc/*.cpp' 'tests/cpp/*.cpp' 'tests/cpp/*.h')

lint: $(VENV)/lint.stamp
	clang-format --dry-run -Werror $(CXX_SOURCES)
	ruff check $(PY_SOURCES)
	ruff format --check $(PY_SOURCES)
	mypy

format: $(VENV)/lint.stamp
	clang-format -i $(CXX_SOURCES)
	ruff check --fix $(PY_SOURCES)
	ruff format $(PY_SOURCES)

clean:
	rm -rf build dist
