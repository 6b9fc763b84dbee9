# SPDX-License-Identifier: Apache-2.0
"""Random-number faults of other devices: seeds, states, independence, distributions.

Each test is named by the row of the collection that it stands for; test_rows.py lists the rows.
"""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_tpu.compile

torch_tpu.compile.register()

DRAWS = {
    "randn": lambda: torch.randn(64, device="tpu"),
    "rand": lambda: torch.rand(64, device="tpu"),
    "randint": lambda: torch.randint(1000, (64,), device="tpu"),
    "randperm": lambda: torch.randperm(64, device="tpu"),
    "dropout": lambda: F.dropout(torch.ones(64, device="tpu"), 0.5),
    "bernoulli_": lambda: torch.empty(64, device="tpu").bernoulli_(0.5),
    "normal_": lambda: torch.empty(64, device="tpu").normal_(),
    "multinomial": lambda: torch.ones(64, device="tpu").multinomial(64, replacement=True),
}


@pytest.mark.parametrize("name", DRAWS)
def test_rng_01_seed_reaches_the_device(name):
    draw = DRAWS[name]
    torch.manual_seed(3)
    first, second = draw(), draw()
    torch.manual_seed(3)
    assert torch.equal(draw(), first)
    assert not torch.equal(first, second)


def test_rng_02_compiled_draws_are_not_frozen():
    draw = torch.compile(lambda x: torch.rand_like(x), backend="tpu", fullgraph=True)
    drop = torch.compile(lambda x: F.dropout(x, 0.5), backend="tpu", fullgraph=True)
    x = torch.ones(1000, device="tpu")
    for f in (draw, drop):
        torch.manual_seed(5)
        runs = [f(x) for _ in range(3)]
        assert not torch.equal(runs[0], runs[1]) and not torch.equal(runs[1], runs[2])
        torch.manual_seed(5)
        assert torch.equal(f(x), runs[0]) and torch.equal(f(x), runs[1])


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    return torch.corrcoef(torch.stack([a, b]).cpu())[0, 1].abs().item()


@pytest.mark.parametrize("compiled", [False, True])
def test_rng_04_draws_of_one_graph_are_independent(compiled):
    def f(x):
        return F.dropout(x, 0.5), F.dropout(x, 0.5)

    f = torch.compile(f, backend="tpu", fullgraph=True) if compiled else f
    a, b = f(torch.ones(20000, device="tpu"))
    assert correlation(a, b) < 0.03
    c, _ = f(torch.ones(20000, device="tpu"))
    assert correlation(a, c) < 0.03 and correlation(b, c) < 0.03


@pytest.mark.parametrize("shape", [(4, 1, 1, 1, 1), (4, 1, 1, 1, 1, 1), (2, 3, 4, 5, 6, 7)])
@pytest.mark.parametrize("f", [torch.randn_like, torch.rand_like])
def test_rng_05_high_rank_draws_are_all_distinct(f, shape):
    x = f(torch.empty(shape, device="tpu")).cpu()
    assert x.unique().numel() >= x.numel() * 0.999
    if f is torch.randn_like and x.numel() > 1000:
        assert 0.9 < x.std().item() < 1.1


def test_rng_07_fork_rng_restores_the_device_state():
    state = torch.tpu.get_rng_state()
    draws = []
    for _ in range(10):
        with torch.random.fork_rng(device_type="tpu"):
            draws.append(torch.randn(1, device="tpu").item())
    assert len(set(draws)) == 1
    assert torch.equal(torch.tpu.get_rng_state(), state)
    torch.randn(1, device="tpu")
    assert not torch.equal(torch.tpu.get_rng_state(), state)


@pytest.mark.parametrize("reentrant", [False, True])
def test_rng_08_checkpoint_recomputes_the_same_mask(reentrant):
    x = torch.ones(1000, device="tpu", requires_grad=True)
    y = checkpoint(lambda x: F.dropout(x, 0.5), x, use_reentrant=reentrant)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


kaiming = partial(nn.init.kaiming_uniform_, nonlinearity="linear")


