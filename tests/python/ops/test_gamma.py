# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from torch_tpu import compile as tpu_compile
from torch_tpu.testing import assert_same_error, count_compiles

tpu_compile.register()

N = 50_000
DTYPES = [torch.float32, torch.float64]
NAN, INF = math.nan, math.inf


def sample(alpha: float, dtype: torch.dtype) -> torch.Tensor:
    return torch._standard_gamma(torch.full((N,), alpha, dtype=dtype, device="tpu"))


@pytest.mark.parametrize("alpha", [0.3, 0.99, 1.0, 2.5, 30.0, 1e4, 1e7])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gamma_draws_have_their_distribution(alpha, dtype):
    x = sample(alpha, dtype).cpu().double()
    assert stats.kstest(x.numpy(), stats.gamma(alpha).cdf).pvalue > 1e-3
    assert abs(x.mean().item() - alpha) < 5 * math.sqrt(alpha / N)
    assert abs(x.var().item() / alpha - 1) < 0.1


def test_gamma_draws_of_small_alpha_end_at_the_least_normal_number():
    x = sample(0.05, torch.float32).cpu().double()
    least = torch.finfo(torch.float32).tiny
    assert x.min().item() == least
    assert abs((x == least).double().mean().item() - stats.gamma(0.05).cdf(least)) < 0.003
    assert stats.kstest(x[x > least].log().numpy(), lambda y: _above(0.05, least, y)).pvalue > 1e-3


def _above(alpha: float, least: float, log_x):
    low = stats.gamma(alpha).cdf(least)
    return (stats.gamma(alpha).cdf(np.exp(log_x)) - low) / (1 - low)


def test_gamma_draw_ends_where_alpha_is_no_parameter():
    x = torch._standard_gamma(torch.tensor([0.0, NAN, INF, 1e-5, -0.5], device="tpu")).cpu()
    tiny = torch.finfo(torch.float32).tiny
    assert_close(x, torch.tensor([tiny, NAN, INF, tiny, NAN]), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3), (1, 2, 1, 3, 1)])
def test_every_shape_can_be_drawn(shape):
    a = torch.full(shape, 2.0, device="tpu")
    for f in (torch._standard_gamma, torch._sample_dirichlet, lambda a: torch.binomial(a, a / 4)):
        assert f(a).shape == shape
    assert torch._standard_gamma_grad(a, a).shape == shape
    assert torch._dirichlet_grad(a / 4, a, 2 * a).shape == shape


def test_a_seed_and_a_generator_repeat_their_draws():
    a = torch.rand(50, device="tpu") * 3
    for f in (
        lambda g: torch._standard_gamma(a, generator=g),
        lambda g: torch._sample_dirichlet(a, generator=g),
        lambda g: torch.binomial(20 * a, a / 3, generator=g),
    ):
        torch.manual_seed(3)
        first, second = f(None), f(None)
        torch.manual_seed(3)
        assert torch.equal(first, f(None)) and not torch.equal(first, second)
        own = torch.Generator("tpu").manual_seed(3)
        with count_compiles() as compiled:
            assert torch.equal(first, f(own)) and torch.equal(second, f(own))
        assert compiled == []


def test_graph_draws_what_eager_code_draws():
    torch._dynamo.reset()
    a = torch.rand(50, device="tpu") * 3

    def f(a):
        return torch._standard_gamma(a), torch._sample_dirichlet(a), torch.binomial(20 * a, a / 3)

    torch.manual_seed(0)
    expected = f(a)
    torch.manual_seed(0)
    got = torch.compile(f, backend="tpu", fullgraph=True)(a)
    for e, g in zip(expected, got, strict=True):
        assert_close(g, e)


