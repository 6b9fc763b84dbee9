# SPDX-License-Identifier: Apache-2.0
"""Calls at which a lowering or PyTorch's meta function once gave something else than CPU."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from torch_tpu.testing import assert_same_error
from torch_tpu.testing.against_cpu import assert_matches_cpu


def test_logcumsumexp_of_complex_matches_cpu():
    x = torch.randn(4, 9, dtype=torch.complex64)

    def exponentials(x):  # CPU's angles may differ by 2 pi
        return torch.exp(torch.logcumsumexp(x, 1)), torch.logcumsumexp(x, 1).real

    assert_matches_cpu(exponentials, x, rtol=1e-4, atol=1e-4)
    assert_matches_cpu(lambda x: torch.logcumsumexp(x, 0), x[:2].to(torch.complex128))


def test_logcumsumexp_of_complex_keeps_infinities_and_nan():
    inf, nan = torch.inf, torch.nan
    x = torch.tensor([complex(-inf, 0), 1 + 2j, -1 - 3j, complex(inf, 0), complex(nan, 0)])
    assert_matches_cpu(lambda x: torch.logcumsumexp(x, 0), x)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("x, y", [(torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16)])
def test_huber_loss_of_two_dtypes_has_the_first(reduction, x, y):
    assert_matches_cpu(
        lambda a, b: F.huber_loss(a, b, reduction=reduction),
        torch.randn(5, dtype=x),
        torch.randn(5, dtype=y),
        rtol=2e-2,
        atol=2e-2,
    )


@pytest.mark.parametrize("target", [torch.tensor(1), torch.tensor([1])])
def test_multi_margin_loss_of_one_sample_has_its_targets_shape(target):
    x = torch.randn(4, requires_grad=True)
    assert_matches_cpu(lambda x, t: F.multi_margin_loss(x, t, reduction="none"), x, target)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_nansum_over_no_dims_is_over_all(keepdim, dtype):
    x = torch.tensor([[1.0, 2, torch.nan], [3, 4, 5]]).nan_to_num(7).to(dtype)
    assert_matches_cpu(lambda x: torch.nansum(x, dim=[], keepdim=keepdim), x)


def test_geqrf_writes_into_empty_outputs():
    def f(a):
        out = a.new_empty(0), a.new_empty(0)
        torch.geqrf(a, out=out)
        return out

    assert_matches_cpu(f, torch.randn(4, 3))


def test_native_batch_norm_legit_writes_into_empty_outputs():
    def f(x, mean, var):
        outs = {k: x.new_empty(0) for k in ("out", "save_mean", "save_invstd")}
        torch.ops.aten._native_batch_norm_legit.out(
            x, None, None, mean, var, True, 0.1, 1e-5, **outs
        )
        return list(outs.values())

    assert_matches_cpu(f, torch.randn(4, 3, 5), torch.zeros(3), torch.ones(3))


@pytest.mark.parametrize(
    "shape, dim, source", [((3, 2), 0, (0, 2)), ((3, 2), 1, (3, 0)), ((0, 2), 0, (0, 2))]
)
def test_index_add_of_no_rows_adds_nothing(shape, dim, source):
    index = torch.empty(0, dtype=torch.int64)
    x, y = torch.randn(shape, requires_grad=True), torch.randn(source)
    assert_matches_cpu(lambda x, i, y: x.index_add(dim, i, y), x, index, y)
    assert_matches_cpu(lambda x, i, y: x.clone().index_add_(dim, i, y), x, index, y)


def test_index_add_refuses_a_source_of_another_length():
    assert_same_error(
        lambda d: torch.ones(3, 2, device=d).index_add(
            0, torch.empty(0, dtype=torch.int64, device=d), torch.ones(5, 2, device=d)
        )
    )


def test_a_result_of_complex32_is_refused_by_name():
    x = torch.ones(3, dtype=torch.float16, device="tpu")
    with pytest.raises(NotImplementedError, match="aten::add.Tensor is not .* complex32"):
        x + torch.tensor(1j, device="tpu")
    with pytest.raises(NotImplementedError, match="aten::mul.Tensor is not .* complex32"):
        x * 1j


@pytest.mark.parametrize(
    "x, weight, bias, groups",
    [
        ((1, 4, 8), (3, 2, 3), None, 2),
        ((1, 4, 8), (4, 3, 3), None, 2),
        ((1, 4, 8), (4, 2, 3), None, 0),
        ((1, 4, 8), (4, 2, 3), None, -1),
        ((1, 4, 8), (2, 1, 3), None, 4),
        ((4, 8), (3, 2, 3), None, 2),
        ((1, 4, 8), (4, 2, 3), 5, 2),
    ],
)
def test_convolution_of_wrong_groups_reads_as_on_cpu(x, weight, bias, groups):
    for f in (F.conv1d, F.conv_transpose1d):

        def call(d, f=f):
            b = None if bias is None else torch.ones(bias, device=d)
            return f(torch.ones(x, device=d), torch.ones(weight, device=d), b, groups=groups)

        try:
            call("cpu")
        except RuntimeError:
            assert_same_error(call)


def test_native_batch_norm_trains_without_running_statistics():
    x = torch.randn(4, 3)
    want = torch.ops.aten.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    got = torch.ops.aten.native_batch_norm(x.to("tpu"), None, None, None, None, True, 0.1, 1e-5)
    for a, b in zip(got, want, strict=True):
        assert_close(a.cpu(), b)


@pytest.mark.parametrize("values", [[1.0, 2.0], [3.0], []])
def test_isin_of_a_number_is_a_scalar(values):
    assert_matches_cpu(lambda x: torch.isin(1, x), torch.tensor(values))