@pytest.mark.parametrize("reentrant", [False, True])
def test_rng_08_compiled_checkpoint_recomputes_the_same_mask(reentrant):
    torch._dynamo.reset()
    f = torch.compile(
        lambda x: checkpoint(lambda x: F.dropout(x, 0.5), x, use_reentrant=reentrant),
        backend="tpu",
        fullgraph=True,
    )
    for _ in range(2):
        x = torch.ones(1000, device="tpu", requires_grad=True)
        y = f(x)
        y.sum().backward()
        assert torch.equal(x.grad, y.detach())
        assert 0.4 < (y == 0).float().mean().item() < 0.6


def test_rng_08_compiled_checkpoint_of_several_draws_is_as_in_eager():
    torch._dynamo.reset()
    w = torch.randn(1000, device="tpu")

    def block(x):
        return (F.dropout(x, 0.5) * w).sin() * F.dropout(x, 0.3) + torch.rand_like(x)

    def f(x):
        return checkpoint(block, x, use_reentrant=False)

    seen = []
    for run in (f, torch.compile(f, backend="tpu", fullgraph=True)):
        torch.manual_seed(3)
        x = torch.ones(1000, device="tpu", requires_grad=True)
        y = run(x)
        y.sum().backward()
        seen.append((y.detach().cpu(), x.grad.cpu()))
    torch.testing.assert_close(seen[1], seen[0])


N = 100_000
DISTRIBUTIONS = {
    "normal_": (lambda x: x.normal_(1, 2), 1, 2, (-20, 20)),
    "uniform_": (lambda x: x.uniform_(-1, 3), 1, 4 / 12**0.5, (-1, 3)),
    "exponential_": (lambda x: x.exponential_(0.5), 2, 2, (0, 60)),
    "log_normal_": (lambda x: x.log_normal_(0, 0.25), 1.0317, 0.2620, (0, 10)),
    "geometric_": (lambda x: x.geometric_(0.5), 2, 2**0.5, (1, 40)),
    "random_": (lambda x: x.random_(0, 10), 4.5, 8.25**0.5, (0, 9)),
    "bernoulli_": (lambda x: x.bernoulli_(0.3), 0.3, 0.21**0.5, (0, 1)),
    "poisson": (lambda x: torch.poisson(torch.full_like(x, 4)), 4, 2, (0, 30)),
    "kaiming": (lambda x: kaiming(x.view(100, -1)).flatten(), 0, (1 / 1000) ** 0.5, (-1, 1)),
    "trunc_normal_": (lambda x: nn.init.trunc_normal_(x), 0, 0.8796, (-2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_rng_10_distributions_have_their_moments(name):
    draw, mean, std, (low, high) = DISTRIBUTIONS[name]
    x = draw(torch.empty(N, device="tpu")).cpu()
    assert abs(x.mean().item() - mean) <= 0.05 * max(std, abs(mean))
    assert abs(x.std().item() - std) <= 0.05 * std
    assert low <= x.min().item() and x.max().item() <= high


def test_rng_10_cauchy_has_its_quartiles():
    x = torch.empty(N, device="tpu").cauchy_().cpu()
    for q, expected in ((0.25, -1), (0.5, 0), (0.75, 1)):
        assert abs(x.quantile(q).item() - expected) < 0.05


def test_rng_10_multinomial_and_randperm():
    p = torch.tensor([0.1, 0.2, 0.0, 0.7], device="tpu")
    counts = p.multinomial(N, replacement=True).cpu().bincount(minlength=4) / N
    assert (counts - p.cpu()).abs().max() < 0.01 and counts[2] == 0
    assert torch.equal(torch.randperm(1000, device="tpu").sort().values.cpu(), torch.arange(1000))


def test_rng_11_rank_0_and_integer_draws():
    assert torch.randn((), device="tpu").dim() == 0
    assert torch.rand((), device="tpu").dim() == 0
    assert torch.randint(5, (), device="tpu").dim() == 0
    x = torch.zeros(5, dtype=torch.int64, device="tpu").bernoulli(0.5)
    assert x.dtype == torch.int64 and set(x.tolist()) <= {0, 1}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_rng_13_same_seed_and_dtype_repeat_and_keep_the_moments(dtype):
    torch.manual_seed(9)
    a = torch.randn(N, device="tpu", dtype=dtype)
    torch.manual_seed(9)
    assert torch.equal(torch.randn(N, device="tpu", dtype=dtype), a)
    assert abs(a.double().std().item() - 1) < 0.02
