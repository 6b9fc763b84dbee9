# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="tpu"): values, aliasing, mutation, randomness, programs per graph."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_tpu import _C, compile as tpu_compile
from torch_tpu.compile.backend import tpu_backend
from torch_tpu.testing import child, count_compiles

tpu_compile.register()


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield


def compiled(f, **options):
    return torch.compile(f, backend="tpu", fullgraph=True, dynamic=False, **options)


def new_graphs(f) -> list:
    before = len(tpu_compile.graph_records())
    f()
    return tpu_compile.graph_records()[before:]


def test_values_and_strides_equal_eager():
    x, y = torch.randn(5, 7), torch.randn(7, 3)

    def f(a, b):
        c = torch.tanh(a @ b)
        return c.t(), c.sum(-1, keepdim=True), (c > 0)

    got = compiled(f)(x.to("tpu"), y.to("tpu"))
    for g, w in zip(got, f(x, y), strict=True):
        assert g.stride() == w.stride()
        torch.testing.assert_close(g.cpu(), w)


def test_one_graph_is_one_program_and_equal_shapes_reuse_it():
    f = compiled(lambda a: (a * 2).relu().sum(0))
    records = new_graphs(lambda: f(torch.randn(4, 5, device="tpu")))
    assert len(records) == 1
    with count_compiles() as compiles:
        f(torch.randn(4, 5, device="tpu"))
    assert compiles == []
    assert records[0].compiled.num_programs == 1


def test_graphs_use_only_eagers_lowerings():
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)).to("tpu")
    records = new_graphs(lambda: compiled(model)(torch.randn(3, 6, device="tpu")).sum().backward())
    used = {name for r in records for name in r.lowerings}
    assert used and used <= set(_C.lowerings())


def test_inplace_on_a_transposed_input_shows_in_it():
    def f(a):
        b = a.t()
        b.mul_(3)
        return b

    a = torch.arange(6.0).reshape(2, 3).to("tpu")
    r = compiled(f)(a)
    assert r.stride() == (1, 3)
    assert torch.equal(a.cpu(), torch.arange(6.0).reshape(2, 3) * 3)
    r.add_(1)
    assert torch.equal(r.cpu(), a.t().cpu())


def test_outputs_of_one_storage_alias_each_other():
    def f(a):
        b = a + 1
        return b, b[1:], b.t()

    b, row, t = compiled(f)(torch.zeros(3, 3, device="tpu"))
    b.fill_(7)
    assert row.cpu().eq(7).all() and t.cpu().eq(7).all()


def test_an_output_given_twice_is_one_tensor():
    a = torch.ones(3, device="tpu", requires_grad=True)
    b, c = compiled(lambda x: ((y := x * 2), y.contiguous()))(a)
    b.detach().add_(1)
    assert c.detach().cpu().tolist() == [3, 3, 3]


def test_a_cache_written_in_place_keeps_its_buffer():
    cache = torch.zeros(4, 8, device="tpu")

    def write(c, i, x):
        c.index_copy_(0, i, x)
        return c.sum()

    f = compiled(write)
    records = new_graphs(
        lambda: f(cache, torch.tensor([1], device="tpu"), torch.ones(1, 8, device="tpu"))
    )
    assert records[0].written == [0]
    assert records[0].compiled.alias_bytes() == 4 * 8 * 4
    with count_compiles() as compiles:
        f(cache, torch.tensor([3], device="tpu"), torch.full((1, 8), 2.0, device="tpu"))
    assert compiles == []
    assert cache[:, 0].cpu().tolist() == [0, 1, 0, 2]


