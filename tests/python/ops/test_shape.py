# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import make_tensor

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

aten = torch.ops.aten
ALL_DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.float64,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
]

# What a graph does with views: their *_copy forms run the same lowerings in eager mode.
VIEW_COPIES = {
    "view": lambda x: torch.view_copy(x, (4, -1)),
    "expand": lambda x: torch.expand_copy(x.unsqueeze(0), (5, -1, -1, -1)),
    "permute": lambda x: torch.permute_copy(x, (2, 0, -2)),
    "transpose": lambda x: torch.transpose_copy(x, 0, -1),
    "t": lambda x: torch.t_copy(x[0]),
    "squeeze": lambda x: (
        torch.squeeze_copy(x[:1]),
        torch.squeeze_copy(x[:1], 0),
        torch.squeeze_copy(x[:1], (0, 1)),
    ),
    "unsqueeze": lambda x: torch.unsqueeze_copy(x, -1),
    "select": lambda x: (torch.select_copy(x, 1, -1), torch.select_copy(x, 0, 1)),
    "slice": lambda x: (
        torch.slice_copy(x, 1, 1, 100, 2),
        torch.slice_copy(x, 2, -2),
        torch.slice_copy(x, 0, 5),
    ),
    "split": lambda x: torch.split_copy(x, 2, 1),
    "split_with_sizes": lambda x: torch.split_with_sizes_copy(x, [1, 0, 2], 1),
    "unbind": lambda x: torch.unbind_copy(x, 1),
    "diagonal": lambda x: (
        torch.diagonal_copy(x),
        torch.diagonal_copy(x, 1, 2, 1),
        torch.diagonal_copy(x, -9),
    ),
    "unfold": lambda x: (torch.unfold_copy(x, 2, 3, 1), torch.unfold_copy(x, 0, 2, 5)),
    "as_strided": lambda x: (
        torch.as_strided_copy(x, (2, 2), (3, 1), 4),
        torch.as_strided_copy(x, (3, 3), (1, 1)),
    ),
    "alias": torch.alias_copy,
    "detach": torch.detach_copy,
    "narrow": lambda x: torch.narrow_copy(x, 2, 1, 2),
}


@pytest.mark.parametrize("name", VIEW_COPIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
def test_view_copy_matches_cpu(name, dtype):
    assert_matches_cpu(VIEW_COPIES[name], make_tensor((2, 3, 4), dtype=dtype, device="cpu"))


@pytest.mark.parametrize(
    "source", [torch.float32, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.bfloat16]
)
@pytest.mark.parametrize(
    "target", [torch.float32, torch.int64, torch.uint8, torch.complex64, torch.float16]
)
def test_view_as_dtype_keeps_the_bytes(source, target):
    x = make_tensor((3, 16), dtype=source, device="cpu", low=0, high=9)
    y = aten.view_copy.dtype(x.to("tpu"), target).cpu()
    want = x.view(target)
    assert y.dtype is target
    assert torch.equal(y.view(torch.uint8), want.view(torch.uint8))


SCATTERS = {
    "slice": (lambda x, y: torch.slice_scatter(x, y, 1, 1, 6, 2), (4, 3, 5)),
    "slice_from_the_end": (lambda x, y: torch.slice_scatter(x, y, 2, -2), (4, 6, 2)),
    "select": (lambda x, y: torch.select_scatter(x, y, 1, -1), (4, 5)),
    "diagonal": (lambda x, y: torch.diagonal_scatter(x, y, 1, 0, 2), (6, 4)),
    "as_strided": (lambda x, y: torch.as_strided_scatter(x, y, (2, 3), (7, 2), 3), (2, 3)),
}


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool])
def test_scatter_into_a_view_matches_cpu(name, dtype):
    f, shape = SCATTERS[name]
    x, y = (make_tensor(s, dtype=dtype, device="cpu") for s in ((4, 6, 5), shape))
    assert_matches_cpu(f, x, y)


def test_gradients_of_views_match_cpu():
    x = torch.randn(4, 6, 5, requires_grad=True)
    assert_matches_cpu(
        lambda x: (
            x[1],
            x[:, -1],
            x[..., 1:4:2],
            x[:, 5:2],
            x.diagonal(-1, 0, 1),
            x.unfold(1, 4, 1),
            x.unfold(1, 2, 3),
        ),
        x,
    )


