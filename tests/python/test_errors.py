# SPDX-License-Identifier: Apache-2.0
"""Wrong calls are refused as CPU refuses them: same exception type, same text; and the process goes
on working.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torch_tpu import compile as tpu_compile
from torch_tpu.testing import assert_same_error

tpu_compile.register()

REFUSED = {
    "roll of no shifts": lambda d: torch.roll(torch.ones(3, device=d), ()),  # ended the process
    "linear bias": lambda d: F.linear(
        torch.ones(2, 3, device=d), torch.ones(4, 3, device=d), torch.ones(5, device=d)
    ),
    "histc bins": lambda d: torch.histc(torch.ones(3, device=d), 0),
    "arange nan": lambda d: torch.arange(0, float("nan"), device=d),
    "bincount float": lambda d: torch.bincount(torch.ones(3, device=d)),
    "repeat_interleave negative": lambda d: torch.repeat_interleave(torch.ones(3, device=d), -1),
    "tile negative": lambda d: torch.tile(torch.ones(3, device=d), (-1,)),
    "layer_norm dtypes": lambda d: F.layer_norm(
        torch.ones(2, 3, device=d, dtype=torch.float16),
        (3,),
        torch.ones(3, device=d, dtype=torch.float64),
    ),
    "gather out overlap": lambda d: torch.gather(
        torch.ones(3, device=d),
        0,
        torch.zeros(3, dtype=torch.int64, device=d),
        out=torch.ones(1, device=d).expand(3),
    ),
    "add": lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
    "mm": lambda d: torch.ones(3, 4, device=d) @ torch.ones(3, 4, device=d),
    "addmm": lambda d: torch.addmm(
        torch.ones(5, 5, device=d), torch.ones(3, 4, device=d), torch.ones(4, 5, device=d)
    ),
    "addmm dtype": lambda d: torch.addmm(
        torch.ones(3, 5, device=d),
        torch.ones(3, 4, device=d),
        torch.ones(4, 5, device=d, dtype=torch.float64),
    ),
    "softmax dim": lambda d: torch.softmax(torch.ones(3, 4, device=d), 5),
    "softmax int": lambda d: torch.softmax(torch.ones(3, 4, device=d, dtype=torch.int64), 0),
    "cat": lambda d: torch.cat([torch.ones(3, 4, device=d), torch.ones(3, 5, device=d)]),
    "sum dim": lambda d: torch.ones(3, 4, device=d).sum(3),
    "mean int": lambda d: torch.ones(3, 4, device=d, dtype=torch.int64).mean(),
    "max empty": lambda d: torch.ones(0, device=d).max(),
    "amax empty": lambda d: torch.ones(0, 3, device=d).amax(0),
    "view": lambda d: torch.ones(3, 4, device=d).view(5),
    "index": lambda d: torch.ones(3, 4, device=d)[5],
    "inplace bcast": lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3, device=d)),
    "int add_ float": lambda d: torch.ones(3, device=d, dtype=torch.int64).add_(1.5),
    "expand add_": lambda d: torch.ones(1, device=d).expand(3).add_(1),
    "out dtype": lambda d: torch.add(
        torch.ones(3, device=d), 1, out=torch.ones(3, device=d, dtype=torch.int64)
    ),
    "conv": lambda d: F.conv2d(torch.ones(1, 3, 5, 5, device=d), torch.ones(2, 4, 3, 3, device=d)),
    "linear": lambda d: F.linear(torch.ones(1, 3, device=d), torch.ones(2, 4, device=d)),
    "ce": lambda d: F.cross_entropy(torch.ones(2, 3, device=d), torch.tensor([0, 1, 2], device=d)),
    "bool sub": lambda d: (
        torch.ones(3, device=d, dtype=torch.bool) - torch.ones(3, device=d, dtype=torch.bool)
    ),
    "topk": lambda d: torch.ones(3, device=d).topk(5),
    "scatter dtype": lambda d: torch.zeros(3, device=d).scatter_(
        0, torch.tensor([0], device=d), torch.ones(1, device=d, dtype=torch.float64)
    ),
    "matmul": lambda d: torch.ones(3, 4, device=d).matmul(torch.ones(5, device=d)),
    "bmm": lambda d: torch.bmm(torch.ones(3, 4, 5, device=d), torch.ones(3, 4, 5, device=d)),
    "layernorm": lambda d: F.layer_norm(torch.ones(3, 4, device=d), (5,)),
    "item": lambda d: torch.ones(3, device=d).item(),
    "bool": lambda d: bool(torch.ones(3, device=d)),
    "reshape": lambda d: torch.ones(3, 4, device=d).reshape(7, -1),
    "where": lambda d: torch.where(
        torch.ones(3, device=d, dtype=torch.bool), torch.ones(4, device=d), 0.0
    ),
    "lerp": lambda d: torch.lerp(
        torch.ones(3, device=d), torch.ones(3, device=d, dtype=torch.float64), 0.5
    ),
    "cumsum": lambda d: torch.ones(3, device=d).cumsum(2),
    "clamp none": lambda d: torch.ones(3, device=d).clamp(),
    "neg arange": lambda d: torch.arange(5, 1, 1, device=d),
    "pool": lambda d: F.max_pool2d(torch.ones(1, 1, 2, 2, device=d), 5),
    "bn": lambda d: F.batch_norm(torch.ones(1, 3, device=d), None, None, training=True),
    "dropout": lambda d: F.dropout(torch.ones(3, device=d), 1.5),
    "uniform": lambda d: torch.ones(3, device=d).uniform_(2, 1),
    "tril": lambda d: torch.ones(3, device=d).tril(),
    "flip": lambda d: torch.ones(3, device=d).flip(0, 0),
    "index_add": lambda d: torch.ones(3, device=d).index_add_(
        0, torch.tensor([0, 1], device=d), torch.ones(3, device=d)
    ),
    "repeat": lambda d: torch.ones(3, 4, device=d).repeat(2),
    "std": lambda d: torch.ones(3, device=d, dtype=torch.int64).std(),
    "mse": lambda d: F.mse_loss(torch.ones(3, device=d), torch.ones(4, device=d)),
    "div int_": lambda d: torch.ones(3, device=d, dtype=torch.int64).div_(2),
    "adaptive pool": lambda d: F.adaptive_avg_pool2d(torch.ones(4, device=d), 2),
    "conv bias": lambda d: F.conv1d(
        torch.ones(1, 1, 4, device=d), torch.ones(1, 1, 2, device=d), torch.ones(3, device=d)
    ),
    "conv padding": lambda d: F.conv1d(
        torch.ones(1, 1, 4, device=d), torch.ones(1, 1, 2, device=d), padding=-1
    ),
    "grid": lambda d: F.grid_sample(
        torch.ones(1, 1, 2, 2, device=d), torch.ones(1, 2, 2, 3, device=d), align_corners=False
    ),
    "fold": lambda d: F.fold(torch.ones(1, 4, 8, device=d), (4, 4), 2),
    "unfold": lambda d: F.unfold(torch.ones(1, 1, 2, 2, device=d), 3),
    "pixel": lambda d: F.pixel_shuffle(torch.ones(1, 3, 2, 2, device=d), 2),
    "stack": lambda d: torch.stack([torch.ones(2, device=d), torch.ones(3, device=d)]),
    "roll": lambda d: torch.ones(2, 2, device=d).roll((1, 2), (0,)),
    "trace": lambda d: torch.ones(2, device=d).trace(),
    "dot": lambda d: torch.dot(torch.ones(2, device=d), torch.ones(3, device=d)),
    "index_select rank": lambda d: torch.ones(3, device=d).index_select(
        0, torch.tensor([[0]], device=d)
    ),
    "index_put shape": lambda d: torch.ones(3, device=d).index_put_(
        (torch.tensor([0, 1], device=d),), torch.ones(3, device=d)
    ),
    "bucketize": lambda d: torch.bucketize(torch.ones(2, device=d), torch.ones(2, 2, device=d)),
    "gelu": lambda d: F.gelu(torch.ones(2, device=d), approximate="x"),
    "frexp": lambda d: torch.frexp(torch.tensor([1], device=d)),
    "solve": lambda d: torch.linalg.solve(torch.eye(2, device=d), torch.ones(3, device=d)),
    "multinomial many": lambda d: torch.multinomial(torch.ones(2, device=d), 5),
    "multinomial none": lambda d: torch.multinomial(torch.ones(2, device=d), 0),
    "random from": lambda d: torch.ones(2, device=d).random_(3, 1),
    "normal std": lambda d: torch.ones(2, device=d).normal_(0, -1),
    "exponential": lambda d: torch.ones(2, device=d).exponential_(-1),
    "geometric": lambda d: torch.ones(2, device=d).geometric_(2),
    "cauchy": lambda d: torch.ones(2, device=d).cauchy_(0, -1),
    "log_normal": lambda d: torch.ones(2, device=d).log_normal_(0, -1),
    "mul_ of integers": lambda d: torch.ones(3, device=d, dtype=torch.int64).mul_(1.5),
    "fmod_ of integers": lambda d: torch.ones(3, device=d, dtype=torch.int64).fmod_(1.5),
    "fmod_ complex": lambda d: torch.ones(3, device=d, dtype=torch.int64).fmod_(1j),
    "aten add_ complex": lambda d: torch.ops.aten.add_.Scalar(torch.ones(3, device=d), 1j),
    "copysign_": lambda d: torch.ones(3, device=d, dtype=torch.uint8).copysign_(1.5),
    "floor_divide_ type": lambda d: torch.ones(3, device=d, dtype=torch.int64).floor_divide_(1.5),
    "floor_divide_ shape": lambda d: torch.ones(2, device=d).floor_divide_(
        torch.ones(3, 2, device=d)
    ),
    "bernoulli_ dtype": lambda d: torch.ones(2, device=d).bernoulli_(
        torch.ones(2, device=d, dtype=torch.int64)
    ),
    "bernoulli_ shape": lambda d: torch.ones(2, device=d).bernoulli_(torch.ones(3, device=d)),
    "put_ index": lambda d: torch.ones(2, device=d).put_(
        torch.zeros(2, device=d), torch.ones(2, device=d)
    ),
    "put_ source": lambda d: torch.ones(2, device=d).put_(
        torch.tensor([0], device=d), torch.tensor([0], device=d)
    ),
    "masked_scatter_": lambda d: torch.ones(2, device=d).masked_scatter_(
        torch.ones(2, device=d) > 0, torch.tensor([0], device=d)
    ),
    "exponential_ of integers": lambda d: torch.ones(2, dtype=torch.int64, device=d).exponential_(),
    "hardtanh_": lambda d: F.hardtanh_(torch.ones(2, dtype=torch.uint8, device=d)),
    "set_ beyond": lambda d: torch.ones(2, dtype=torch.int64, device=d).set_(
        torch.ones(2, dtype=torch.bool, device=d)
    ),
    "geqrf of a number": lambda d: torch.geqrf(torch.tensor(1.5, device=d)),  # ended the process
    "cross of two dtypes": lambda d: torch.linalg.cross(
        torch.ones(5, 3, device=d), torch.ones(5, 3, device=d, dtype=torch.float64)
    ),
    "cross of bool": lambda d: torch.linalg.cross(*torch.ones(2, 5, 3, device=d).bool()),
    "cdist of two dtypes": lambda d: torch.cdist(
        torch.ones(5, 3, device=d), torch.ones(5, 3, device=d, dtype=torch.float64), p=0.0
    ),
    "cdist of integers": lambda d: torch.cdist(*torch.ones(2, 5, 3, device=d).long()),
    "cholesky of integers": lambda d: torch.cholesky(torch.eye(3, device=d).long()),
    "cholesky of a vector": lambda d: torch.cholesky(torch.ones(3, device=d)),
    "cholesky_inverse of bool": lambda d: torch.cholesky_inverse(torch.eye(3, device=d).bool()),
    "geqrf of integers": lambda d: torch.geqrf(torch.eye(3, device=d).long()),
    "lu of integers": lambda d: torch.linalg.lu_factor_ex(torch.eye(3, device=d).long()),
    "matrix_exp of integers": lambda d: torch.matrix_exp(torch.eye(3, device=d).long()),
    "matrix_exp of a vector": lambda d: torch.matrix_exp(torch.ones(3, device=d)),
    "cauchy_ of integers": lambda d: torch.ones(2, dtype=torch.int64, device=d).cauchy_(),
    "geometric_ of bool": lambda d: torch.ones(2, dtype=torch.bool, device=d).geometric_(0.5),
    "arange of bool": lambda d: torch.arange(2, dtype=torch.bool, device=d),
    "linspace of bool": lambda d: torch.linspace(0, 1, 5, dtype=torch.bool, device=d),
    "clamp_min of complex": lambda d: torch.clamp_min(
        torch.ones(2, device=d, dtype=torch.complex64), torch.ones(2, device=d)
    ),
    "bitwise_not of bfloat16": lambda d: torch.ones(2, device=d).bfloat16().bitwise_not(),
    "bitwise_and of bfloat16": lambda d: torch.bitwise_and(*torch.ones(2, 3, device=d).bfloat16()),
    "cross_entropy of planes": lambda d: F.cross_entropy(
        torch.ones(2, 3, 1, 3, device=d), torch.ones(2, 1, 2, device=d).long()
    ),
    "cross_entropy of planes, dtype": lambda d: F.cross_entropy(
        torch.ones(2, 3, 1, 2, device=d), torch.ones(2, 1, 2, device=d, dtype=torch.uint8)
    ),
    "complex of bfloat16": lambda d: torch.complex(*torch.ones(2, 3, device=d).bfloat16()),
    "complex shapes": lambda d: torch.complex(torch.ones(5, 6, device=d), torch.ones(5, device=d)),
    "floor_divide shapes": lambda d: torch.ones(6, device=d).floor_divide(torch.ones(5, device=d)),
    "masked_fill shapes": lambda d: torch.ones(6, device=d).masked_fill(
        torch.ones(5, device=d).bool(), 1
    ),
    "masked_scatter shapes": lambda d: torch.ones(6, device=d).masked_scatter(
        torch.ones(5, device=d).bool(), torch.ones(6, device=d)
    ),
    "conv rank": lambda d: torch.conv1d(
        torch.ones(1, 3, 4, device=d), torch.ones(3, 3, 3, 3, device=d)
    ),
    "conv stride": lambda d: F.conv_transpose2d(
        torch.ones(1, 3, 4, 4, device=d), torch.ones(3, 3, 3, 3, 3, device=d), stride=(2, 2)
    ),
    "max_pool3d stride": lambda d: F.max_pool3d(  # ended the process
        torch.ones(1, 2, 3, 6, 5, device=d), 3, stride=0
    ),
    "max_pool3d kernel": lambda d: F.max_pool3d(torch.ones(1, 2, 3, 6, 5, device=d), -1),
    "as_strided_copy": lambda d: torch.as_strided_copy(  # ended the process
        torch.ones(16, device=d), (-1, 2), (7, 1)
    ),
    "attention": lambda d: F.scaled_dot_product_attention(
        torch.ones(4, 4, 3, 9, device=d), *torch.ones(2, 4, 4, 6, 8, device=d)
    ),
    "binary_cross_entropy dtypes": lambda d: F.binary_cross_entropy(
        torch.ones(3, device=d), torch.ones(3, device=d, dtype=torch.float64)
    ),
    "binary_cross_entropy_with_logits dtypes": lambda d: F.binary_cross_entropy_with_logits(
        torch.ones(3, device=d), torch.ones(3, device=d, dtype=torch.int64)
    ),
    "grid_sample dtypes": lambda d: F.grid_sample(
        torch.ones(1, 1, 3, 3, device=d), torch.ones(1, 2, 2, 2, device=d, dtype=torch.float64)
    ),
    "index_select of a number": lambda d: torch.tensor(1.0, device=d).index_select(
        0, torch.tensor([0, 0], device=d)
    ),
    "put_ count": lambda d: torch.ones(3, 3, device=d).put_(
        torch.tensor([1], device=d), torch.ones(3, device=d)
    ),
    "index_put_ index": lambda d: torch.ones(3, device=d).index_put_(
        (torch.tensor([1 + 0j], device=d),), torch.ones(1, device=d)
    ),
    "mse_loss of complex": lambda d: F.mse_loss(*torch.ones(2, 3, device=d).to(torch.complex64)),
    "pad reflect": lambda d: F.pad(torch.ones(3, 3, 5, 5, device=d), (9, 2, 0, 1), "reflect"),
    "bucketize of complex": lambda d: torch.bucketize(
        torch.tensor(1j, device=d), torch.ones(3, device=d)
    ),
    "kthvalue of bool": lambda d: torch.ones(3, device=d).bool().kthvalue(1),
    "kthvalue of nothing": lambda d: torch.ones(3, 0, device=d).kthvalue(1),
    "median of bool": lambda d: torch.ones(3, device=d).bool().median(),
    "nanmedian of complex": lambda d: torch.ones(3, device=d, dtype=torch.complex64).nanmedian(),
    "uint8 fill": lambda d: torch.zeros(3, device=d, dtype=torch.uint8).fill_(300),
}

# What only the values show: found out on the device and raised when the host next waits.
OUT_OF_RANGE = {
    "gather": lambda d: torch.gather(torch.ones(3, 4, device=d), 1, torch.tensor([[7]], device=d)),
    "index": lambda d: torch.ones(3, 4, device=d)[torch.tensor([1, 9, 8], device=d)],
    "index negative": lambda d: torch.ones(3, 4, device=d)[torch.tensor([-4], device=d)],
    "index of the second": lambda d: torch.ones(3, 4, device=d)[:, torch.tensor([9], device=d)],
    "index of two": lambda d: torch.ones(3, 4, 5, device=d)[
        torch.tensor([1], device=d), :, torch.tensor([5], device=d)
    ],
    "index_select rows": lambda d: torch.index_select(
        torch.ones(3, 4, device=d), 0, torch.tensor([7], device=d)
    ),
    "index_select columns": lambda d: torch.index_select(
        torch.ones(3, 4, device=d), 1, torch.tensor([-1], device=d)
    ),
    "index_select of nothing": lambda d: torch.index_select(
        torch.ones(3, 0, device=d), 1, torch.tensor([0], device=d)
    ),
    "take": lambda d: torch.take(torch.ones(3, device=d), torch.tensor([5], device=d)),
    "put_": lambda d: torch.ones(3, device=d).put_(
        torch.tensor([-5], device=d), torch.ones(1, device=d)
    ),
    "embedding": lambda d: F.embedding(torch.tensor([9], device=d), torch.ones(3, 4, device=d)),
    "embedding negative": lambda d: F.embedding(
        torch.tensor([-1], device=d), torch.ones(3, 4, device=d)
    ),
    "embedding_bag": lambda d: F.embedding_bag(
        torch.tensor([[0, 9]], device=d), torch.ones(3, 4, device=d)
    ),
    "embedding_bag max": lambda d: F.embedding_bag(
        torch.tensor([[0, 9]], device=d), torch.ones(3, 4, device=d), mode="max"
    ),
    "embedding_bag offsets": lambda d: F.embedding_bag(
        torch.tensor([0, 1], device=d), torch.ones(3, 4, device=d), torch.tensor([0, 5], device=d)
    ),
    "cross_entropy": lambda d: F.cross_entropy(
        torch.ones(2, 3, device=d), torch.tensor([0, 7], device=d)
    ),
    "nll_loss planes": lambda d: F.nll_loss(
        torch.ones(2, 3, 2, 2, device=d), torch.full((2, 2, 2), -1, device=d)
    ),
    "multilabel_margin_loss": lambda d: F.multilabel_margin_loss(
        torch.ones(2, 3, device=d), torch.tensor([[0, 7, 1], [0, 1, 2]], device=d)
    ),
    "scatter": lambda d: torch.zeros(3, device=d).scatter(0, torch.tensor([5], device=d), 1.0),
    "index_put": lambda d: torch.zeros(3, device=d).index_put(
        (torch.tensor([5], device=d),), torch.tensor(1.0, device=d)
    ),
    "index_add": lambda d: torch.zeros(3, device=d).index_add(
        0, torch.tensor([5], device=d), torch.ones(1, device=d)
    ),
    "index_add rows": lambda d: torch.zeros(3, 2, device=d).index_add(
        0, torch.tensor([5], device=d), torch.ones(1, 2, device=d)
    ),
    "index_copy": lambda d: torch.zeros(3, device=d).index_copy(
        0, torch.tensor([5], device=d), torch.ones(1, device=d)
    ),
    "max_unpool2d": lambda d: F.max_unpool2d(
        torch.ones(1, 1, 2, 2, device=d), torch.full((1, 1, 2, 2), 99, device=d), 2
    ),
    "one_hot negative": lambda d: F.one_hot(torch.tensor([0, -5], device=d)),
    "one_hot large": lambda d: F.one_hot(torch.tensor([0, 5], device=d), 3),
    "one_hot of no class": lambda d: F.one_hot(torch.tensor([0, 1], device=d), 0),
    "cholesky_ex": lambda d: torch.linalg.cholesky_ex(
        torch.stack([torch.eye(2), -torch.eye(2)]).to(d), check_errors=True
    ),
    "inv_ex": lambda d: torch.linalg.inv_ex(torch.zeros(2, 2, device=d), check_errors=True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_cpus_words(name):
    assert_same_error(REFUSED[name])
    assert (torch.ones(2, device="tpu") + 1).sum().item() == 4


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_value_out_of_range_is_named_at_the_next_wait(name):
    assert_same_error(OUT_OF_RANGE[name])
    assert torch.ones(2, device="tpu").sum().item() == 2


def test_index_out_of_range_in_a_compiled_graph_is_named():
    pick = torch.compile(lambda x, i: x[i] * 2, backend="tpu")
    pick(torch.ones(5, device="tpu"), torch.tensor([1], device="tpu"))
    with pytest.raises(IndexError, match="index 10 is out of bounds for dimension 0 with size 5"):
        pick(torch.ones(5, device="tpu"), torch.tensor([10], device="tpu")).cpu()


@pytest.mark.parametrize("num_classes", [-1, 4])
def test_one_hot(num_classes):
    index = torch.tensor([[0, 3], [2, 1]])
    expected = F.one_hot(index, num_classes)
    assert F.one_hot(index.to("tpu"), num_classes).cpu().equal(expected)
    compiled = torch.compile(lambda i: F.one_hot(i, 4) * 2, backend="tpu")
    assert compiled(index.to("tpu")).cpu().equal(F.one_hot(index, 4) * 2)


def test_mixed_devices_name_both():
    with pytest.raises(RuntimeError, match="found at least two devices, tpu:0 and cpu"):
        torch.ones(3, device="tpu") + torch.ones(3)


def test_missing_operator_names_operator_dtypes_shapes_and_the_way_out():
    with pytest.raises(NotImplementedError) as e:
        torch.linalg.eig(torch.randn(1, 3, 3, device="tpu"))
    for part in ("aten::linalg_eig", "Float[1, 3, 3]", "TORCH_TPU_HOST_FALLBACK"):
        assert part in str(e.value)


def test_faults_of_pytorchs_meta_functions_do_not_refuse_what_cpu_runs():
    # AttributeError: the bias that is not there is asked for its device.
    cell = torch.nn.LSTMCell(3, 4, bias=False)
    twin = torch.nn.LSTMCell(3, 4, bias=False)
    twin.load_state_dict(cell.state_dict())
    x = torch.randn(2, 3)
    for e, a in zip(cell(x), twin.to("tpu")(x.to("tpu")), strict=True):
        torch.testing.assert_close(a.cpu(), e, rtol=1e-4, atol=1e-5)

    # ZeroDivisionError: a mean over no rows.
    def gradient(device):
        x = torch.ones(0, 3, device=device, requires_grad=True)
        F.batch_norm(x, None, None, torch.ones(3, device=device), training=True).sum().backward()
        return x.grad

    assert gradient("tpu").cpu().shape == gradient("cpu").shape == (0, 3)


@pytest.mark.parametrize(
    "call, way_out",
    [
        (lambda: torch.sparse_coo_tensor([[0]], [1.0], (2,), device="tpu"), "to_dense"),
        (lambda: torch.eye(2).to_sparse().to("tpu"), "to_dense"),
        (lambda: torch.empty(2, dtype=torch.quint8, device="tpu"), "dequantize"),
        (lambda: torch.nested.nested_tensor([torch.ones(2)], device="tpu") * 2, "torch.jagged"),
    ],
)
def test_tensor_of_another_layout_is_refused_with_the_way_out(call, way_out):
    with pytest.raises(NotImplementedError, match=f"not implemented for tpu.*{way_out}"):
        call()


def test_set_grows_a_storage():  # it ended the process
    x = torch.ones(2, device="tpu", dtype=torch.int64)
    torch.ops.aten.set_.source_Tensor(x, torch.ones(3, 2, device="tpu"))
    assert x.shape == (3, 2) and x.untyped_storage().nbytes() == 48
    assert x.set_().numel() == 0 and x.resize_(2).fill_(3).tolist() == [3, 3]


def test_foreach_copy_of_lists_of_two_lengths_is_refused():  # it ends the process on CPU
    x = torch.ones(2, device="tpu")
    with pytest.raises(RuntimeError, match="same number of tensors, got 0 and 1"):
        torch.ops.aten._foreach_copy([], [x])


def test_storages_are_compared_as_on_cpu():
    x = torch.ones(4, device="tpu")
    assert x.is_set_to(x.view(4)) and not x.is_set_to(x[1:]) and not x.is_set_to(x.clone())


def test_slice_scatter_refuses_bounds_that_its_program_would_clamp():
    x, source = torch.zeros(6, device="tpu"), torch.ones(3, device="tpu")
    assert torch.slice_scatter(x, source, 0, 1, 4).tolist() == [0, 1, 1, 1, 0, 0]
    for bounds in ((-1, 6), (2, 6), (2, 4)):
        assert_same_error(lambda d, b=bounds: torch.slice_scatter(x.to(d), source.to(d), 0, *b))


def test_equal_compares_two_dtypes_by_their_promoted_values():
    x = torch.tensor([1, 2], device="tpu")
    assert x.equal(x.float()) and not x.equal(x.float() + 0.5)


def test_rank_that_nothing_refuses_is_an_internal_error_that_names_the_call():
    """PyTorch's meta function lets a matrix pass as the input of a pooling in three dimensions."""
    x = torch.ones(2, 3, device="tpu")
    with pytest.raises(RuntimeError, match=r"internal error .*_pool3d_backward of Float\[2, 3\], "):
        torch.ops.aten._adaptive_avg_pool3d_backward(x, x)
    assert (x + 1).sum().item() == 12


