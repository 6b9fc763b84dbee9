# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="tpu") of functions whose sizes and Python numbers change between calls."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from torch_tpu import compile as tpu_compile
from torch_tpu.testing import count_compiles

tpu_compile.register()


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield


def compiled(f, dynamic=None):
    return torch.compile(f, backend="tpu", fullgraph=True, dynamic=dynamic)


def assert_calls_match_cpu(f, calls, dynamic=None) -> None:
    g = compiled(f, dynamic)
    for args in calls:
        want = f(*args)
        got = g(*(a.to("tpu") if isinstance(a, torch.Tensor) else a for a in args))
        for w, r in zip(*(x if isinstance(x, tuple) else (x,) for x in (want, got)), strict=True):
            if not isinstance(w, torch.Tensor):
                assert r == w
                continue
            assert r.device.type == "tpu" and r.stride() == w.stride()
            torch.testing.assert_close(r.cpu(), w, equal_nan=True)


@pytest.mark.parametrize("dynamic", [None, True])
def test_shapes_that_change_match_cpu(dynamic):
    def f(x):
        y = F.layer_norm(x, x.shape[-1:])
        return (
            y.t(),
            torch.cat([y, x.flip(0)]),
            y.sum(0) * x.shape[0],
            x.reshape(-1),
            x.shape[0] * 2,
        )

    shapes = [(3, 4), (5, 4), (7, 4), (3, 4), (2, 6), (1, 4)]
    assert_calls_match_cpu(f, [(torch.randn(s),) for s in shapes], dynamic)


@pytest.mark.parametrize("dynamic", [None, True])
def test_ints_that_change_match_cpu(dynamic):
    def f(x, n):
        return x * n, x[:n].sum(), x.roll(n, 0), torch.zeros(n, device=x.device), n + 1

    x = torch.arange(12.0).reshape(6, 2)
    assert_calls_match_cpu(f, [(x, n) for n in (1, 2, 3, 0, 5, 2)], dynamic)


@pytest.mark.parametrize("dynamic", [None, True])
def test_floats_that_change_match_cpu(dynamic):
    def f(x, s):
        return x * s, (x + s).clamp(max=2 * s), torch.full_like(x, s)

    x = torch.linspace(-2, 2, 5)
    values = (1.5, 2.5, 3.5, -0.5, 0.0, -0.0, float("inf"), 1e-40)
    assert_calls_match_cpu(f, [(x, s) for s in values], dynamic)


def test_a_float_that_changes_makes_no_program():
    f = compiled(lambda x, s: (x * s).relu())
    x = torch.ones(4, device="tpu")
    for s in (1.5, 2.5):
        f(x, s)
    with count_compiles() as compiles:
        assert f(x, 3.25).tolist() == [3.25] * 4
    assert compiles == []


def test_a_size_met_before_makes_no_program():
    f = compiled(lambda x: (x * 2).sum(0))
    for n in (3, 4, 5):
        f(torch.ones(n, 2, device="tpu"))
    with count_compiles() as compiles:
        for n in (4, 5, 3):
            assert f(torch.ones(n, 2, device="tpu")).tolist() == [2 * n, 2 * n]
    assert compiles == []


