# SPDX-License-Identifier: Apache-2.0
"""View and in-place faults of other devices: offsets, strides, aliases, order of writes, copies.

Each test is named by the row of the collection that it stands for; test_rows.py lists the rows.
"""

from __future__ import annotations

import re
import time

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from torch_tpu.testing.against_cpu import assert_matches_cpu


def both(program) -> None:
    """Runs `program(device)` on CPU and tpu: the tensors that it returns are equal, strides too."""
    for e, a in zip(program("cpu"), program("tpu"), strict=True):
        assert a.device.type == "tpu"
        assert a.shape == e.shape and a.stride() == e.stride()
        assert_close(a.cpu(), e)


def test_viw_01_views_follow_writes_and_not_rebinding():
    for write in (lambda a: a.data.add_(1), lambda a: a.data.__iadd__(1)):
        a = torch.zeros(6, device="tpu")
        view = a.view(2, 3)
        write(a)
        assert view.sum().item() == 6
    c = torch.zeros(6, device="tpu")
    view = c.view(2, 3)
    c.data = c.data + 1
    assert view.sum().item() == 0 and c.sum().item() == 6


def test_viw_02_view_and_base_agree_after_each_write():
    def program(d):
        t = torch.arange(16.0, device=d).view(4, 4)
        b = t.view(2, 8)
        overlap = t.as_strided((3, 4), (2, 1), 1)
        results = []
        for write in (
            lambda: b.add_(1),
            lambda: b[0].mul_(2),
            lambda: t[1].zero_(),
            lambda: t.t()[2].fill_(9),
            lambda: b[:, ::3].neg_(),
        ):
            write()
            results += [t.clone(), b.clone(), overlap.clone()]
        return results

    both(program)


def test_viw_04_repeated_writes_to_a_slice_take_constant_time():
    b = torch.zeros(9, device="tpu")
    times = []
    for _ in range(4):
        start = time.perf_counter()
        for _ in range(50):
            b[2:6].add_(1)
        b.sum().item()
        times.append(time.perf_counter() - start)
    assert b.tolist() == [0, 0, 200, 200, 200, 200, 0, 0, 0]
    assert times[-1] <= 4 * max(times[1], 0.02)  # grows with the number of writes if it is a graph


def test_viw_05_copy_after_resize():
    b = torch.tensor([], device="tpu")
    b.resize_(3)
    b.copy_(torch.tensor([1.0, 2, 3]))
    assert b.tolist() == [1, 2, 3]
    b.resize_(2, 2).copy_(torch.ones(2, 2, device="tpu"))
    assert b.tolist() == [[1, 1], [1, 1]]


WRITES = {
    "scatter_add_": lambda row, i: row.scatter_add_(0, i, torch.ones_like(row[:3])),
    "scatter_": lambda row, i: row.scatter_(0, i, 5.0),
    "index_add_": lambda row, i: row.index_add_(0, i, torch.ones_like(row[:3])),
    "index_fill_": lambda row, i: row.index_fill_(0, i, 4.0),
    "index_copy_": lambda row, i: row.index_copy_(0, i[:2], torch.ones_like(row[:2])),
    "index_put_": lambda row, i: row.index_put_((i,), torch.ones_like(row[:3]), accumulate=True),
    "masked_fill_": lambda row, i: row.masked_fill_(row < 1, 7.0),
    "masked_scatter_": lambda row, i: row.masked_scatter_(row < 1, torch.ones_like(row)),
    "put_": lambda row, i: row.put_(i[:2], torch.ones_like(row[:2])),
    "copy_": lambda row, i: row.copy_(torch.ones_like(row) * 3),
    "fill_": lambda row, i: row.fill_(2.0),
    "zero_": lambda row, i: row.add_(1).zero_(),
    "add_": lambda row, i: row.add_(torch.ones_like(row), alpha=2),
    "mul_": lambda row, i: row.add_(1).mul_(3),
    "sigmoid_": lambda row, i: row.sigmoid_(),
    "addcmul_": lambda row, i: row.addcmul_(torch.ones_like(row), torch.ones_like(row), value=2),
    "clamp_": lambda row, i: row.clamp_(0.5, 2),
    "tril_": lambda row, i: row.view(2, 2).tril_() if row.is_contiguous() else row.add_(1),
    "cumsum_": lambda row, i: row.add_(1).cumsum_(0),
    "uniform-free set": lambda row, i: row.__setitem__(slice(1, 3), 9.0),
    "foreach_add_": lambda row, i: torch._foreach_add_([row], 1.0),
    "out=": lambda row, i: torch.add(torch.ones_like(row), 1, out=row),
    "out= reduction": lambda row, i: torch.sum(torch.ones(4, 3, device=row.device), 1, out=row),
    "out= matmul": lambda row, i: torch.mv(row.new_ones(4, 3), row.new_ones(3), out=row),
}  # fmt: skip

