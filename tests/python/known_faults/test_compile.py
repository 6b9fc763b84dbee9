# SPDX-License-Identifier: Apache-2.0
"""Faults of compiled functions on other devices, through torch.compile(backend="tpu").

Each test is named by the row of the collection that it stands for; test_rows.py lists the rows.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

import torch_tpu.compile

torch_tpu.compile.register()


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def compiled(f):
    return torch.compile(f, backend="tpu", fullgraph=True, dynamic=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_cmp_01_and_02_write_through_a_transposed_view_that_is_returned(dtype):
    def f(a):
        b = a.t()
        b.mul_(3)
        return b

    a = torch.arange(6, device="tpu").to(dtype).view(2, 3)
    b = compiled(f)(a)
    assert a.tolist() == [[0, 3, 6], [9, 12, 15]]
    assert b.stride() == (1, 3) and torch.equal(b, a.t())
    b.add_(1)
    assert a.tolist() == [[1, 4, 7], [10, 13, 16]]


def test_cmp_02_strides_of_a_permuted_result():
    def f(a):
        b = a.permute(2, 0, 1)
        b.add_(1)
        return b

    a = torch.arange(24.0, device="tpu").view(2, 3, 4)
    expected = f(a.clone())
    got = compiled(f)(a)
    assert got.stride() == expected.stride() and torch.equal(got, expected)


def test_cmp_04_writes_into_slices_of_one_cache():
    cache = torch.zeros(2, 8, 16, 2, 4, device="tpu")
    k, v = cache.unbind(0)
    new = torch.rand(3, 2, 4, device="tpu")

    def write(k, index, new):
        k.flatten(0, 1).index_copy_(0, index, new)

    compiled(write)(k, torch.tensor([0, 5, 127], device="tpu"), new)
    expected = torch.zeros(128, 2, 4)
    expected[[0, 5, 127]] = new.cpu()
    assert torch.equal(cache[0].cpu().flatten(0, 1), expected)
    assert cache[1].abs().sum().item() == 0 and torch.equal(k, cache[0])


def test_cmp_05_write_to_a_plain_module_attribute():
    class Writer(nn.Module):
        def __init__(self):
            super().__init__()
            self.b = torch.zeros(3, 3, device="tpu")

        def forward(self, x, i, u):
            self.b.index_copy_(0, i, u)
            return x + self.b

    module = Writer()
    f, x = compiled(module), torch.ones(3, 3, device="tpu")
    for at, value in ((0, 2.0), (2, 5.0)):
        y = f(x, torch.tensor([at], device="tpu"), torch.full((1, 3), value, device="tpu"))
    assert module.b[:, 0].tolist() == [2, 0, 5]
    assert torch.equal(y, x + module.b)


def test_cmp_07_functional_copy_leaves_its_argument():
    a = torch.zeros(1, device="tpu")
    b = compiled(lambda a: torch.ops.aten.copy(a, torch.ones(1, device=a.device)))(a)
    assert (b.item(), a.item()) == (1, 0)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1::2],
        lambda x: x[2:],
        lambda x: x[::3],
        lambda x: x[:, 3:90:2],
        lambda x: x.t()[5],
        lambda x: x[3],
    ],
)
def test_cmp_08_slices_keep_offset_and_step(view):
    base = torch.arange(9.0, device="tpu")[:, None] + torch.zeros(9, 128, device="tpu")
    assert torch.equal(compiled(lambda x: x + x)(view(base)), view(base) * 2)
    assert torch.equal(compiled(lambda b: view(b) + view(b))(base), view(base) * 2)


def test_cmp_10_comparisons():
    x, z = torch.arange(-33.0, 34.0, device="tpu"), torch.zeros(67, device="tpu")
    f = compiled(
        lambda x, z: [g(x, z) for g in (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)]
    )
    results = f(x, z)
    assert all(r.dtype == torch.bool for r in results)
    assert [r.sum().item() for r in results] == [1, 66, 33, 34, 33, 34]
    assert results[0].nonzero().item() == 33


@pytest.mark.parametrize("width", [1, 127, 129, 130, 257])
def test_cmp_11_mean_zeros_like_and_broadcast(width):
    x, y = torch.rand(2, 3, width, device="tpu"), torch.ones(2, 3, width, device="tpu")
    got = compiled(lambda x, y: x.mean(-1, keepdim=True) + torch.zeros_like(x) + y)(x, y)
    assert_close(got.cpu(), (x.cpu().mean(-1, keepdim=True) + 1).expand(2, 3, width))


@pytest.mark.parametrize(
    "write",
    [
        lambda o, t, s: o.index_add_(0, t, s),
        lambda o, t, s: o.index_put_((t,), s, accumulate=True),
        lambda o, t, s: o.scatter_add_(0, t[:, None].expand_as(s), s),
    ],
)
def test_cmp_13_sums_over_repeated_rows(write):
    rows, parts = torch.arange(5).repeat_interleave(4), torch.randn(20, 33)
    f = compiled(lambda t, s: write(torch.zeros(5, 33, device=s.device), t, s))
    assert_close(f(rows.to("tpu"), parts.to("tpu")).cpu(), parts.view(5, 4, 33).sum(1))


@pytest.mark.parametrize("m, n", [(32, 64), (33, 65)])
def test_cmp_14_broadcast_difference_and_full_reduction(m, n):
    a, b = torch.arange(float(m)), torch.arange(float(n))
    for reduce in (torch.sum, torch.mean):

        def f(a, b, r=reduce):
            return r(a[:, None] - b[None, :])

        assert_close(compiled(f)(a.to("tpu"), b.to("tpu")).cpu(), f(a, b))


@pytest.mark.parametrize("shape", [(1024,), (3, 1024)])
def test_cmp_16_rms_norm_of_one_row(shape):
    x, norm = torch.randn(shape), nn.RMSNorm(1024)
    nn.init.uniform_(norm.weight)
    expected = norm(x).detach()
    got = compiled(norm.to("tpu"))(x.to("tpu")).detach()
    assert_close(got.cpu(), expected)


def test_cmp_17_polygamma_of_an_integer():
    def f(x):
        return torch.special.polygamma(0, x)

    x = torch.tensor([2], device="tpu")
    for y in (f(x), compiled(f)(x)):
        assert y.dtype == torch.float32
        assert_close(y.cpu(), torch.tensor([0.42278]), rtol=1e-4, atol=1e-5)


def test_cmp_19_device_with_and_without_index_are_one():
    x, y = torch.ones(1, 3, 5, 5, device="tpu"), torch.ones(1, 3, 5, 5, device="tpu:0")
    assert torch.equal(compiled(lambda x, y: x.add(y))(x, y).cpu(), torch.full((1, 3, 5, 5), 2.0))


def test_cmp_20_each_shape_has_its_program():
    f = compiled(lambda x: x.cumsum(-1) * 2)
    for shape in ((1, 16), (1, 1), (2, 16), (1, 16)):
        x = torch.rand(shape)
        assert_close(f(x.to("tpu")).cpu(), x.cumsum(-1) * 2)


def test_cmp_22_replaced_attribute_is_seen():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = torch.zeros(4, device="tpu")

        def forward(self, at, x):
            self.cache[at] = x
            return self.cache.clone()

    module = Cache()
    f = torch.compile(module, backend="tpu", dynamic=False)
    assert f(0, torch.tensor(2.0, device="tpu")).tolist() == [2, 0, 0, 0]
    module.cache = torch.zeros(4, device="tpu")
    assert f(1, torch.tensor(1.0, device="tpu")).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("dynamic", [False, None, True])
@pytest.mark.parametrize(
    "increment",
    [
        lambda y, x: y.__setitem__(x, y[x] + y[x]),
        lambda y, x: y.index_put_((x,), y[x], accumulate=True),
        lambda y, x: y.index_add_(0, x[0], y[x[0]]),
        lambda y, x: y.select(0, 0).add_(y[0]) + y.select(0, 1).add_(y[1]),
    ],
)
def test_cmp_23_indexed_increment_is_applied_once(increment, dynamic):
    def f(y, x):
        increment(y, x)
        return y

    g = torch.compile(f, backend="tpu", fullgraph=True, dynamic=dynamic)
    for rows in (2, 3, 5):  # with open sizes the second call's program is another one
        y = torch.ones(rows, 8, device="tpu")
        got = g(y, torch.tensor([[0, 1]], device="tpu"))
        assert got[:2].unique().tolist() == [2] and torch.equal(got, y)
        assert got[2:].unique().tolist() in ([], [1])


@pytest.mark.parametrize(
    "reshape",
    [
        lambda y: y.unsqueeze_(1),
        lambda y: y.squeeze_(),
        lambda y: y[0, 0].t_(),
        lambda y: y.transpose_(0, 2),
        lambda y: y.swapaxes_(1, 3),
    ],
)
def test_cmp_25_in_place_changes_of_shape(reshape):
    def f(x):
        y = x.clone()
        y = reshape(y)
        return y + 1

    x = torch.rand(3, 3, 2, 2)
    got = compiled(f)(x.to("tpu"))
    assert got.shape == f(x).shape
    assert_close(got.cpu(), f(x))


def test_eag_rows_hold_in_a_compiled_function():
    # A few whose eager tests are about the kind of value, not of call.
    x = torch.tensor([1.0, float("nan"), 3.0])

    def f(x):
        return (x.max(), x.argmax(), x.clamp(min=2), F.softmax(x * float("inf"), 0))

    for e, a in zip(f(x), compiled(f)(x.to("tpu")), strict=True):
        assert_close(a.cpu(), e, equal_nan=True)
