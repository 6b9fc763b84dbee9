# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from torch_tpu.testing import count_compiles

SHAPES = [(4,), (2, 3), ()]


def lists(dtype: torch.dtype = torch.float32, positive: bool = False) -> list[torch.Tensor]:
    xs = [torch.randn(s).to(dtype) for s in SHAPES]
    return [x.abs() for x in xs] if positive else xs


def moved(args):
    def move(x):
        return x.to("tpu") if isinstance(x, torch.Tensor) else x

    return [[move(x) for x in a] if isinstance(a, list) else move(a) for a in args]


def assert_lists_match_cpu(f, *args) -> None:
    for e, a in zip(f(*args), f(*moved(args)), strict=True):
        assert_close(a.cpu(), e, equal_nan=True)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "pow"]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_foreach_with_lists_and_numbers_matches_cpu(name, dtype):
    f = getattr(torch, "_foreach_" + name)
    xs, ys = lists(dtype, positive=True), [x + 1 for x in lists(dtype, positive=True)]
    assert_lists_match_cpu(f, xs, ys)
    assert_lists_match_cpu(lambda x: f(x, 2), xs)
    assert_lists_match_cpu(lambda x: f(x, [1, 2, 3]), xs)
    if dtype != torch.int64:
        assert_lists_match_cpu(lambda x: f(x, 1.5), xs)


def test_foreach_of_three_lists_and_norms_match_cpu():
    args = lists(), lists(), lists(positive=True)
    for f in (torch._foreach_addcmul, torch._foreach_addcdiv):
        assert_lists_match_cpu(lambda a, b, c, f=f: f(a, b, c, 0.3), *args)
        assert_lists_match_cpu(lambda a, b, c, f=f: f(a, b, c, [0.1, 0.2, 3.0]), *args)
    assert_lists_match_cpu(lambda a, b: torch._foreach_lerp(a, b, 0.3), *args[:2])
    for order in (1, 2, torch.inf):
        assert_lists_match_cpu(lambda a, p=order: torch._foreach_norm(a, p), args[0])


def test_foreach_in_place_writes_every_tensor():
    xs = lists()
    ys = moved([xs])[0]
    torch._foreach_mul_(ys, 2.0)
    torch._foreach_add_(ys, [1.0, 2.0, 3.0])
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        assert_close(y.cpu(), x * 2 + i + 1)


def test_another_number_shares_the_program():
    xs = moved([lists()])[0]
    torch._foreach_mul(xs, 2.0)
    with count_compiles() as compiled:
        torch._foreach_mul(xs, 3.0)
    assert compiled == []


OPTIMIZERS = {
    "sgd": lambda p, **k: torch.optim.SGD(
        p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True, **k
    ),
    "adam": lambda p, **k: torch.optim.Adam(p, 0.01, weight_decay=0.1, **k),
    "amsgrad": lambda p, **k: torch.optim.Adam(p, 0.01, amsgrad=True, maximize=True, **k),
    "adamw": lambda p, **k: torch.optim.AdamW(p, 0.01, weight_decay=0.1, **k),
    "adagrad": lambda p, **k: torch.optim.Adagrad(p, 0.1, lr_decay=0.1, **k),
}


def trained(make, device: str, steps: int = 4, **kind) -> list[torch.Tensor]:
    torch.manual_seed(0)
    params = [torch.randn(s).to(device).requires_grad_() for s in SHAPES]
    grads = [[torch.randn(s) for s in SHAPES] for _ in range(steps)]
    optimizer = make(params, **kind)
    for step in grads:
        for p, g in zip(params, step, strict=True):
            p.grad = g.to(device)
        optimizer.step()
    return [p.detach().cpu() for p in params]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("kind", [{"foreach": True}, {"fused": True}], ids=["foreach", "fused"])
def test_optimizers_match_the_loop_on_cpu(name, kind):
    if name == "adagrad" and "fused" in kind:
        pytest.skip("torch 2.13 allows fused Adagrad on cpu and cuda only")
    expected = trained(OPTIMIZERS[name], "cpu", foreach=False)
    for e, a in zip(expected, trained(OPTIMIZERS[name], "tpu", **kind), strict=True):
        assert_close(a, e)


def test_fused_adamw_compiles_once_whatever_the_learning_rate():
    p = torch.randn(3, device="tpu", requires_grad=True)
    optimizer = torch.optim.AdamW([p], 0.1, fused=True)
    for _ in range(2):
        p.grad = torch.ones_like(p)
        optimizer.step()
    optimizer.param_groups[0].update(lr=0.01, weight_decay=0.3, betas=(0.8, 0.9))
    with count_compiles() as compiled:
        optimizer.step()
    assert compiled == []


@pytest.mark.parametrize("overflow", [False, True])
def test_grad_scaler_skips_a_step_that_overflowed(overflow):
    p = torch.ones(3, device="tpu", requires_grad=True)
    optimizer = torch.optim.SGD([p], 0.5)
    scaler = torch.amp.GradScaler("tpu", init_scale=8.0, growth_interval=1)
    scaler.scale((p * (torch.inf if overflow else 1.0)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert_close(p.detach().cpu(), torch.full((3,), 1.0 if overflow else 0.5))
    assert scaler.get_scale() == (4.0 if overflow else 16.0)