TARGETS = {
    "row": lambda b: b[1],
    "column": lambda b: b[:, 2],
    "step": lambda b: b.flatten()[1::3][:4],
    "diagonal": lambda b: b.diagonal(),
    "transposed": lambda b: b.t()[1],
    "strided": lambda b: b.as_strided((4,), (2,), 3),
    "narrow": lambda b: b.narrow(0, 2, 1)[0],
    "unfold": lambda b: b[3].unfold(0, 2, 2).reshape(-1) if b.is_contiguous() else b[3],
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("write", WRITES)
def test_viw_07_writes_reach_the_base_through_every_view(write, target):
    def program(d):
        b = torch.zeros(4, 4, device=d)
        WRITES[write](TARGETS[target](b), torch.tensor([3, 2, 3], device=d))
        return [b]

    both(program)


def test_viw_08_scatter_into_zeros_like_a_permuted_tensor():
    def program(d):
        x = torch.arange(60.0, device=d).remainder(17).add(1).view(2, 6, 5).permute(0, 2, 1)
        z = torch.zeros_like(x)
        values, indices = x.topk(2)
        return [z.scatter_(-1, indices, values), torch.ones_like(x), torch.empty_like(x).fill_(3)]

    both(program)


OPTIMIZERS = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ASGD",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
]


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_viw_10_optimizers_move_non_contiguous_parameters(name, foreach):
    start, grad = torch.randn(10, 5), torch.randn(10, 5)
    results = []
    for device, layout in [("cpu", "rows"), ("tpu", "rows"), ("tpu", "columns")]:
        p = start.clone().to(device)
        p = (p.t().contiguous().t() if layout == "columns" else p).requires_grad_()
        optimizer = getattr(torch.optim, name)([p], lr=0.01, foreach=foreach)
        for _ in range(3):
            p.grad = torch.empty_like(p).copy_(grad)
            optimizer.step()
        results.append(p.detach().cpu())
    assert not torch.equal(results[0], start)
    assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)
    assert_close(results[2], results[1], rtol=0, atol=0)


@pytest.mark.parametrize(
    "base, view",
    [([[0, 0, 1, 1], [1, 1, 1, 1]], torch.t), ([[1], [0], [1], [1]], lambda m: m.expand(4, 2))],
)
def test_viw_11_masks_that_are_views(base, view):
    def program(d):
        m = view(torch.tensor(base, dtype=torch.bool, device=d))
        x = torch.arange(8.0, device=d).view(4, 2)
        return [
            torch.zeros(4, 2, device=d).masked_fill_(m, 1),
            x[m],
            torch.where(m, x, -x),
            x.masked_scatter(m, -x),
        ]

    both(program)


def test_viw_11_broadcast_mask():
    def program(d):
        m = torch.arange(72, device=d).view(8, 1, 9) % 3 == 0
        return [torch.zeros(8, 4, 9, device=d).masked_fill_(m, 1)]

    both(program)


@pytest.mark.parametrize(
    "f", [torch.stack, torch.cat, torch.hstack, torch.vstack, torch.dstack, torch.column_stack]
)
def test_viw_13_joins_of_slices_of_one_tensor(f):
    t = torch.arange(1.0, 9)
    assert_matches_cpu(lambda t: f((t[:4], t[4:])), t)
    assert_matches_cpu(lambda t: f((t[::2], t[1::2], t[:4].flip(0))), t)