@pytest.mark.parametrize("dynamic", [None, True])
def test_training_on_batches_of_many_sizes_matches_cpu(dynamic):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))
    twin = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))
    twin.load_state_dict(model.state_dict())
    twin.to("tpu")

    def loss(m, x, scale):
        y = m(x)
        return (y * scale).square().mean() * y.shape[0]

    step = compiled(loss, dynamic)
    ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.05) for m in (twin, model))
    for n, scale in ((6, 1.0), (9, 0.5), (4, 2), (6, 0.25), (11, 3)):
        x = torch.randn(n, 4, requires_grad=True)
        moved = x.detach().to("tpu").requires_grad_()
        ours.zero_grad()
        theirs.zero_grad()
        want, got = loss(model, x, scale), step(twin, moved, scale)
        want.backward()
        got.backward()
        torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(moved.grad.cpu(), x.grad, rtol=1e-3, atol=1e-5)
        ours.step()
        theirs.step()
    for p, q in zip(model.state_dict().values(), twin.state_dict().values(), strict=True):
        torch.testing.assert_close(q.cpu(), p, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dynamic", [None, True])
def test_writes_to_inputs_of_many_sizes_show_in_them(dynamic):
    def f(cache, x, start):
        cache[start : start + x.shape[0]] = x
        return cache.sum()

    g = compiled(f, dynamic)
    cache, twin = torch.zeros(10, 2), torch.zeros(10, 2, device="tpu")
    for start, n in ((0, 3), (3, 1), (4, 1), (5, 2), (7, 3)):
        x = torch.randn(n, 2)
        torch.testing.assert_close(g(twin, x.to("tpu"), start).cpu(), f(cache, x, start))
        assert torch.equal(twin.cpu(), cache)


def test_outputs_of_many_sizes_alias_each_other_and_inputs():
    g = compiled(lambda x: (x[1:], (y := x + 1), y[1:]), dynamic=True)
    for n in (3, 4, 6):
        x = torch.zeros(n, 2, device="tpu")
        a, y, b = g(x)
        x.fill_(5)
        y.fill_(7)
        assert a.shape == b.shape == (n - 1, 2)
        assert a.eq(5).all().item() and b.eq(7).all().item()


def test_views_of_larger_storages_in_many_places():
    g = compiled(lambda x: x.as_strided((2,), (1,)) + x.sum(), dynamic=True)
    base = torch.arange(20.0)
    for start, n in ((0, 4), (3, 5), (8, 2)):
        want = base[start : start + n]
        got = g(base.to("tpu")[start : start + n])
        torch.testing.assert_close(got.cpu(), want.as_strided((2,), (1,), start) + want.sum())


def test_autocast_around_a_call_is_that_of_the_compile():
    g = compiled(lambda x, w: (x @ w, x.exp()), dynamic=True)
    for n in (3, 4, 5):
        x, w = torch.randn(n, 4, device="tpu"), torch.randn(4, 2, device="tpu")
        with torch.autocast("tpu"):
            product, exponential = g(x, w)
        assert product.dtype == torch.bfloat16 and exponential.dtype == torch.float32
        product, _ = g(x, w)
        assert product.dtype == torch.float32


def test_draws_of_many_sizes_follow_the_seed():
    g = compiled(lambda x: F.dropout(x, 0.5), dynamic=True)
    for n in (100, 200):
        x = torch.ones(n, device="tpu")
        torch.manual_seed(1)
        first = g(x).cpu()
        second = g(x).cpu()
        torch.manual_seed(1)
        assert torch.equal(g(x).cpu(), first) and not torch.equal(first, second)


def test_checkpointed_draws_of_many_sizes_repeat_in_the_backward_graph():
    def f(x):
        return checkpoint(lambda y: F.dropout(y * 2, 0.5), x, use_reentrant=False)

    g = compiled(f, dynamic=True)
    for n in (100, 200):
        x = torch.ones(n, device="tpu", requires_grad=True)
        y = g(x)
        y.sum().backward()
        assert torch.equal(x.grad.cpu(), y.detach().cpu())


def test_inference_mode_and_no_grad():
    g = compiled(lambda x: x.view(-1)[1:] * x.shape[0], dynamic=True)
    for mode in (torch.inference_mode, torch.no_grad):
        for n in (2, 3):
            with mode():
                assert g(torch.ones(n, 2, device="tpu")).tolist() == [n] * (2 * n - 1)


def test_a_size_that_depends_on_values_is_refused_with_advice():
    g = compiled(lambda x: x[x > 0])
    x = torch.tensor([1.0, -1.0], device="tpu")
    with (
        torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True),
        pytest.raises(NotImplementedError, match="nonzero.*Leave it outside the compiled function"),
    ):
        g(x)