def test_training_step_matches_cpu():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 2))
    twin = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 2))
    twin.load_state_dict(model.state_dict())
    twin.to("tpu")
    x, y = torch.randn(16, 6), torch.randn(16, 2)
    step = compiled(lambda m, a, b: F.mse_loss(m(a), b))
    for net, a, b, run in (
        (model, x, y, lambda m, a, b: F.mse_loss(m(a), b)),
        (twin, x.to("tpu"), y.to("tpu"), step),
    ):
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        for _ in range(5):
            optimizer.zero_grad()
            run(net, a, b).backward()
            optimizer.step()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(q.cpu(), p, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fused", [False, True])
def test_compiled_adamw_step_matches_cpu(fused):
    weights = [torch.randn(4, 4), torch.randn(7)]

    def run(device, wrap):
        ps = [nn.Parameter(w.clone().to(device)) for w in weights]
        for p in ps:
            p.grad = torch.full_like(p, 0.5)
        optimizer = torch.optim.AdamW(
            ps, lr=1e-2, fused=fused or None, foreach=None if fused else True
        )
        step = wrap(optimizer.step)
        for _ in range(3):
            step()
        return [p.detach().cpu() for p in ps]

    for g, w in zip(
        run("tpu", lambda s: torch.compile(s, backend="tpu", dynamic=False)),
        run("cpu", lambda s: s),
        strict=True,
    ):
        torch.testing.assert_close(g, w, rtol=1e-5, atol=1e-6)


def test_batch_norm_statistics_are_updated():
    norm, twin = nn.BatchNorm1d(4), nn.BatchNorm1d(4).to("tpu")
    x = torch.randn(10, 4)
    f = compiled(twin)
    for _ in range(3):
        want, got = norm(x), f(x.to("tpu"))
    torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(twin.running_mean.cpu(), norm.running_mean)
    torch.testing.assert_close(twin.running_var.cpu(), norm.running_var)
    assert twin.num_batches_tracked.item() == 3


def test_dropout_is_reproducible_by_seed_and_fresh_each_call():
    f = compiled(lambda a: (F.dropout(a, 0.5), F.dropout(a, 0.5)))
    x = torch.ones(2000, device="tpu")
    torch.manual_seed(3)
    first, other = (t.cpu() for t in f(x))
    second = f(x)[0].cpu()
    torch.manual_seed(3)
    again = f(x)[0].cpu()
    assert torch.equal(first, again)
    assert not torch.equal(first, second) and not torch.equal(first, other)
    assert abs(first.count_nonzero().item() / 2000 - 0.5) < 0.05


def test_missing_operator_is_named():
    @torch.library.custom_op("torch_tpu_test::nothing", mutates_args=())
    def nothing(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    nothing.register_fake(torch.empty_like)
    with pytest.raises(Exception, match="torch_tpu_test::nothing"):
        compiled(lambda a: nothing(a) + 1)(torch.ones(3, device="tpu"))


def test_cpu_functions_still_go_to_inductor_or_eager():
    f = torch.compile(lambda a: a * 2, backend="eager")
    assert torch.equal(f(torch.ones(3)), torch.full((3,), 2.0))


def test_second_process_compiles_nothing(tmp_path):
    program = """
        import torch, torch_tpu
        from torch_tpu import compile as c
        c.register()
        f = torch.compile(lambda a: (a @ a).softmax(-1), backend="tpu", dynamic=False)
        f(torch.ones(5, 5, device="tpu")).sum().item()
        print(torch.tpu.compile_stats()["compiles"])
    """
    import os
    import textwrap

    env = {**os.environ, "TORCH_TPU_CACHE_DIR": str(tmp_path)}
    counts = [
        int(
            subprocess.run(
                [sys.executable, "-c", textwrap.dedent(program)],
                env=env,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(2)
    ]
    assert counts[0] > 0 and counts[1] == 0


def test_the_default_backend_refuses_tpu_and_says_what_to_write():
    f = torch.compile(lambda a: (a @ a).relu())
    with pytest.raises(Exception, match=r'Inductor, does not .* for tpu: use .*backend="tpu"'):
        f(torch.ones(3, 3, device="tpu", requires_grad=True))


def test_the_refusal_comes_whether_inductor_was_loaded_before_us_or_after():
    program = """
        import torch
        {first}
        import torch_tpu
        {then}
        try:
            torch.compile(lambda a: a * 2)(torch.ones(3, device="tpu"))
        except Exception as e:
            print('backend="tpu"' in str(e))
    """
    inductor = "import torch._inductor.codegen.common"
    for first, then in ((inductor, ""), ("", inductor), ("", "")):
        done = child.run(program.format(first=first, then=then), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        assert done.stdout == "True\n", done.stderr


def test_importing_the_package_does_not_load_inductor():
    program = 'import sys, torch, torch_tpu; print("torch._inductor" in sys.modules)'
    assert child.run(program).stdout == "False\n"


def test_a_lowering_that_fails_in_a_graph_is_an_exception():
    def f(x):  # neither PyTorch nor the lowering expects this rank
        return torch.ops.aten._pdist_forward(x, 2.0)

    with pytest.raises(Exception, match="lowering of graph.*_pdist_forward"):
        torch.compile(f, backend="tpu", fullgraph=True)(torch.ones(3, device="tpu"))


@pytest.mark.parametrize(
    ("f", "bare"),
    [
        (lambda x: x.tanh() + 1, True),
        (lambda x: (x + 1, x * 2), True),
        (lambda x: x[0], False),
        (lambda x: x.add_(1), False),
        (lambda x: (y := x + 1, y[0]), True),  # the program itself hands back views of results
        (lambda x: torch.nn.functional.dropout(x, 0.5), True),
    ],
)
def test_aotautograd_wraps_only_what_it_has_something_to_do_for(f, bare):
    calls = []

    def backend(gm, example_inputs):
        calls.append(tpu_backend(gm, example_inputs))
        return calls[-1]

    x = torch.randn(2, 3, device="tpu")
    torch.tpu.manual_seed(0)
    expected = f(x.clone())
    torch.tpu.manual_seed(0)
    out = torch.compile(f, backend=backend, fullgraph=True, dynamic=False)(x.clone())
    torch.testing.assert_close(out, expected)
    assert (calls[0].__name__ == "call_bare") == bare
    grad_x = x.clone().requires_grad_()
    if bare:
        out = torch.compile(f, backend=backend, fullgraph=True, dynamic=False)(grad_x)
        assert all(o.requires_grad for o in torch.utils._pytree.tree_leaves(out))
        assert calls[-1].__name__ != "call_bare"


def test_a_subclass_that_aotautograd_takes_apart_is_put_together_again():
    from torch.testing._internal.two_tensor import TwoTensor

    def two():
        return TwoTensor(torch.ones(3, device="tpu"), torch.zeros(3, device="tpu"))

    y = torch.arange(3.0, device="tpu")
    one = compiled(lambda t: t * 2 + 1)(two())
    assert type(one) is TwoTensor
    assert one.a.tolist() == [3, 3, 3]
    assert one.b.tolist() == [1, 1, 1]
    mixed, plain = compiled(lambda t, y: (t + y, y * 2))(two(), y)
    assert type(mixed) is TwoTensor
    assert mixed.a.tolist() == [1, 2, 3]
    assert mixed.b.tolist() == [0, 1, 2]
    assert type(plain) is torch.Tensor
    assert plain.tolist() == [0, 2, 4]


def test_compiled_autograd_hands_over_lists():
    model, x = nn.Linear(4, 3).to("tpu"), torch.randn(2, 4, device="tpu")
    expected = torch.autograd.grad(model(x).sum(), model.weight)[0]
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(lambda x: model(x).sum().backward(), backend="tpu")(x)
    torch.testing.assert_close(model.weight.grad, expected)