# These take more than one argument, or give a dtype or a pair of which the test knows nothing;
# jiterator is CUDA's.
NOT_PLAIN = re.compile("polygamma|chalf|fill|prelu|threshold|frexp|jiterator")


def unary_operators() -> list[str]:
    from torch.testing._internal.common_methods_invocations import unary_ufuncs

    return sorted(
        {
            u.name
            for u in unary_ufuncs
            if torch.float32 in u.dtypes
            and not u.variant_test_name
            and not NOT_PLAIN.search(u.name)
        }
    )


@pytest.mark.parametrize("name", unary_operators())
def test_viw_14_unary_operators_honour_offset_and_stride(name):
    from torch.testing._internal.common_methods_invocations import unary_ufuncs

    op = next(u for u in unary_ufuncs if u.name == name)
    x = torch.tensor([0.3, 0.9, 0.15, 0.45, 0.6, 0.75, 0.2, 0.8])
    if op.domain[0] is not None and op.domain[0] >= 1:
        x = x + 1
    xt = x.to("tpu")
    for view in (
        lambda x: x[2:],
        lambda x: x[1::2],
        lambda x: x.view(2, 4).t()[1:],
        lambda x: x[3],
    ):
        got = op(view(xt))
        assert_close(got.cpu(), op(view(x)), equal_nan=True, rtol=1e-4, atol=1e-5)
        if isinstance(got, torch.Tensor) and op.supports_out and got.dtype == torch.float32:
            base = torch.zeros(2, *got.shape, device="tpu")
            op.get_op()(view(xt), out=base[1])
            assert_close(
                base[1], got, equal_nan=True
            )  # XLA may vectorize the strided write otherwise
            assert base[0].sum().item() == 0


def test_viw_16_many_element_writes_keep_their_order():
    x = torch.zeros(3, device="tpu")
    x[1] = 1
    x[2] = 3
    assert x.tolist() == [0, 1, 3]
    generator = torch.Generator().manual_seed(3)
    where = torch.randint(0, 20, (300,), generator=generator).tolist()
    a, b = torch.zeros(4, 5), torch.zeros(4, 5, device="tpu")
    for value, at in enumerate(where):
        a[at // 5, at % 5] = value
        b[at // 5, at % 5] = value
    assert torch.equal(a, b.cpu())


@pytest.mark.parametrize("non_blocking", [False, True])
def test_viw_17_host_tensor_into_a_strided_slice(non_blocking):
    x = torch.tensor([[1.0, 2], [3, 4], [5, 6]], device="tpu")
    x[1:, 1] = torch.tensor([-1.0, -1])
    assert x.tolist() == [[1, 2], [3, -1], [5, -1]]
    x.t()[0, ::2].copy_(torch.tensor([7, 8]), non_blocking=non_blocking)
    assert x.tolist() == [[7, 2], [3, -1], [8, -1]]


def test_viw_19_non_blocking_upload_does_not_read_reused_memory():
    moved = []
    for i in range(100):
        host = torch.full((257,), float(i))
        moved.append(host.to("tpu", non_blocking=True))
        host.fill_(-1)
        del host
    for i, x in enumerate(moved):
        assert x.min().item() == i and x.max().item() == i


def test_viw_20_device_values_into_indexed_places_of_a_host_tensor():
    r = torch.zeros(3, 3, 2)
    for i in range(3):
        for j in range(3):
            r[i][j] = torch.full((2,), 10.0 * i + j, device="tpu")
    assert r[:, :, 0].tolist() == [[0, 1, 2], [10, 11, 12], [20, 21, 22]]
    r[:, 1].copy_(torch.arange(6.0, device="tpu").view(2, 3).t())
    assert r[:, 1].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_viw_22_clones_of_different_slices():
    x = torch.arange(256.0, device="tpu").view(4, 64)
    assert [x.narrow(0, i, 1).clone()[0, 0].item() for i in (0, 2, 3, 1)] == [0, 128, 192, 64]
    assert [x[:, i].clone()[1].item() for i in (0, 63, 5)] == [64, 127, 69]
    assert [x.narrow(0, i, 1).cpu()[0, 0].item() for i in (0, 2, 3)] == [0, 128, 192]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.select(0, 2),
        lambda x: x.narrow(0, 1, 2),
        lambda x: x[::3],
        lambda x: x.view(3, 2).diagonal(),
        lambda x: x.unfold(0, 2, 2)[1],
        lambda x: x.view(2, 3).t()[1:],
        lambda x: x.view(1, 6).expand(1, 6)[:, 4:],
        lambda x: x.as_strided((2,), (3,), 2),
        lambda x: x.view(torch.int32).view(torch.float32)[5:],
        lambda x: x.split(4)[1],
        lambda x: x.chunk(3)[2],
        lambda x: x.unsqueeze(0).squeeze(0)[1],
        lambda x: x.view(2, 3).movedim(0, 1)[2],
        lambda x: torch.view_as_complex(x.view(3, 2)).real[1:],
    ],
)
def test_viw_23_copy_into_a_view_writes_only_there(view):
    def program(d):
        x = torch.arange(6.0, device=d)
        view(x).copy_(torch.tensor(9.0, device=d))
        y = torch.arange(6.0, device=d)
        view(y).copy_(torch.tensor(8.0))
        return [x, y]

    both(program)


