# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from torch_tpu.testing import count_compiles

N = 100_000
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def assert_moments(x: torch.Tensor, mean: float, std: float) -> None:
    """Asserts a sample's mean within five standard errors and its deviation within 3 %."""
    x = x.cpu().double()
    assert abs(x.mean().item() - mean) <= 5 * std / math.sqrt(x.numel()) + 4e-3 * abs(mean)
    assert abs(x.std().item() - std) <= 0.03 * std


def empty(dtype: torch.dtype = torch.float32, n: int = N) -> torch.Tensor:
    return torch.empty(n, dtype=dtype, device="tpu")


@pytest.mark.parametrize("dtype", FLOATS)
def test_fills_have_their_distribution(dtype):
    x = empty(dtype)
    assert_moments(x.normal_(1, 2), 1, 2)
    assert_moments(x.exponential_(2), 0.5, 0.5)
    assert_moments(x.geometric_(0.3), 1 / 0.3, math.sqrt(0.7) / 0.3)
    assert x.min().item() == 1
    assert_moments(x.bernoulli_(0.3), 0.3, math.sqrt(0.21))
    assert_moments(
        x.log_normal_(0, 0.25),
        math.exp(0.03125),
        math.exp(0.03125) * math.sqrt(math.exp(0.0625) - 1),
    )
    assert abs(x.cauchy_(1, 2).float().median().item() - 1) < 0.05


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_keeps_out_its_upper_end(dtype):
    x = empty(dtype).uniform_(2, 5)
    assert x.min().item() >= 2 and x.max().item() < 5
    assert abs(x.double().mean().item() - 3.5) < 0.02


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 1, 5, 1, 1, 2)])
def test_every_shape_can_be_drawn(shape):
    assert torch.randn(shape, device="tpu").shape == shape
    assert torch.rand(shape, device="tpu", dtype=torch.bfloat16).shape == shape
    assert torch.randint(5, shape, device="tpu").shape == shape
    x = torch.randn(shape, device="tpu")
    if x.numel() > 1:
        assert x.unique().numel() == x.numel()


def test_integers_cover_their_range_evenly():
    counts = (torch.randint(-5, 5, (N,), device="tpu") + 5).bincount(minlength=10)
    assert counts.numel() == 10 and counts.min().item() > 9500 and counts.max().item() < 10500
    big = torch.randint(2**40, (N,), device="tpu")
    assert abs(big.double().mean().item() / 2**39 - 1) < 0.02


@pytest.mark.parametrize(
    "dtype, top",
    [(torch.uint8, 255), (torch.int8, 127), (torch.int64, 2**63 - 1), (torch.float16, 2048)],
)
def test_random_without_bounds_fills_what_the_dtype_holds(dtype, top):
    x = empty(dtype).random_()
    assert x.min().item() >= 0 and 0.99 * top <= x.max().item() <= top


def test_multinomial_draws_by_weight_and_never_a_zero():
    p = torch.tensor([0.1, 0.0, 0.4, 0.5], device="tpu")
    for draws in (p.expand(20_000, 4).multinomial(1), p.multinomial(20_000, replacement=True)):
        share = draws.flatten().bincount(minlength=4) / 20_000
        assert_close(share.cpu(), p.cpu(), rtol=0, atol=0.02)
    rows = p.expand(100, 4).multinomial(3).cpu()
    assert all(sorted(r) == [0, 2, 3] for r in rows.tolist())


@pytest.mark.parametrize(
    "weights, n, text",
    [
        ([1.0, -1], 1, "either `inf`, `nan` or element < 0"),
        ([1.0, torch.nan], 1, "either `inf`, `nan` or element < 0"),
        ([0.0, 0], 1, "sum of probabilities <= 0"),
        ([1.0, 0], 2, "not enough non-negative category to sample"),
    ],
)
def test_multinomial_refuses_bad_weights(weights, n, text):
    with pytest.raises(RuntimeError, match=text):
        torch.tensor(weights, device="tpu").multinomial(n).cpu()


def test_wrong_parameters_are_refused():
    x = empty(n=3)
    for call in (
        lambda: x.random_(5, 5),
        lambda: x.bernoulli_(2.0),
        lambda: x.normal_(0, -1),
        lambda: x.exponential_(-1.0),
        lambda: torch.bernoulli(torch.tensor([2.0], device="tpu")),
    ):
        with pytest.raises(RuntimeError):
            call()
            torch.tpu.synchronize()


def test_dropout_scales_what_it_keeps_and_its_gradient_uses_the_mask():
    x = torch.ones(N, device="tpu", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.2)
    assert_moments(y.detach(), 1, 0.5)
    y.sum().backward()
    assert_close(x.grad, y.detach())
    assert_close(torch.nn.functional.dropout(x, 0.5, training=False), x)


def test_two_masks_are_independent():
    a, b = (torch.nn.functional.dropout(torch.ones(20_000, device="tpu")) for _ in range(2))
    assert abs(torch.corrcoef(torch.stack([a, b]).cpu())[0, 1].item()) < 0.03


def test_a_seed_repeats_and_the_next_draw_differs():
    def draw():
        x = empty(n=64)
        return [f().cpu().clone() for f in (x.normal_, x.uniform_, lambda: x.multinomial(8))]

    torch.manual_seed(3)
    first, second = draw(), draw()
    torch.manual_seed(3)
    for a, b, other in zip(first, draw(), second, strict=True):
        assert torch.equal(a, b) and not torch.equal(a, other)


def test_other_parameters_and_seeds_share_one_program():
    x = empty(n=8)
    x.normal_(0, 1), x.bernoulli_(0.5), torch.randint(0, 5, (8,), device="tpu")
    with count_compiles() as compiled:
        torch.manual_seed(9)
        x.normal_(2, 3), x.bernoulli_(0.1), torch.randint(-7, 50, (8,), device="tpu")
    assert compiled == []


def test_randperm_is_a_permutation():
    p = torch.randperm(1000, device="tpu").cpu()
    assert torch.equal(p.sort().values, torch.arange(1000)) and not torch.equal(
        p, torch.arange(1000)
    )


@pytest.mark.parametrize("rate", [0.5, 9.9, 10.0, 1000.0])
def test_poisson_has_its_moments(rate):
    assert_moments(torch.poisson(torch.full((N,), rate, device="tpu")), rate, math.sqrt(rate))


@pytest.mark.parametrize("rate", [math.nan, -1.0])
def test_poisson_refuses_a_rate_that_is_none_and_comes_to_an_end(rate):
    for device in ("cpu", "tpu"):
        with pytest.raises(RuntimeError, match="invalid Poisson rate"):
            torch.poisson(torch.tensor([3.0, rate, 20.0], device=device)).cpu()


def test_poisson_of_rates_beyond_counting():
    drawn = torch.poisson(torch.tensor([0.0, 1e30, math.inf], device="tpu")).tolist()
    assert drawn[0] == 0
    assert abs(drawn[1] / 1e30 - 1) < 1e-6
    assert drawn[2] == math.inf


def test_complex_normal_has_half_the_variance_in_each_part():
    z = torch.randn(N, dtype=torch.complex64, device="tpu").cpu()
    for part in (z.real, z.imag):
        assert_moments(part, 0, math.sqrt(0.5))
