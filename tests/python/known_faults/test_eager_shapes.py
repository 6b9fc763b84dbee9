# SPDX-License-Identifier: Apache-2.0
"""Faults of eager operators on other devices: empty and rank-0 tensors, scalars, NaN, order,
indices.

Each test is named by the row of the collection that it stands for; test_rows.py lists the rows.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from torch_tpu import compile as tpu_compile
from torch_tpu.testing.against_cpu import assert_matches_cpu

tpu_compile.register()
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    "shapes", [[(0,), (1,)], [(0, 3), (2, 3)], [(2, 0), (2, 0)], [(0,), (2, 3)]]
)
def test_eag_01_cat_with_empty_tensors(shapes):
    assert_matches_cpu(lambda *xs: torch.cat(xs), *[torch.randn(s) for s in shapes])


def test_eag_01_stack_of_empty_tensors():
    assert_matches_cpu(lambda *xs: torch.stack(xs, -1), torch.empty(2, 0), torch.empty(2, 0))


@pytest.mark.parametrize("size", [(1, 0), (0, 2), (0, 0)])
def test_eag_02_grid_sample_with_an_empty_grid(size):
    x, grid = torch.randn(1, 8, 6, 8), torch.empty(1, *size, 2)
    assert_matches_cpu(
        lambda x, g: torch.nn.functional.grid_sample(x, g, align_corners=False), x, grid
    )


@pytest.mark.parametrize(
    "f, shapes",
    [
        (torch.baddbmm, [(2, 0, 1), (2, 0, 3), (2, 3, 1)]),
        (lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5), [(2, 3, 4), (2, 3, 0), (2, 0, 4)]),
        (lambda c, a, b: torch.addmm(c, a, b, beta=0.5), [(3, 4), (3, 0), (0, 4)]),
        (lambda c, a, b: torch.addmv(c, a, b, beta=0.5), [(3,), (3, 0), (0,)]),
        (torch.dot, [(0,), (0,)]),
        (torch.matmul, [(0, 9), (9,)]),
        (torch.matmul, [(4, 0), (0, 5)]),
        (torch.matmul, [(0, 4), (4, 5)]),
        (torch.bmm, [(0, 4, 3), (0, 3, 5)]),
        (torch.bmm, [(2, 4, 0), (2, 0, 5)]),
        (torch.nn.functional.linear, [(0, 4), (5, 4), (5,)]),
    ],
)
def test_eag_04_products_with_an_empty_dim(f, shapes):
    assert_matches_cpu(f, *[torch.ones(s, requires_grad=True) for s in shapes])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_eag_05_nll_loss_of_nothing(reduction):
    x, target = torch.randn(2, 3, 0, 7), torch.empty(2, 0, 7, dtype=torch.int64)
    assert_matches_cpu(
        lambda x, t: torch.nn.functional.nll_loss(x, t, reduction=reduction), x, target
    )


FACTORIES = {
    "zeros": torch.zeros,
    "ones": torch.ones,
    "empty": torch.empty,
    "rand": torch.rand,
    "randn": torch.randn,
    "full": lambda size, **kw: torch.full(size, 2.0, **kw),
    "randint": lambda size, **kw: torch.randint(5, size, **kw),
    "normal_": lambda size, **kw: torch.empty(size, **kw).normal_(),
    "bernoulli_": lambda size, **kw: torch.empty(size, **kw).bernoulli_(0.5),
}


@pytest.mark.parametrize("shape", [(0,), (1, 0, 3), (0, 0)])
@pytest.mark.parametrize("factory", FACTORIES)
def test_eag_07_factories_of_nothing(factory, shape):
    x = FACTORIES[factory](shape, device="tpu")
    assert x.shape == shape and x.clone().shape == shape and x.cpu().shape == shape
    assert x.sum().item() == 0
    assert x.to(torch.int32).dtype == torch.int32
    assert repr(x).startswith("tensor([]")


@pytest.mark.parametrize(
    "f",
    [
        lambda d: torch.arange(0, 0, device=d),
        lambda d: torch.linspace(0, 1, 0, device=d),
        lambda d: torch.randperm(0, device=d),
        lambda d: torch.eye(0, device=d),
    ],
)
def test_eag_07_ranges_of_nothing(f):
    assert f("tpu").shape == f("cpu").shape and f("tpu").cpu().dtype == f("cpu").dtype


def test_eag_08_rank_0_stays_rank_0():
    scalars = [
        torch.ones((), device="tpu"),
        torch.tensor(3.0, device="tpu"),
        torch.full((), 2, device="tpu"),
        torch.arange(4.0, device="tpu").sum(),
        torch.arange(4.0, device="tpu")[2],
        torch.tensor(3.0).to("tpu"),
    ]
    for x in scalars:
        for y in (x, x.cpu(), x + 1, -x, x.clone(), x.sum(), x.to(torch.float64)):
            assert y.dim() == 0
    assert sum(scalars).item() == 1 + 3 + 2 + 6 + 2 + 3
    assert torch.stack([s.float() for s in scalars]).tolist() == [1, 3, 2, 6, 2, 3]
    assert (scalars[0] + torch.ones(3, device="tpu")).shape == (3,)


@pytest.mark.parametrize("op", ["mul", "div", "add", "sub", "pow", "mul_", "div_", "add_", "sub_"])
def test_eag_10_cpu_scalar_that_is_a_view_is_read_at_its_offset(op):
    coefficients = torch.tensor([9.0, 2.0, 7.0])
    for c in coefficients:
        x = torch.full((2, 2), 4.0)
        assert_close(getattr(x.to("tpu"), op)(c).cpu(), getattr(x, op)(c))


@pytest.mark.parametrize(
    "op", ["mul", "add", "div", "fmin", "fmax", "maximum", "pow", "eq", "remainder"]
)
def test_eag_11_cpu_scalar_with_a_device_tensor(op):
    x, s = torch.full((4, 4), 3.0), torch.tensor(2.0)
    f = getattr(torch, op)
    result = f(x.to("tpu"), s)
    assert result.device.type == "tpu"
    assert_close(result.cpu(), f(x, s))
    assert_close(f(s, x.to("tpu")).cpu(), f(s, x))
    with pytest.raises(RuntimeError, match="(?i)device"):
        f(x.to("tpu"), torch.ones(4))


def test_eag_11_where_with_a_cpu_scalar():
    x = torch.arange(6.0)
    got = torch.where((x > 2).to("tpu"), x.to("tpu"), torch.tensor(-1.0))
    assert got.tolist() == [-1, -1, -1, 3, 4, 5]


def test_eag_13_extrema_propagate_nan():
    x, y = torch.tensor([1, NAN, 3.0]), torch.tensor([2.0, 1.0, NAN])
    for f in (torch.max, torch.min, torch.amax, torch.amin, torch.argmax, torch.argmin):
        assert_matches_cpu(f, x)
    for f in (torch.maximum, torch.minimum, torch.fmax, torch.fmin):
        assert_matches_cpu(f, x, y)
    assert_matches_cpu(lambda x: torch.aminmax(x), x)
    assert_matches_cpu(lambda x: x.cummax(0), x)
    assert_matches_cpu(lambda x: x.clamp(0, 2), x)


@pytest.mark.parametrize("n", [3, 5, 7, 10, 17, 100])
def test_eag_14_argmax_finds_the_first_nan(n):
    for at in {0, 1, n - 1}:
        x = torch.randn(4, n)
        x[:, at] = NAN
        for f in (torch.argmax, torch.argmin):
            assert f(x[0].to("tpu")).item() == at
            assert f(x.to("tpu"), 1).tolist() == [at] * 4
            assert f(x.t().to("tpu"), 0).tolist() == [at] * 4
    assert torch.full((n,), NAN, device="tpu").argmax().item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("mode", ["floor", "trunc", None])
def test_eag_16_division_of_infinities(mode, dtype):
    a = torch.tensor([NAN, INF, -INF, INF, 1, -1, 1, -1, 7, -7, 0.0, -0.0], dtype=dtype)
    b = torch.tensor([1, 1, 1, 0, INF, INF, -INF, -INF, 2, 2, 0, 3.0], dtype=dtype)
    assert_matches_cpu(lambda a, b: torch.div(a, b, rounding_mode=mode), a, b)
    if mode:
        assert_matches_cpu(torch.remainder, a, b)
        assert_matches_cpu(torch.fmod, a, b)


SCALARS = {
    "clamp_min": (lambda x, s: x.clamp(min=s), [0.0, 1e-7, 2.0]),
    "clamp_max": (lambda x, s: x.clamp(max=s), [0.0, INF, -1.0]),
    "clamp_min_": (lambda x, s: x.clone().clamp_min_(s), [0.0, 0.5]),
    "add alpha": (lambda x, s: torch.add(x, x, alpha=s), [1, 2, -0.5]),
    "leaky_relu": (lambda x, s: torch.nn.functional.leaky_relu(x, s), [0.1, 0.5]),
    "softplus": (lambda x, s: torch.nn.functional.softplus(x, s), [1, 3.0]),
    "threshold": (lambda x, s: torch.nn.functional.threshold(x, s, -s), [0.1, 0.7]),
    "pad": (lambda x, s: torch.nn.functional.pad(x, (1, 2), value=s), [0, 2.5]),
    "pad width": (lambda x, s: torch.nn.functional.pad(x, (s, 0)), [1, 2]),
    "full": (lambda x, s: torch.full_like(x, s), [1.0, 2.0]),
    "masked_fill": (lambda x, s: x.masked_fill(x > 0, s), [3.0, -INF]),
    "roll": (lambda x, s: x.roll(s), [1, 3]),
    "select": (lambda x, s: x[s] * 2, [0, 3]),
    "narrow": (lambda x, s: x.narrow(0, s, 2) * 2, [0, 2]),
    "pow": (lambda x, s: (x.abs() + 1) ** s, [2, 3, 0.5, -1.0]),
    "cumsum dim": (lambda x, s: x.view(2, 3).cumsum(s), [0, 1]),
    "tril": (lambda x, s: x.view(2, 3).tril(s), [0, 1, -1]),
    "norm": (lambda x, s: x.norm(s), [1, 2, 3]),
    "topk": (lambda x, s: x.topk(s).values, [1, 4]),
    "layer_norm eps": (lambda x, s: torch.nn.functional.layer_norm(x, (6,), eps=s), [1e-5, 0.5]),
    "hardtanh": (lambda x, s: torch.nn.functional.hardtanh(x, -s, s), [0.2, 1.0]),
    "elu": (lambda x, s: torch.nn.functional.elu(x, s), [1.0, 2.0]),
    "lerp": (lambda x, s: torch.lerp(x, x * 2, s), [0.1, 0.9]),
    "addcmul": (lambda x, s: torch.addcmul(x, x, x, value=s), [1, 0.5]),
    "arange": (lambda x, s: torch.arange(s, s + 4, device=x.device) + x[:4], [0, 7]),
    "std": (lambda x, s: x.std(correction=s), [0, 1, 2]),
    "quantile": (lambda x, s: x.quantile(s), [0.1, 0.5]),
    "logit eps": (lambda x, s: x.logit(s), [0.1, 0.3]),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALARS)
def test_eag_17_second_call_with_another_scalar_does_not_reuse_the_first(name):
    f, values = SCALARS[name]
    x = torch.linspace(-1.3, 2.1, 6)
    for s in [*values, values[0]]:
        assert_close(f(x.to("tpu"), s).cpu(), f(x, s), equal_nan=True)


def test_eag_17_dropout_follows_p():
    x = torch.ones(2000, device="tpu")
    for p in (0.2, 0.8):
        y = torch.nn.functional.dropout(x, p)
        assert abs((y == 0).float().mean().item() - p) < 0.06
        assert_close(y.max().item(), 1 / (1 - p))


@pytest.mark.parametrize("shape", [(3, 4_194_305), (3, 70_001), (2, 5, 1001), (3, 1)])
def test_eag_19_argsort_along_a_short_dim(shape):
    x = torch.rand(shape)
    dim = len(shape) - 2
    index = x.to("tpu").argsort(dim=dim)
    assert torch.equal(x.gather(dim, index.cpu()), x.sort(dim).values)


@pytest.mark.parametrize("k", [1, 15, 16, 17, 100, 1200])
def test_eag_20_topk_of_more_than_sixteen(k):
    x = torch.rand(1, 3, 1200)
    values, indices = x.to("tpu").topk(k)
    assert_close(values.cpu(), x.topk(k).values)
    assert_close(x.gather(-1, indices.cpu()), values.cpu())


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sort(0),
        lambda x: x.sort(1, descending=True),
        lambda x: x.argsort(0),
        torch.digamma,
        torch.lgamma,
        lambda x: x.cumsum(0),
        lambda x: x.topk(1, 0),
        lambda x: x.kthvalue(1, 0),
    ],
)
@pytest.mark.parametrize("view", [torch.t, lambda x: x[:, 1:], lambda x: x[1:], lambda x: x[::2]])
def test_eag_22_operators_read_views_in_logical_order(f, view):
    assert_matches_cpu(lambda x: f(view(x)), torch.tensor([[3.0, 1, 8], [4, 2, 7], [5, 9, 6]]))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("n", [1, 2, 127, 4099])
def test_eag_23_sort_of_bools(n, descending):
    x = torch.rand(n) > 0.4
    values, indices = x.to("tpu").sort(stable=True, descending=descending)
    assert_close(values.cpu(), x.sort(stable=True, descending=descending).values)
    assert_close(indices.cpu(), x.sort(stable=True, descending=descending).indices)


@pytest.mark.parametrize("last", [1, 2, 3])
def test_eag_25_scatter_of_topk_with_a_last_dim_of(last):
    x = torch.rand(10, 100, last, device="tpu")
    y = torch.zeros_like(x).scatter_(1, x.topk(2, dim=1).indices, 1.0)
    assert y.sum().item() == 20 * last


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_eag_26_indexed_adds_keep_the_imaginary_part(dtype):
    source, index = (1j * torch.arange(8)).to(dtype), torch.arange(8) % 4
    assert_matches_cpu(
        lambda s, i: torch.zeros(4, dtype=dtype, device=s.device).index_add(0, i, s), source, index
    )
    assert_matches_cpu(
        lambda s, i: torch.zeros(4, dtype=dtype, device=s.device).scatter_add(0, i, s),
        source,
        index,
    )
    assert_matches_cpu(
        lambda s, i: torch.zeros(4, dtype=dtype, device=s.device).index_put(
            (i,), s, accumulate=True
        ),
        source,
        index,
    )
    assert_matches_cpu(lambda s, i: s[i], source, index)


def test_eag_28_accumulation_over_many_duplicates():
    index = torch.arange(100_000) % 7
    ones = torch.ones(100_000, dtype=torch.int64)
    assert_matches_cpu(
        lambda i, v: torch.zeros_like(v[:7]).index_put_((i,), v, accumulate=True), index, ones
    )
    assert_matches_cpu(
        lambda i, v: torch.zeros_like(v[:7]).index_add_(0, i, v, alpha=2), index, ones
    )
    assert_matches_cpu(
        lambda i, v: torch.zeros_like(v[:7]).index_add_(0, i, v, alpha=0.5), index, ones.float()
    )


def test_eag_28_bfloat16_accumulation_is_near_float32():
    index, v = torch.arange(700) % 7, torch.rand(700)
    expected = torch.zeros(7).index_add_(0, index, v)
    for f in (
        lambda z, i, v: z.index_add_(0, i, v),
        lambda z, i, v: z.index_put_((i,), v, accumulate=True),
        lambda z, i, v: z.scatter_add_(0, i, v),
    ):
        z = torch.zeros(7, dtype=torch.bfloat16, device="tpu")
        got = f(z, index.to("tpu"), v.bfloat16().to("tpu")).float().cpu()
        assert_close(got, expected, rtol=1e-2, atol=0)


EMPTY_INDEX = {
    "scatter": lambda x, i: x.scatter(1, i, x[:, :0]),
    "scatter of a number": lambda x, i: x.scatter(1, i, 5.0),
    "scatter_add": lambda x, i: x.scatter_add(1, i, x[:, :0]),
    "scatter_reduce": lambda x, i: x.scatter_reduce(1, i, x[:, :0], "amax"),
    "gather": lambda x, i: x.gather(1, i),
    "index_select": lambda x, i: x.index_select(0, i.view(0)),
    "index_add": lambda x, i: x.index_add(0, i.view(0), x[:0]),
    "index_copy": lambda x, i: x.index_copy(0, i.view(0), x[:0]),
    "index_fill": lambda x, i: x.index_fill(0, i.view(0), 5.0),
    "index_reduce": lambda x, i: x.index_reduce(0, i.view(0), x[:0], "amax"),
    "index_put": lambda x, i: x.index_put((i.view(0),), x[:0]),
    "index_put, accumulated": lambda x, i: x.index_put((i.view(0),), x[:0], accumulate=True),
    "index": lambda x, i: x[i.view(0)],
    "take": lambda x, i: x.take(i),
    "put": lambda x, i: x.put(i, x[:, :0]),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "take_along_dim": lambda x, i: x.take_along_dim(i, 1),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", EMPTY_INDEX)
def test_eag_29_empty_indices(name, compiled):
    torch._dynamo.reset()
    f, x = EMPTY_INDEX[name], torch.arange(6.0).view(2, 3)
    index = torch.empty(2, 0, dtype=torch.int64)
    g = torch.compile(f, backend="tpu", fullgraph=True, dynamic=False) if compiled else f
    given = x.to("tpu")
    got = g(given, index.to("tpu"))
    assert_close(got.cpu(), f(x, index))
    assert torch.equal(given.cpu(), x) and got.untyped_storage() is not given.untyped_storage()


BAD_INDEX = {
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i.view(-1, 1)),
    "scatter": lambda x, i: x.scatter(0, i.view(-1, 1), 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i.view(-1, 1), x[:1]),
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: x.index_put((i,), x[:1]),
    "index_add": lambda x, i: x.index_add(0, i, x[:1]),
    "take": lambda x, i: x.take(i * 4),
    "embedding_bag": lambda x, i: torch.nn.functional.embedding_bag(i, x, torch.zeros_like(i)),
    "embedding_bag of a bag": lambda x, i: torch.nn.functional.embedding_bag(i[None], x),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:1]),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i.view(-1, 1), x[:1], "amax"),
    "put": lambda x, i: x.put(i * 4, x[0, :1]),
}


@pytest.mark.parametrize("index", [3, -4])
@pytest.mark.parametrize("name", BAD_INDEX)
def test_eag_32_index_out_of_range_is_an_error(name, index):
    table = torch.arange(20.0, device="tpu").view(5, 4)[:3]  # a slice: row 3 exists in memory
    with pytest.raises((IndexError, RuntimeError)):
        BAD_INDEX[name](table, torch.tensor([index], device="tpu")).cpu()
        torch.accelerator.synchronize()
    assert (table + 1).sum().item() == sum(range(12)) + 12  # the process goes on


def test_eag_34_solve_with_a_broadcast_right_side():
    a = torch.eye(3) * 4 + torch.rand(2, 3, 3)
    for b in (torch.rand(3, 1), torch.rand(2, 3, 2)):
        x = torch.linalg.solve(a.to("tpu"), b.to("tpu")).cpu()
        assert_close(a @ x, b.expand_as(a @ x))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_eag_50_abs_and_parts_of_complex(dtype):
    z = torch.tensor([1, 10j, 100, 1000j, -3 + 4j], dtype=dtype)
    for f in (torch.abs, torch.angle, torch.real, torch.imag, lambda z: z.conj() + 0, torch.sgn):
        assert_matches_cpu(f, z)
        assert_matches_cpu(lambda z, f=f: f(z.conj()[1:]), z)
    assert torch.abs(z.to("tpu")).tolist() == [1, 10, 100, 1000, 5]


def test_eag_52_complex_powers_products_and_long_sums():
    zero = torch.zeros(3, dtype=torch.complex64, device="tpu")
    assert [(zero**n)[0].item() for n in range(4)] == [1, 0, 0, 0]
    assert_close((torch.ones(2, 2, device="tpu") * 1j).cpu(), torch.ones(2, 2) * 1j)
    a, b = (torch.randn(s, dtype=torch.complex64) for s in [(4, 10000), (10000, 6)])
    c = torch.randn(4, 6, dtype=torch.complex64)
    got = torch.addmm(c.to("tpu"), a.to("tpu"), b.to("tpu"), beta=0.5).cpu()
    assert ((got - torch.addmm(c, a, b, beta=0.5)).abs().max() / got.abs().max()) < 1e-4


def test_eag_55_python_sum_of_bools():
    assert sum(torch.tensor(True, device="tpu") for _ in range(10)).item() == 10
    total = sum(torch.tensor(True, device="tpu") for _ in range(3))
    assert total.dtype == torch.int64


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("m, k, n", [(16384, 4, 16385), (4, 16384, 4), (16384, 16384, 2)])
def test_eag_58_products_with_a_long_dim(m, k, n, dtype):
    # Each row of a picks one row of b: what 16384 x 16384 of the row's program asks, dim by dim.
    rows = torch.arange(m) % k
    a = torch.zeros(m, k, dtype=dtype)
    a[torch.arange(m), rows] = 1
    b = torch.randint(-3, 4, (k, n)).to(dtype)
    product = a.to("tpu") @ b.to("tpu")
    some = torch.cat([torch.arange(3), torch.arange(m - 3, m)]) % m
    assert torch.equal(product[some.to("tpu")].cpu(), b[rows[some]])
    assert torch.equal(product[:, -1].cpu(), b[rows, -1])


@pytest.mark.parametrize("n", [1, 127, 1000, 4096])
def test_eag_58_square_product_of_identities(n):
    i = torch.eye(n, dtype=torch.bfloat16, device="tpu")
    product = i @ i
    assert torch.equal(product, i) and product.float().trace().item() == n


def test_eag_59_rows_do_not_depend_on_the_batch():
    xy, r = torch.randn(64, 50, 3, device="tpu"), torch.randn(64, 3, 3, device="tpu")
    assert_close((xy @ r)[5, 10:12], xy[5, 10:12] @ r[5], rtol=1e-6, atol=1e-6)