@pytest.mark.parametrize("width", [1, 3, 100, 127, 129])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_viw_25_row_slices_of_any_width(width, dtype):
    x = torch.randn(4, width).to(dtype)
    for view in (lambda x: x[1:], lambda x: x[1:, min(3, width - 1) :], lambda x: x[::2, ::3]):
        assert_matches_cpu(lambda x, v=view: v(x) + v(x), x)


def test_viw_26_products_of_strided_inputs_with_an_odd_offset():
    base = torch.randn(20000)

    def strided(b):
        return b.as_strided((2, 4, 8, 16), (512, 128, 16, 1), 997)

    assert_matches_cpu(lambda b: strided(b) @ strided(b).mT, base)
    assert_matches_cpu(
        lambda b: F.scaled_dot_product_attention(strided(b), strided(b), strided(b)), base
    )
    b = base.to("tpu")
    q = strided(b)
    assert_close(q @ q.mT, q.clone() @ q.clone().mT, rtol=0, atol=0)


def test_viw_28_writes_to_expanded_tensors():
    t = torch.tensor([[0.0], [1.0]], device="tpu").expand(2, 4)
    m = torch.tensor([[False, True, False, False], [False] * 4], device="tpu")
    assert t.masked_fill(m, 3).tolist() == [[0, 3, 0, 0], [1, 1, 1, 1]]
    for write in (
        lambda: t.add_(1),
        lambda: t.copy_(torch.ones(2, 4)),
        lambda: t.masked_fill_(m, 3),
        lambda: t.fill_(3) if False else t.mul_(2),
    ):
        with pytest.raises(RuntimeError, match="single memory location"):
            write()
    assert t.tolist() == [[0] * 4, [1] * 4]


def test_viw_29_copies_that_broadcast_or_start_in_the_second_dim():
    def program(d):
        x = torch.zeros(2, 3, 4, device=d)
        x.transpose(0, 2)[1:3].copy_(torch.full((3, 2), 7.0, device=d))
        y = torch.zeros(2, 3, 4, device=d)
        y[:, 1:, 2:] = torch.arange(2.0, device=d)
        return [torch.zeros(2, 3, 4, device=d).copy_(torch.arange(4, device=d)), x, y]

    both(program)


def test_viw_31_linear_with_a_transposed_weight_and_a_strided_bias():
    w, b, x = (torch.randn(s, requires_grad=True) for s in [(6, 8), (16,), (3, 6)])
    assert_matches_cpu(lambda w, b, x: F.linear(x, w.t(), b[::2]), w, b, x)
    wt, bt, xt = (t.detach().to("tpu") for t in (w, b, x))
    assert_close(
        F.linear(xt, wt.t(), bt[::2]), F.linear(xt, wt.t().contiguous(), bt[::2].contiguous())
    )