def test_starts_of_slices_and_indices_share_one_program():
    g = torch.randn(4, 2, device="tpu")
    aten.slice_backward(g, [4, 9], 1, 0, 2, 1)
    aten.select_backward(g, [4, 3, 2], 1, 0)
    with count_compiles() as compiled:
        aten.slice_backward(g, [4, 9], 1, 5, 7, 1)
        aten.select_backward(g, [4, 3, 2], 1, -1)
    assert compiled == []


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_joining_and_moving_match_cpu(dtype):
    x = make_tensor((2, 3, 4), dtype=dtype, device="cpu")
    assert_matches_cpu(
        lambda x: (
            torch.cat([x, x], 1),
            torch.stack([x, x], -1),
            x.flip(0, -1),
            x.roll(2, 1),
            x.roll((1, -5), (0, 2)),
            x.roll(7),
        ),
        x,
    )
    assert_matches_cpu(
        lambda x: (
            x.repeat(2, 1, 3),
            x.repeat(2, 1, 1, 1),
            x[0].tril(),
            x.triu(1),
            x.tril(-1),
            torch.diag_embed(x, 1, 0, 2),
        ),
        x,
    )


def test_cat_promotes_and_ignores_old_empty_tensors():
    a, b, empty = torch.ones(2, 3), torch.ones(1, 3, dtype=torch.int64), torch.empty(0)
    assert_matches_cpu(
        lambda a, b, e: (torch.cat([a, b]), torch.cat([e, a]), torch.cat([b, b.bool()])),
        a,
        b,
        empty,
    )


def test_gradients_of_joining_match_cpu():
    x, y = torch.randn(2, 3, requires_grad=True), torch.randn(2, 1, requires_grad=True)
    assert_matches_cpu(
        lambda x, y: (torch.cat([x, y, x], 1), x.roll(1, 0), x.flip(1), x.triu(), x.repeat(2, 2)),
        x,
        y,
    )


def test_diagonals_of_triangles_share_one_program():
    x = torch.randn(4, 5, device="tpu")
    x.tril(0)
    with count_compiles() as compiled:
        x.tril(2), x.tril(-3)
    assert compiled == []


@pytest.mark.parametrize(
    "pads", [(1, 2), (0, 1, 2, 0), (-1, 2), (-1, -1, 1, 0), (0, 0, 0, 0, 1, 1)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool])
def test_constant_pad_matches_cpu(pads, dtype):
    x = make_tensor((2, 3, 4), dtype=dtype, device="cpu")
    assert_matches_cpu(lambda x: F.pad(x, pads, value=1), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.uint8, torch.complex64])
def test_trace_matches_cpu(dtype):
    assert_matches_cpu(torch.trace, make_tensor((3, 5), dtype=dtype, device="cpu"))


def test_pixel_shuffles_match_cpu():
    x = torch.randn(2, 8, 4, 6, requires_grad=True)
    assert_matches_cpu(
        lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), torch.channel_shuffle(x, 4)), x
    )


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_empty_tensors_match_cpu(shape):
    x = torch.empty(shape)
    assert_matches_cpu(
        lambda x: (
            torch.cat([x, x]),
            x.flip(0),
            x.roll(1, 0),
            x.repeat(2, 3),
            torch.stack([x, x]),
            F.pad(x, (1, 1)),
        ),
        x,
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(2, 4, device=d)]),
        lambda d: torch.ones(2, 3, device=d).flip(2),
        lambda d: torch.ones(3, device=d).tril(),
        lambda d: torch.ones(2, 3, device=d).repeat(2),
        lambda d: F.pad(torch.ones(2, device=d), (-3, 0)),
        lambda d: torch.ones(6, device=d).view(4, 2),
        lambda d: torch.ones(2, 3, device=d).select(1, 3),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)


LAYOUTS = {
    "dense": lambda b: b,
    "transposed": lambda b: b.t(),
    "part": lambda b: b[1:, 2:],
    "column major": lambda b: b.t().contiguous().t(),
}


@pytest.mark.parametrize("offset", [None, 0, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_as_strided_scatter_counts_in_the_storage(layout, offset):
    base = torch.arange(24.0).reshape(4, 6)

    def f(b):
        x = LAYOUTS[layout](b)
        return torch.as_strided_scatter(x, torch.full_like(x[0, :3], -1), (3,), (2,), offset)

    assert_matches_cpu(f, base)
    torch._dynamo.reset()  # its limit counts f of all these cases
    got = torch.compile(f, backend="tpu", fullgraph=True, dynamic=False)(base.to("tpu"))
    assert got.stride() == f(base).stride()
    torch.testing.assert_close(got.cpu(), f(base), rtol=0, atol=0)


def test_as_strided_scatter_into_an_input_that_is_a_part():
    def f(x, offset):
        return torch.as_strided_scatter(x, x[0, :3] * 2, (3,), (2,), offset)

    compiled = torch.compile(f, backend="tpu", fullgraph=True, dynamic=False)
    base = torch.arange(24.0).reshape(4, 6)
    want, got = f(base[1:, 2:], None), compiled(base.to("tpu")[1:, 2:], None)
    torch.testing.assert_close(got.cpu(), want, rtol=0, atol=0)
    with pytest.raises(Exception, match="part of its storage"):
        compiled(base.to("tpu")[1:, 2:], 3)