# Calls that PyTorch's Python functions never make: each ended the process.
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: torch.ops.aten.native_batch_norm(x, None, None, None, x[0], False, 0.1, 0.0),
            "running_mean and running_var must either both be None or neither be None",
        ),
        (
            lambda x: torch.ops.aten.native_batch_norm(x, None, None, None, None, False, 0.1, 0.0),
            "running_mean and running_var must be given",
        ),
        (
            lambda x: torch.ops.aten.native_group_norm(x, None, None, 2, 3, 1, 0, 1e-5),
            "Expected num groups to be greater than 0, got 0",
        ),
        (
            lambda x: torch.ops.aten.reflection_pad1d_backward(x, x, []),
            "padding size is expected to be 2, but got: 0",
        ),
        (
            lambda x: torch.ops.aten.max_pool3d_with_indices_backward(
                x[0, 0], x, [7], [1, 1], [], [1], False, x
            ),
            "max_pool3d: stride must either be omitted",
        ),
    ],
)
def test_a_call_below_pytorchs_own_checks_is_an_exception(call, text):
    with pytest.raises((RuntimeError, ValueError), match=text):
        call(torch.ones(2, 3, device="tpu"))


@pytest.mark.parametrize(
    "f",
    [
        lambda device: F.channel_shuffle(torch.ones(2, 4, 2, 2, device=device), 0),
        lambda device: torch.ops.aten.unfold_copy(torch.ones(2, 3, device=device), 0, 1, 0),
        lambda device: torch.ops.aten.unfold_copy(torch.ones(2, 3, device=device), 0, 9, 1),
        lambda device: torch.ops.aten.unfold_backward(
            torch.ones(2, 3, device=device), [2, 3], 0, 1 << 62, 1 << 62
        ),
        lambda device: torch.ops.aten.unfold_backward(
            torch.ones(2, 3, device=device), [1, -1], 0, 1, 1
        ),
        lambda device: torch.slice_scatter(
            torch.ones(2, 3, device=device), torch.ones(3, 3, device=device), 0
        ),
        lambda device: torch.diagonal_scatter(
            torch.ones(2, 3, device=device), torch.ones(3, device=device)
        ),
        lambda device: torch.special.i1(torch.ones(3, device=device, dtype=torch.complex64)),
        lambda device: torch.searchsorted(
            torch.ones(0, 3, device=device), torch.ones(2, device=device)
        ),
        lambda device: torch.searchsorted(
            torch.ones(2, 3, device=device), torch.ones(3, 2, device=device)
        ),
        lambda device: torch.searchsorted(torch.ones(2, 3, device=device), 1.0),
    ],
)
def test_numbers_that_shapes_follow_from_are_checked_first(f):  # some of these ended the process
    assert_same_error(f)


def test_select_scatter_refuses_an_index_that_its_program_would_clamp():
    x, row = torch.ones(2, 3), torch.zeros(3)
    for device in ("cpu", "tpu"):
        a, b = x.to(device), row.to(device)
        assert torch.select_scatter(a, b, 0, 1).sum().item() == 3  # the program is known now
        with pytest.raises(IndexError, match=r"index 2 out of range for tensor of size \[2, 3\]"):
            torch.select_scatter(a, b, 0, 2)
        with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice"):
            torch.select_scatter(a, a, 0, 0)
