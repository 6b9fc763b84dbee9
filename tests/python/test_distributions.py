# SPDX-License-Identifier: Apache-2.0
"""Every class of torch.distributions: draws, gradients through draws, log_prob, entropy."""

from __future__ import annotations

import pytest
import torch
import torch.distributions as D
from torch.testing import assert_close

from torch_tpu import compile as tpu_compile

tpu_compile.register()

POSITIVE, PROBS = torch.tensor([0.7, 2.5, 9.0]), torch.tensor([0.2, 0.5, 0.3])
REAL, COUNT = torch.tensor([-1.0, 0.3, 2.0]), torch.tensor([4.0, 30.0, 100.0])
COVARIANCE = torch.tensor([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 3.0]])

# Each from parameters; those of the tuple are moved to the device.
CASES = {
    "Bernoulli": (D.Bernoulli, (PROBS,)),
    "Beta": (D.Beta, (POSITIVE, POSITIVE.flip(0))),
    "Binomial": (D.Binomial, (COUNT, PROBS)),
    "Categorical": (D.Categorical, (PROBS,)),
    "Cauchy": (D.Cauchy, (REAL, POSITIVE)),
    "Chi2": (D.Chi2, (POSITIVE,)),
    "ContinuousBernoulli": (D.ContinuousBernoulli, (PROBS,)),
    "Dirichlet": (D.Dirichlet, (POSITIVE,)),
    "Exponential": (D.Exponential, (POSITIVE,)),
    "FisherSnedecor": (D.FisherSnedecor, (POSITIVE + 5, POSITIVE.flip(0) + 5)),
    "Gamma": (D.Gamma, (POSITIVE, POSITIVE.flip(0))),
    "GeneralizedPareto": (D.GeneralizedPareto, (REAL, POSITIVE, PROBS)),
    "Geometric": (D.Geometric, (PROBS,)),
    "Gumbel": (D.Gumbel, (REAL, POSITIVE)),
    "HalfCauchy": (D.HalfCauchy, (POSITIVE,)),
    "HalfNormal": (D.HalfNormal, (POSITIVE,)),
    "Independent": (lambda *a: D.Independent(D.Normal(*a), 1), (REAL, POSITIVE)),
    "InverseGamma": (D.InverseGamma, (POSITIVE + 3, POSITIVE)),
    "Kumaraswamy": (D.Kumaraswamy, (POSITIVE, POSITIVE.flip(0))),
    "LKJCholesky": (lambda c: D.LKJCholesky(3, c), (torch.tensor(0.8),)),
    "Laplace": (D.Laplace, (REAL, POSITIVE)),
    "LogNormal": (D.LogNormal, (REAL, PROBS)),
    "LogisticNormal": (D.LogisticNormal, (REAL, PROBS)),
    "LowRankMultivariateNormal": (
        D.LowRankMultivariateNormal,
        (REAL, COVARIANCE[:, :2], POSITIVE),
    ),
    "MixtureSameFamily": (
        lambda p, m, s: D.MixtureSameFamily(D.Categorical(p), D.Normal(m, s)),
        (PROBS, REAL, POSITIVE),
    ),
    "Multinomial": (lambda p: D.Multinomial(20, p), (PROBS,)),
    "MultivariateNormal": (D.MultivariateNormal, (REAL, COVARIANCE)),
    "NegativeBinomial": (D.NegativeBinomial, (COUNT, PROBS)),
    "Normal": (D.Normal, (REAL, POSITIVE)),
    "OneHotCategorical": (D.OneHotCategorical, (PROBS,)),
    "OneHotCategoricalStraightThrough": (D.OneHotCategoricalStraightThrough, (PROBS,)),
    "Pareto": (D.Pareto, (POSITIVE, POSITIVE + 3)),
    "Poisson": (D.Poisson, (POSITIVE,)),
    "RelaxedBernoulli": (D.RelaxedBernoulli, (torch.tensor(0.7), PROBS)),
    "RelaxedOneHotCategorical": (D.RelaxedOneHotCategorical, (torch.tensor(0.7), PROBS)),
    "StudentT": (D.StudentT, (POSITIVE + 5, REAL, POSITIVE)),
    "TransformedDistribution": (
        lambda *a: D.TransformedDistribution(D.Normal(*a), D.transforms.SigmoidTransform()),
        (REAL, POSITIVE),
    ),
    "Uniform": (D.Uniform, (REAL, REAL + POSITIVE)),
    "VonMises": (D.VonMises, (REAL, POSITIVE)),
    "Weibull": (D.Weibull, (POSITIVE, POSITIVE.flip(0))),
    "Wishart": (D.Wishart, (torch.tensor(4.5), COVARIANCE)),
}
N = 4000
# Their density is not symmetric in a draw's rounding, or has no moments to compare.
NO_MOMENTS = {"Cauchy", "HalfCauchy"}


def made(name: str, device: str) -> tuple[D.Distribution, list[torch.Tensor]]:
    make, parameters = CASES[name]
    # GeneralizedPareto compares its parameter with a tensor of the default dtype.
    dtype = torch.float32 if name == "GeneralizedPareto" else torch.float64
    moved = [p.to(device, dtype, copy=True) for p in parameters]
    for p in moved:
        p.requires_grad_(p is not moved[0] or name not in ("Binomial", "NegativeBinomial"))
    return make(*moved), moved