def test_draws_of_a_view_are_those_of_its_copy():
    a = (torch.rand(6, 5, device="tpu") * 3).t()[1:4]
    torch.manual_seed(0)
    x = torch._standard_gamma(a)
    torch.manual_seed(0)
    assert_close(torch._standard_gamma(a.contiguous()), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dirichlet_draws_have_beta_marginals(dtype):
    alpha = torch.tensor([0.3, 1.0, 4.0], dtype=dtype)
    x = torch._sample_dirichlet(alpha.to("tpu").expand(N, 3)).cpu().double()
    assert_close(x.sum(-1), torch.ones(N).double(), rtol=0, atol=1e-6)
    for i, a in enumerate(alpha.tolist()):
        marginal = stats.beta(a, alpha.sum().item() - a)
        assert stats.kstest(x[:, i].numpy(), marginal.cdf).pvalue > 1e-3


def test_dirichlet_of_tiny_alphas_has_one_large_share():
    x = torch._sample_dirichlet(torch.full((N, 2), 1e-5, device="tpu")).cpu()
    assert (x.max(-1).values > 0.999).double().mean().item() > 0.999
    assert abs(x[:, 0].double().mean().item() - 0.5) < 0.02
    assert x.min().item() > 0 and x.max().item() < 1
    assert torch._sample_dirichlet(torch.tensor([0.0, 1.0], device="tpu"))[1].item() > 0.999


@pytest.mark.parametrize(
    "n, p",
    [
        (5, 0.3),
        (50, 0.01),
        (29, 0.34),
        (30, 0.34),
        (100, 0.5),
        (40, 0.9),
        (1000, 0.97),
        (1e6, 1e-3),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_binomial_counts_have_their_distribution(n, p, dtype):
    count = torch.full((N,), n, dtype=dtype, device="tpu")
    x = torch.binomial(count, torch.full_like(count, p)).cpu().double().numpy()
    law = stats.binom(n, p)
    assert x.min() >= 0 and x.max() <= n and (x == np.floor(x)).all()
    low, high = law.ppf(1e-3), law.ppf(1 - 1e-3)
    cuts = np.unique(np.linspace(low, high, 30).round() + 0.5)
    edges = np.concatenate([[-0.5], cuts[cuts < n], [n + 0.5]])
    expected, seen = np.diff(law.cdf(edges)) * N, np.histogram(x, edges)[0]
    often = expected > 5
    chi2 = ((seen - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2(often.sum()).sf(chi2) > 1e-3
    assert abs(x.mean() - n * p) < 5 * math.sqrt(n * p * (1 - p) / N)


def test_binomial_at_the_edges_matches_cpu():
    count = torch.tensor([-10.0, 11, 5, 5, 0, 7])
    prob = torch.tensor([0.5, -1, 2, NAN, NAN, 1])
    expected = torch.binomial(count, prob)
    assert_close(torch.binomial(count.to("tpu"), prob.to("tpu")).cpu(), expected, equal_nan=True)
    # The CPU's loop would not end for these.
    odd = torch.tensor([NAN, NAN, INF], device="tpu")
    x = torch.binomial(odd, torch.tensor([0.5, 1, 0.5], device="tpu"))
    assert x.isnan().all().item()
    assert torch.binomial(torch.full((2, 1), 9.0, device="tpu"), odd.new_ones(3)).shape == (2, 3)


# ---- derivatives


def gamma_quantile_slope(a: float, x: float) -> float:
    """dx/da at a constant place among the quantiles, by central differences of the inverse of the
    distribution function in double: good to about 1e-7.
    """
    h = 1e-5 * a
    if x < a:
        q = stats.gamma(a).cdf(x)
        return (stats.gamma(a + h).ppf(q) - stats.gamma(a - h).ppf(q)) / (2 * h)
    q = stats.gamma(a).sf(x)
    return (stats.gamma(a + h).isf(q) - stats.gamma(a - h).isf(q)) / (2 * h)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.99, 1.0, 1.5, 8.0, 300.0, 9999.0, 10001.0, 1e7])
def test_gamma_gradient_is_the_quantiles_slope(alpha):
    quantiles = [0.01, 0.3, 0.5, 0.9, 1 - 1e-4]
    x = [stats.gamma(alpha).ppf(q) for q in quantiles]
    expected = torch.tensor([gamma_quantile_slope(alpha, v) for v in x], dtype=torch.float64)
    for dtype, rtol in ((torch.float64, 2e-6), (torch.float32, 3e-6)):
        at = torch.tensor(x, dtype=dtype)
        wanted = expected
        if dtype == torch.float32 and alpha < 0.1:  # x itself is beyond the dtype
            at, wanted = at[2:], expected[2:]
        a = torch.full_like(at, alpha)
        got = torch._standard_gamma_grad(a.to("tpu"), at.to("tpu")).cpu()
        assert_close(got.double(), wanted, rtol=rtol, atol=0)
        # CPU's own is good to about 1e-3.
        assert_close(got, torch._standard_gamma_grad(a, at), rtol=3e-3, atol=0)


@pytest.mark.parametrize("a", [0.05, 1.0, 2.5, 200.0, 1e5])
@pytest.mark.parametrize("b", [0.3, 1.0, 20.0, 3e5])
def test_dirichlet_gradient_is_the_quantiles_slope(a, b):
    h = 1e-4 * a
    x, expected = [], []
    for q in (0.05, 0.3, 0.5, 0.9):
        v = stats.beta(a, b).ppf(q)
        if 1e-30 < v < 1 - 1e-6:
            x.append(v)
            slope = (stats.beta(a + h, b).ppf(q) - stats.beta(a - h, b).ppf(q)) / (2 * h)
            expected.append(slope / (1 - v))
    wanted = torch.tensor(expected, dtype=torch.float64)
    at = torch.tensor(x, dtype=torch.float64)
    got = torch._dirichlet_grad(
        at.to("tpu"), torch.full_like(at, a).to("tpu"), torch.full_like(at, a + b).to("tpu")
    )
    # Near 1 the division by 1 - x magnifies the differences' own error.
    assert_close(got.cpu(), wanted, rtol=2e-5, atol=0)


def test_gradients_at_the_edges():
    def grad(a, x):
        a, x = torch.tensor(a, device="tpu"), torch.tensor(x, device="tpu")
        return torch._standard_gamma_grad(a, x).tolist()

    assert grad([1.0, 2.0], [0.0, 0.0]) == [0, 0]
    assert all(map(math.isnan, grad([0.0, -1, NAN, INF, 2, 2], [1.0, 1, 1, 1, INF, NAN])))
    x = torch.tensor([0.0, -0.1, 1.1, NAN, 0.5], device="tpu")
    a = torch.tensor([1.0, 1, 1, 1, 3], device="tpu")
    slope = torch._dirichlet_grad(x, a, torch.full_like(a, 2)).tolist()
    assert slope[0] == 0 and all(map(math.isnan, slope[1:]))


def test_draws_refuse_what_cpu_refuses():
    for dtype in (torch.bfloat16, torch.float16, torch.int64, torch.complex64):

        def ones(d, dtype=dtype):
            return torch.ones(3, dtype=dtype, device=d)

        assert_same_error(lambda d: torch._standard_gamma(ones(d)))
        assert_same_error(lambda d: torch._sample_dirichlet(ones(d)))
        assert_same_error(lambda d: torch._standard_gamma_grad(ones(d), ones(d)))
        assert_same_error(lambda d: torch._dirichlet_grad(ones(d), ones(d), ones(d)))
        assert_same_error(lambda d: torch.binomial(ones(d), ones(d)))

    def of(n, d, dtype=torch.float32):
        return torch.ones(n, dtype=dtype, device=d)

    wide = torch.float64
    assert_same_error(lambda d: torch.binomial(of(3, d), of(3, d, wide)))
    assert_same_error(lambda d: torch.binomial(of(3, d), of(3, d, torch.int64)))
    assert_same_error(lambda d: torch.binomial(of(3, d), of(2, d)))
    assert_same_error(lambda d: torch._standard_gamma_grad(of(3, d), of(2, d)))
    assert_same_error(lambda d: torch._standard_gamma_grad(of(3, d), of(3, d, wide)))
    assert_same_error(lambda d: torch._dirichlet_grad(of(3, d), of(2, d), of(1, d)))
    assert_same_error(lambda d: torch._dirichlet_grad(of(3, d), of(3, d, wide), of(1, d)))
