# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from torch_tpu import compile as tpu_compile
from torch_tpu.testing import assert_same_error, count_compiles

tpu_compile.register()

WINDOWS = ["bartlett", "blackman", "hamming", "hann", "kaiser"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 128])
@pytest.mark.parametrize("name", WINDOWS)
def test_window_matches_cpu(name, length, dtype):
    f = getattr(torch, name + "_window")
    for periodic in (True, False):
        expected = f(length, periodic, dtype=dtype)
        got = f(length, periodic, dtype=dtype, device="tpu")
        assert got.device.type == "tpu"
        # A cosine window ends in 0 by cancellation.
        assert_close(got.cpu(), expected, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_kaiser_window_matches_cpu(dtype):
    expected = torch.kaiser_window(128, dtype=dtype)
    assert_close(torch.kaiser_window(128, dtype=dtype, device="tpu").cpu(), expected)


@pytest.mark.parametrize("name", WINDOWS)
def test_window_in_a_graph_matches_cpu(name):
    torch._dynamo.reset()
    f = getattr(torch, name + "_window")

    def both(x):
        return x * f(9, device=x.device) + f(9, False, device=x.device, dtype=torch.float64)

    x = torch.linspace(-1, 1, 9)
    compiled = torch.compile(both, backend="tpu", fullgraph=True)
    assert_close(compiled(x.to("tpu")).cpu(), both(x), rtol=1e-6, atol=1e-7)


def test_weights_of_a_window_match_cpu_and_compile_once():
    for compiled in (False, True):
        torch._dynamo.reset()

        def f(x):
            d = x.device
            k = torch.kaiser_window(9, False, 5.0, device=d)
            return x + k + torch.hamming_window(9, True, 0.5, 0.4, device=d)

        g = torch.compile(f, backend="tpu", fullgraph=True) if compiled else f
        assert_close(g(torch.zeros(9, device="tpu")).cpu(), f(torch.zeros(9)))
    torch.kaiser_window(9, True, 3.0, device="tpu")
    with count_compiles() as programs:
        w = torch.kaiser_window(9, True, 4.0, device="tpu")
    assert programs == []
    assert_close(w.cpu(), torch.kaiser_window(9, True, 4.0))


def test_kaiser_window_refuses_what_cpu_refuses():
    assert_same_error(lambda d: torch.kaiser_window(-3, device=d))
    with pytest.raises(RuntimeError, match="expects floating point dtypes, got: TensorOptions"):
        torch.kaiser_window(3, dtype=torch.int64, device="tpu")