def test_every_class_is_here():
    classes = {
        c.__name__
        for c in vars(D).values()
        if isinstance(c, type) and issubclass(c, D.Distribution)
    }
    assert classes - {"Distribution", "ExponentialFamily"} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_moments_of_cpus_draws(name):
    (ours, _), (theirs, _) = made(name, "tpu"), made(name, "cpu")
    x, y = ours.sample((N,)).cpu(), theirs.sample((N,))
    assert x.shape == y.shape and x.dtype == y.dtype
    assert theirs.support is None or theirs.support.check(x).all()
    if name in NO_MOMENTS:
        x, y = x.atan(), y.atan()
    x, y = x.double(), y.double()
    error = ((x.var(0) + y.var(0)) / N).sqrt()
    assert ((x.mean(0) - y.mean(0)).abs() <= 5 * error + 1e-9).all()


@pytest.mark.parametrize("name", CASES)
def test_log_prob_and_its_gradient_match_cpu(name):
    (ours, p), (theirs, q) = made(name, "tpu"), made(name, "cpu")
    x = theirs.sample((20,))
    got, expected = ours.log_prob(x.to("tpu")), theirs.log_prob(x)
    tolerance = (
        {"rtol": 1e-4, "atol": 1e-5} if x.dtype == torch.float32 else {"rtol": 1e-6, "atol": 1e-6}
    )
    assert_close(got.cpu(), expected, **tolerance)
    gradients = (
        torch.autograd.grad(v.sum(), [t for t in ts if t.requires_grad], allow_unused=True)
        for v, ts in ((got, p), (expected, q))
    )
    for g, e in zip(*gradients, strict=True):
        assert (g is None) == (e is None)
        if e is not None:
            assert_close(g.cpu(), e, **tolerance)


@pytest.mark.parametrize("name", CASES)
def test_statistics_match_cpu(name):
    (ours, _), (theirs, _) = made(name, "tpu"), made(name, "cpu")
    for statistic in ("mean", "variance", "stddev", "mode"):
        try:
            expected = getattr(theirs, statistic)
        except NotImplementedError:
            continue
        assert_close(
            getattr(ours, statistic).detach().cpu(),
            expected.detach(),
            rtol=1e-6,
            atol=1e-6,
            equal_nan=True,
        )
    try:
        expected = theirs.entropy()
    except NotImplementedError:
        return
    assert_close(ours.entropy().detach().cpu(), expected.detach(), rtol=1e-6, atol=1e-6)


# Wishart.rsample writes into a mask that its own backward needs, and raises on every device.
REPARAMETERIZED = [
    name
    for name in CASES
    if made(name, "cpu")[0].has_rsample and name not in NO_MOMENTS | {"Wishart"}
]


def test_gradient_through_a_wishart_draw_matches_cpu():
    # The draw without PyTorch's corrections; the same random numbers are not to be had on both.
    for device in ("tpu", "cpu"):
        distribution, (df, covariance) = made("Wishart", device)
        x = distribution._bartlett_sampling(torch.Size((N,)))
        grads = torch.autograd.grad(x.mean(0).diagonal().sum(), (df, covariance))
        # The mean is df * covariance.
        assert_close(grads[0].cpu(), COVARIANCE.trace().double(), rtol=0.1, atol=0)
        assert_close(grads[1].diagonal().cpu(), torch.full((3,), 4.5).double(), rtol=0.1, atol=0)


@pytest.mark.parametrize("name", REPARAMETERIZED)
def test_gradient_through_draws_agrees_with_cpus(name):
    """The mean over many draws of d f(draw) / d parameter, f bounded, within its own error."""
    slopes = []
    for device in ("tpu", "cpu"):
        torch.manual_seed(1)
        parts = []
        for _ in range(8):
            distribution, parameters = made(name, device)
            value = distribution.rsample((N // 8,)).tanh().mean(0).sum()
            leaves = [p for p in parameters if p.requires_grad]
            grads = torch.autograd.grad(value, leaves, allow_unused=True)
            parts.append(torch.cat([g.flatten().cpu() for g in grads if g is not None]))
        slopes.append(torch.stack(parts))
    assert slopes[0].isfinite().all()
    error = ((slopes[0].var(0) + slopes[1].var(0)) / 8).sqrt()
    assert ((slopes[0].mean(0) - slopes[1].mean(0)).abs() <= 7 * error + 1e-6).all()


@pytest.mark.parametrize("name", ["Gamma", "Beta", "Dirichlet", "StudentT"])
def test_rsample_in_a_graph_gives_eagers_draw_and_gradient(name):
    torch._dynamo.reset()
    results = []
    for compiled in (False, True):
        make, parameters = CASES[name]
        leaves = [p.to("tpu").requires_grad_() for p in parameters]

        def draw(*leaves, make=make):
            return make(*leaves, validate_args=False).rsample((5,))

        f = torch.compile(draw, backend="tpu", fullgraph=True) if compiled else draw
        torch.manual_seed(4)
        x = f(*leaves)
        results.append((x.detach(), *torch.autograd.grad(x.square().sum(), leaves)))
    for e, g in zip(*results, strict=True):
        assert_close(g, e, rtol=1e-5, atol=1e-6)
