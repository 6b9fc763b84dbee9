# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501
"""torch.compile(backend="tpu") against CPU eager: values, strides, who shares a storage with whom, mutation, gradients.

Each graph is called twice with fresh inputs that share storages as the originals do. Afterwards every
output is incremented in place, and every input and output is compared again: aliasing is what shows.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

from torch_tpu import compile as tpu_compile

tpu_compile.register()

X = torch.linspace(-2, 3, 24).view(4, 6)
Y = torch.linspace(1, 2, 24).view(4, 6)
BASE = torch.linspace(-3, 3, 64)
Z = torch.complex(X, Y)
I = torch.tensor([1, 2, 1])  # noqa: E741


def leaf(x: torch.Tensor) -> torch.Tensor:
    return x.clone().requires_grad_()


def put(x, at, value):
    x[at] = value
    return x


def without_gradient(a):
    with torch.no_grad():
        b = a * 2
    return b, a * 3, b.t()


def average(a, w):
    with torch.no_grad():
        w.lerp_(a, 0.1)
    return a * w


def counted(n, a, w):
    """The gradient needs n + 1, which autograd may compute again from n: n as it was."""
    n += 1
    w.mul_(0.5)
    return a * n + w


# name: (function, inputs)
GRAPHS = {
    "an input": (lambda a: a, [X]),
    "an input and a value": (lambda a: (a, a + 1), [X]),
    "inputs swapped": (lambda a, b: (b, a), [X, Y]),
    "one output twice": (lambda a: ((b := a * 2), b), [X]),
    "equal values twice": (lambda a: (a * 2, a * 2), [X]),
    "view of an input": (lambda a: a.t(), [X]),
    "views of an input": (lambda a: (a[1:], a.view(-1), a[:, 2]), [X]),
    "views of an input that is a slice": (lambda a: (a[1:], a.t(), a + 1), [BASE.view(8, 8)[1:, ::2]]),
    "chunks of an input": (lambda a: a.chunk(2, 1), [X]),
    "dtype view of an input": (lambda a: a.view(torch.int32), [X]),
    "nothing": (lambda a: None, [X]),
    "containers": (lambda a, b: {"sum": a + b, "list": [a, None, b * 2], "n": 3, "t": (a.t(),)}, [X, Y]),
    "scalars": (lambda a: (a.sum(), a.shape[0], a.sum() > 0, 2.5, "x"), [X]),
    "value and its views": (lambda a: ((b := a + 1), b.t(), b[1:], b.view(-1)), [X]),
    "views of a value": (lambda a: ((b := a + 1).t(), b[1:]), [X]),
    "split": (lambda a: (a * 1).split(2, 1), [X]),
    "uneven split": (lambda a: (a * 1).split([1, 3], 0), [X]),
    "unbind": (lambda a: (a * 2).unbind(0), [X]),
    "chain of views": (lambda a: ((b := a + 1)[1:][:, 1:], b[:, 1:], b.t()[2]), [X]),
    "views of inputs and values": (lambda a: (a.t(), (b := a * 2).t(), b, a), [X]),
    "broadcast view": (lambda a: ((b := a.sum(0)).expand(5, 6), b), [X]),
    "dtype views": (lambda a: ((b := a + 1).view(torch.int32), b), [X]),
    "dtype views of another width": (lambda a: ((b := a + 1).view(torch.int16), b), [X]),
    "permuted value and view": (lambda a: ((b := a.t().exp()), b.t()[1:]), [X]),
    "conjugates": (lambda a: (a.conj(), (b := a * 2j).conj(), b), [Z]),
    "real views": (lambda a: (torch.view_as_real(b := a * 1), b), [Z]),
    "imaginary part of a conjugate": (lambda a: (a * 1).conj().imag, [Z]),
    "write": (lambda a: a.add_(1), [X]),
    "write and nothing": (lambda a: (a.add_(1), None)[1], [X]),
    "write to a row": (lambda a: (a[1].mul_(2), a[0])[1], [X]),
    "write to a column": (lambda a: (a[:, 2].fill_(3), a)[1], [X]),
    "write to a diagonal": (lambda a: (a.diagonal().add_(1), a.diagonal())[1], [X]),
    "write to an input that is a slice": (lambda a: (a[1].add_(3), a.mul_(2))[1], [BASE.view(8, 8)[1:, ::2]]),
    "write through a transposed view": (lambda a: (b := a.t(), b.mul_(2), b[1])[2], [X]),
    "write, then views": (lambda a: (a.mul_(2), a.t(), a[1]), [X]),
    "writes in a row": (lambda a: (a.mul_(2).add_(1), a[0].zero_(), a * 1), [X]),
    "two writes that cross": (lambda a, b: (a.copy_(b * 2), b.copy_(a + 1))[1].sum(), [X, Y]),
    "copy of another dtype": (lambda a, b: (a.copy_(b), b.add_(1))[0] * 2, [X, torch.arange(24).view(4, 6)]),
    "write of inputs that overlap": (lambda a, b: (a.add_(1), b.mul_(2), a + b)[2], [BASE[:32], BASE[16:48]]),
    "write of one of two that overlap": (lambda a, b: (a.add_(1), b.sum(), a.sum())[1:], [BASE.view(8, 8), BASE[3:11]]),
    "one tensor given twice": (lambda a, b: (a.add_(1), b * 2)[1], [X, X]),
    "out=": (lambda a, b: torch.add(a, b, out=a), [X, Y]),
    "out= of a fresh tensor": (lambda a, b: torch.mm(a, b.t(), out=torch.empty(4, 4, device=a.device)), [X, Y]),
    "setitem": (lambda a: put(a, (slice(None), 2), 7.0), [X]),
    "setitem of itself": (lambda a: put(a, 1, a[2]), [X]),
    "setitem by mask": (lambda a: put(a, a > 0, 0.0), [X]),
    "index_put with duplicates": (lambda a, i: (a.index_put_((i,), a[:3].exp(), accumulate=True), a[i])[1], [X, I]),
    "masked_fill_": (lambda a: (a.masked_fill_(a > 0, 0), a * 2)[1], [X]),
    "unsqueeze_ of a value": (lambda a: a.clone().unsqueeze_(0), [X]),
    "write to integers": (lambda a: a.add_(1), [torch.arange(5)]),
    "write to bools": (lambda a: a.logical_not_(), [X > 0]),
    "write to a real part": (lambda a: (a.real.add_(1), a)[1], [Z]),
    "as_strided": (lambda a: (a + 0).as_strided((3, 2), (2, 1), 0) * 2, [X]),
    "write through as_strided": (lambda a: (a.as_strided((3, 2), (2, 1), 1).add_(5), a)[1], [X]),
    "as_strided of a slice": (lambda a: a.as_strided((3, 4), (1, 2)) * 2, [BASE.view(8, 8)[1:, ::2]]),
    "as_strided of a slice, from the storage's start": (lambda a: a.as_strided((3, 4), (1, 2), 1) * 2, [BASE.view(8, 8)[1:, ::2]]),
    "permuted input": (lambda a: (a + 1, a.contiguous(), a.clone()), [BASE[:24].view(2, 3, 4).permute(2, 0, 1)]),
    "channels last": (lambda a: (a * 2, a.relu(), a.sum(1)), [BASE[:48].view(2, 3, 2, 4).contiguous(memory_format=torch.channels_last)]),
    "broadcast input": (lambda a: (a * 2, a.sum(0)), [X[:1].expand(4, 6)]),
    "conjugate input": (lambda a: a * 2, [Z.conj()]),
    "empty": (lambda a: (a.sum(0), a + 1, a.t(), torch.cat([a, a.new_ones(2, 3)])), [torch.empty(0, 3)]),
    "rank 0": (lambda a: (a.view(1) + 1, a.add_(2)), [torch.tensor(3.0)]),
    "int8": (lambda a, b: (a + b, a * b, a // b, a % b, a.sum(), a << 1), [torch.arange(-8, 8, dtype=torch.int8), torch.full((16,), 3, dtype=torch.int8)]),
    "uint8": (lambda a: (a + 250, a * 2, a - 1, a.float().mean()), [torch.arange(16, dtype=torch.uint8)]),
    "bool": (lambda a, b: (a & b, a | b, ~a, a.sum(), a.any()), [X > 0, Y > 1.5]),
    "float64": (lambda a: (a @ a.t(), a.exp()), [X.double()]),
    "scalar on the CPU": (lambda a, s: a * s, [X, torch.tensor(2.0)]),
    "constants": (lambda a: (a + torch.tensor(3.0), a.new_tensor([1.0, 2.0]), torch.arange(3, device=a.device), torch.full((2,), 7, device=a.device)), [X]),
}  # fmt: skip
GRADIENTS = {
    "product": (lambda a, b: ((a @ b.t()).relu(), a * 2), [leaf(X), leaf(Y)]),
    "views": (lambda a: (a.t(), (a * 2).t(), a[0] * a[1]), [leaf(X)]),
    "the input itself": (lambda a: (a, a * 3), [leaf(X)]),
    "input that is written": (lambda a, b: (b.add_(a * 2), a * 3)[1], [leaf(X), Y]),
    "detached": (lambda a: (a.detach() * a, a.detach(), (a * 2).detach()), [leaf(X)]),
    "unused input": (lambda a, b: a * 2, [leaf(X), leaf(Y)]),
    "integer outputs": (lambda a, i: (a[i], a.argmax(1), a.max(1)), [leaf(X), I]),
    "one output thrice": (lambda a: ((b := a.exp()), b, b.t()), [leaf(X)]),
    "views of a value": (lambda a: ((b := a.exp()).t(), b[1:], b.view(-1)), [leaf(X)]),
    "complex": (lambda a: (a * a).abs(), [leaf(Z)]),
    "broadcast": (lambda a: a.expand(4, 6), [leaf(X[:1])]),
    "without gradient inside": (without_gradient, [leaf(X)]),
    "moving average": (average, [leaf(X), Y]),
    "buffers that are written": (counted, [torch.tensor(3), leaf(X), Y]),
}  # fmt: skip


def tensors(tree) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def copied(inputs: list[torch.Tensor], device: str) -> list[torch.Tensor]:
    """Copies of the inputs that share storages as the inputs do."""
    storages: dict[int, torch.Tensor] = {}
    out = []
    for t in inputs:
        storage = t.untyped_storage()
        if storage._cdata not in storages:
            flat = torch.empty(0, dtype=t.dtype).set_(
                storage, 0, (storage.nbytes() // t.element_size(),), (1,)
            )
            storages[storage._cdata] = flat.clone().to("cpu" if t.dim() == 0 and not t.requires_grad else device)  # fmt: skip
        copy = storages[storage._cdata].as_strided(t.size(), t.stride(), t.storage_offset())
        copy = copy.conj() if t.is_conj() else copy
        out.append(copy.detach().requires_grad_() if t.requires_grad else copy)
    return out


def shared(ts: list[torch.Tensor]) -> list[int]:
    """For each tensor the first one with its storage."""
    storages = [t.untyped_storage()._cdata for t in ts]
    return [storages.index(s) for s in storages]


def overlaps_itself(t: torch.Tensor) -> bool:
    places = torch.zeros(t.size(), dtype=torch.int64)
    for d, (size, stride) in enumerate(zip(t.size(), t.stride(), strict=True)):
        places += (torch.arange(size) * stride).view([-1 if k == d else 1 for k in range(t.dim())])
    return places.unique().numel() < t.numel()


def observe(f, inputs: list[torch.Tensor], backward: bool) -> dict:
    """All that a caller can see of a call."""
    result = f(*inputs)
    outputs = tensors(result)
    seen = {
        "structure": str(pytree.tree_structure(result)),
        "others": [x for x in pytree.tree_leaves(result) if not isinstance(x, torch.Tensor)],
        "metadata": [(t.size(), t.stride(), t.dtype, t.requires_grad) for t in outputs],
        "shared": shared(inputs + outputs),
        "values": [t.detach().cpu().clone() for t in inputs + outputs],
    }
    if backward:
        sum(t.abs().square().sum() for t in outputs if t.requires_grad).backward()
        seen["gradients"] = [t.grad.cpu() for t in inputs if t.is_leaf and t.grad is not None]
    else:
        for t in outputs:
            if t.dtype != torch.bool and not overlaps_itself(t):
                t.add_(1)
        seen["afterwards"] = [t.cpu().clone() for t in inputs + outputs]
    return seen


def check(f, inputs: list[torch.Tensor], backward: bool) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(f, backend="tpu", fullgraph=True, dynamic=False)
    for _ in range(2):
        want = observe(f, copied(inputs, "cpu"), backward)
        got = observe(compiled, copied(inputs, "tpu"), backward)
        for what in ("structure", "others", "metadata", "shared"):
            assert got[what] == want[what], what
        for what in ("values", "gradients", "afterwards"):
            torch.testing.assert_close(got.get(what), want.get(what))


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_is_as_in_eager(name):
    f, inputs = GRAPHS[name]
    check(f, inputs, backward=False)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", ["value and its views", "views of an input", "write, then views"])
def test_graph_is_as_in_eager_without_gradients(name, mode):
    f, inputs = GRAPHS[name]
    with mode():
        check(f, [x.clone().requires_grad_(mode is torch.no_grad) for x in inputs], backward=False)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_as_in_eager(name):
    f, inputs = GRADIENTS[name]
    check(f, inputs, backward=True)


def test_input_that_starts_to_need_a_gradient():
    f = torch.compile(lambda a: a * 2, backend="tpu", fullgraph=True, dynamic=False)
    x = X.to("tpu")
    assert not f(x).requires_grad
    x.requires_grad_()
    f(x).sum().backward()
    assert x.grad.eq(2).all()
    with torch.no_grad():
        assert not f(x).requires_grad


def test_as_strided_follows_where_the_tensor_starts():
    # The graph is traced with one slice and called with another of the same size and strides.
    f = torch.compile(lambda a: a.as_strided((2, 2), (1, 2)) + 0, backend="tpu", dynamic=False)
    base = BASE.to("tpu")
    for start in (3, 20):
        a = base[start : start + 8]
        assert torch.equal(f(a), a.as_strided((2, 2), (1, 2)))


def test_views_of_an_input_are_not_computed():
    f = torch.compile(lambda a: (a.t(), a[1:], a + 1), backend="tpu", fullgraph=True, dynamic=False)
    before = len(tpu_compile.graph_records())
    x = X.to("tpu")
    t, _, y = f(x)
    assert t._base is x and torch.equal(y, x + 1)
    (record,) = tpu_compile.graph_records()[before:]
    assert len(record.outputs.results) == 1
