# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools

import pytest
import torch
from torch.testing import assert_close, make_tensor

from torch_tpu.testing import assert_same_error, count_compiles
from torch_tpu.testing.against_cpu import assert_matches_cpu

nan, inf = torch.nan, torch.inf
EDGES = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.25, 1e-30, 3e38]
SMALL_INTS = [-7, -3, -2, -1, 1, 2, 3, 5]


def pairs(values, dtype):
    """Every value with every value, as two tensors."""
    a, b = zip(*itertools.product(values, values), strict=True)
    return torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)


DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int64,
    torch.bfloat16,
    torch.float64,
    torch.complex64,
]
BINARY = [
    torch.add,
    torch.sub,
    torch.mul,
    torch.div,
    torch.fmod,
    torch.remainder,
    torch.floor_divide,
    torch.maximum,
    torch.minimum,
    torch.fmax,
    torch.fmin,
    torch.pow,
    lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    lambda a, b: torch.div(a, b, rounding_mode="floor"),
]


@pytest.mark.parametrize("f", BINARY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_binary_of_special_values_matches_cpu(f, dtype):
    # The CPU's vectorized fmod gives NaN where the quotient overflows; ours is C's fmod, which is
    # exact.
    values = EDGES[:-1] if f in (torch.fmod, torch.remainder) else EDGES
    assert_matches_cpu(f, *pairs(values, dtype))


@pytest.mark.parametrize("f", [f for f in BINARY if f is not torch.pow])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_binary_of_integers_matches_cpu(f, dtype):
    assert_matches_cpu(f, *pairs(SMALL_INTS, dtype))


@pytest.mark.parametrize("f", [torch.fmod, torch.remainder, torch.floor_divide, torch.div])
def test_division_of_uint8_matches_cpu(f):
    assert_matches_cpu(f, *pairs([1, 2, 7, 100, 255], torch.uint8))


@pytest.mark.parametrize("f", [torch.add, torch.mul, torch.maximum, torch.minimum])
def test_arithmetic_of_bool_is_logic(f):
    assert_matches_cpu(f, *pairs([True, False], torch.bool))


def test_integer_power_with_negative_exponents_matches_cpu():
    assert_matches_cpu(torch.pow, *pairs([-3, -2, -1, 0, 1, 2, 3], torch.int64))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.7, nan, inf])
def test_power_by_a_number_matches_cpu(exponent):
    assert_matches_cpu(lambda x: x**exponent, torch.tensor(EDGES))


def test_square_is_exact():
    x = torch.arange(-5000, 5000, dtype=torch.float32)
    assert torch.equal((x.to("tpu") ** 2).cpu(), x * x)


@pytest.mark.parametrize("other", [2, 2.5, True, 1 + 2j])
@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int32, torch.float16, torch.float32]
)
def test_numbers_promote_as_on_cpu(other, dtype):
    if dtype is torch.float16 and isinstance(other, complex):
        pytest.skip("gives complex32, which XLA does not have")
    x = make_tensor((3,), dtype=dtype, device="cpu", low=0, high=2)
    assert_matches_cpu(lambda x: (x * other, x + other), x)


@pytest.mark.parametrize("a, b", list(itertools.combinations(DTYPES, 2)))
def test_tensors_promote_as_on_cpu(a, b):
    x, y = (make_tensor((3,), dtype=t, device="cpu", low=0, high=2) for t in (a, b))
    assert_matches_cpu(lambda x, y: (x * y, x + y[0]), x, y)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_floats_are_rounded_once(dtype):
    x, y = (make_tensor((64,), dtype=dtype, device="cpu", low=1, high=3) for _ in range(2))

    def f(x, y):
        return torch.addcmul(x, x, y, value=0.3)

    assert torch.equal(f(x.to("tpu"), y.to("tpu")).cpu(), f(x.float(), y.float()).to(dtype))


def test_numbers_share_one_program():
    x, y = torch.randn(5, device="tpu"), torch.randn(5, device="tpu")
    calls = [
        lambda v: torch.add(x, y, alpha=v),
        lambda v: x * v,
        lambda v: torch.clamp(x, -v, v),
        lambda v: torch.lerp(x, y, v),
        lambda v: torch.addcdiv(x, y, y, value=v),
        lambda v: x**v,
    ]
    for call in calls:
        call(0.25)
    with count_compiles() as compiled:
        for call, v in itertools.product(calls, [0.5, 2.0, 7.0]):
            call(v)
    assert compiled == []


@pytest.mark.parametrize("f", [torch.floor_divide, torch.remainder, torch.fmod])
def test_integer_division_by_zero_is_an_error_as_on_cpu(f):
    assert_same_error(lambda d: f(torch.tensor([1, 2], device=d), torch.tensor([1, 0], device=d)))


def test_broadcasting_and_rank_0_and_empty_match_cpu():
    for a, b in [((3, 1), (4,)), ((), (2, 3)), ((), ()), ((0, 3), (3,)), ((2, 0), (1, 1))]:
        assert_matches_cpu(torch.add, torch.randn(a), torch.randn(b))


@pytest.mark.parametrize(
    "f",
    [
        torch.floor,
        torch.ceil,
        torch.round,
        torch.trunc,
        torch.frac,
        torch.abs,
        torch.neg,
        torch.sign,
        torch.reciprocal,
    ],
)
def test_unary_of_special_values_matches_cpu(f):
    assert_matches_cpu(f, torch.tensor(EDGES))


def test_rounding_of_integers_changes_nothing():
    x = torch.tensor([-3, 0, 2**40 + 1])
    for f in (torch.floor, torch.ceil, torch.round, torch.trunc):
        assert torch.equal(f(x.to("tpu")).cpu(), x)


@pytest.mark.parametrize("decimals", [-2, 0, 1, 3])
def test_round_to_decimals_matches_cpu(decimals):
    assert_matches_cpu(
        lambda x: torch.round(x, decimals=decimals), torch.tensor([123.4567, -0.05, 2.5, nan, inf])
    )


@pytest.mark.parametrize("lo, hi", [(-1, 1), (None, 0.5), (0, None), (2, -2), (nan, 1)])
def test_clamp_by_numbers_matches_cpu(lo, hi):
    assert_matches_cpu(lambda x: torch.clamp(x, lo, hi), torch.tensor(EDGES))


def test_clamp_by_tensors_keeps_nan():
    x, lo, hi = (
        torch.tensor([nan, 1.0, 2.0, -5.0]),
        torch.tensor([0.0, nan, 3.0, -1.0]),
        torch.tensor(2.5),
    )
    assert_matches_cpu(torch.clamp, x, lo, hi)


def test_clamp_of_integers_by_a_float_promotes():
    assert_matches_cpu(lambda x: x.clamp(min=1.5), torch.tensor([1, 2, 3]))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32, torch.complex64]
)
def test_nan_to_num_matches_cpu(dtype):
    x = torch.tensor(
        [nan, inf, -inf, 2.0] if dtype.is_floating_point or dtype.is_complex else [1, 2],
        dtype=dtype,
    )
    assert_matches_cpu(torch.nan_to_num, x)
    assert_matches_cpu(lambda x: torch.nan_to_num(x, nan=1.5, posinf=3.0), x)


@pytest.mark.parametrize("f", [torch.gcd, torch.lcm])
@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
def test_gcd_and_lcm_match_cpu(f, dtype):
    values = [0, 1, 4, 6, 35, 120] + ([-4, -9] if dtype.is_signed else [])
    assert_matches_cpu(f, *pairs(values, dtype))


@pytest.mark.parametrize("weight", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_lerp_reaches_both_ends_exactly(weight):
    a, b = (
        torch.tensor([1.0, 1e8, -3.0], requires_grad=True),
        torch.tensor([2.0, -1.0, 7.0], requires_grad=True),
    )
    assert_matches_cpu(lambda a, b: torch.lerp(a, b, weight), a, b)


def test_gradients_match_cpu():
    x, y = (torch.rand(4, 5).add(0.5).requires_grad_() for _ in range(2))
    for f in (torch.mul, torch.div, torch.pow, torch.fmod, torch.maximum):
        assert_matches_cpu(f, x, y)


def test_in_place_and_out_forms_match_cpu():
    x, y = torch.randn(3, 4), torch.randn(4)
    a, b = x.to("tpu"), y.to("tpu")
    assert_close(a.clone().mul_(b).cpu(), x.clone().mul_(y))
    out = torch.empty(0, device="tpu")
    assert_close(torch.add(a, b, out=out).cpu(), x + y)
    assert out.shape == (3, 4)
    ints = torch.tensor([7, -7], device="tpu")
    assert torch.equal(ints.floor_divide_(2).cpu(), torch.tensor([3, -4]))


@pytest.mark.parametrize(
    "call",
    [
        lambda d: (
            torch.ones(2, dtype=torch.bool, device=d) - torch.ones(2, dtype=torch.bool, device=d)
        ),
        lambda d: -torch.ones(2, dtype=torch.bool, device=d),
        lambda d: torch.ones(2, device=d) + torch.ones(3, device=d),
        lambda d: torch.sub(torch.ones(2, dtype=torch.int64, device=d), 1, alpha=2.5),
        lambda d: torch.lerp(*torch.ones(2, 2, dtype=torch.int64, device=d), 0.5),
        lambda d: torch.frac(torch.ones(2, dtype=torch.int64, device=d)),
        lambda d: torch.abs(torch.ones(2, dtype=torch.bool, device=d)),
        lambda d: torch.floor(torch.ones(2, dtype=torch.complex64, device=d)),
        lambda d: torch.maximum(*torch.ones(2, 2, dtype=torch.complex64, device=d)),
        lambda d: torch.clamp(torch.ones(2, dtype=torch.complex64, device=d), 0, 1),
        lambda d: torch.gcd(*torch.ones(2, 2, device=d)),
        lambda d: torch.tensor([1, 2], device=d) ** -1,
        lambda d: torch.ones(2, dtype=torch.int64, device=d).mul_(0.5),
    ],
)
def test_refusals_read_as_on_cpu(call):
    assert_same_error(call)


@pytest.mark.parametrize("self_dtype", [torch.float64, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("n, m", [(2, 3), (0, 3), (2, 0)])
@pytest.mark.parametrize("shape", [(), (1,), "full"])
def test_addr_promotes_and_broadcasts_as_cpu(self_dtype, n, m, shape):
    x = torch.ones((n, m) if shape == "full" else shape, dtype=self_dtype)
    assert_matches_cpu(
        lambda *a: torch.addr(*a, beta=2, alpha=3),
        x,
        torch.arange(n),
        torch.arange(m, dtype=torch.int16),
    )


def test_addr_of_bools_and_gradients_match_cpu():
    t, f = torch.tensor([True, False]), torch.tensor([False, False])
    assert_matches_cpu(lambda *a: (torch.addr(*a), torch.addr(*a, beta=False)), t, t, f)
    a = [torch.randn(s, requires_grad=True) for s in [(2, 3), (2,), (3,)]]
    assert_matches_cpu(lambda *a: torch.addr(*a, beta=0.5, alpha=2), *a)


def test_addr_ignores_nan_only_where_beta_is_0():
    x, v = torch.tensor([torch.nan, 1.0]), torch.tensor([1.0, torch.nan])
    assert_matches_cpu(
        lambda x, v: (
            torch.addr(x, v, v, beta=0),
            torch.addr(x, v, v),
            torch.addr(x, v, v, alpha=0),
        ),
        x,
        v,
    )


def test_addr_refuses_a_matrix_as_cpu_does():
    assert_same_error(
        lambda d: torch.addr(
            torch.ones(3, device=d), torch.ones(2, 2, device=d), torch.ones(3, device=d)
        )
    )
    assert_same_error(
        lambda d: torch.addr(
            torch.ones(5, device=d), torch.ones(2, device=d), torch.ones(3, device=d)
        )
    )


def test_addr_refuses_a_fraction_for_integers_in_cpus_words():
    def i(d):
        return torch.ones(3, device=d, dtype=torch.int64)

    assert_same_error(lambda d: torch.addr(i(d), i(d), i(d), beta=0.5))


ADD_RELU = torch.ops.aten._add_relu
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64]


@pytest.mark.parametrize("b", [torch.bool, torch.uint8, torch.float16, torch.bfloat16, *SIGNED])
@pytest.mark.parametrize("a", SIGNED)
def test_add_relu_of_tensors_promotes_as_cpu(a, b):
    x, y = (make_tensor((3, 1, 5), dtype=t, device="cpu", low=-9, high=9) for t in (a, b))
    if not a.is_floating_point and b in (torch.float16, torch.bfloat16):
        assert_same_error(lambda d: ADD_RELU(x.to(d), y.to(d)))
        return
    assert_matches_cpu(lambda x, y: (ADD_RELU(x, y), ADD_RELU(x, y.mT, alpha=3)), x, y)


@pytest.mark.parametrize("other", [2, -2, 2.5, True])
@pytest.mark.parametrize("dtype", SIGNED)
def test_add_relu_of_a_number_promotes_as_cpu(dtype, other):
    x = make_tensor((2, 3), dtype=dtype, device="cpu", low=-9, high=9)
    assert_matches_cpu(
        lambda x: (
            ADD_RELU(x, other),
            ADD_RELU(x, other, 2),
            ADD_RELU(x[0, 0], other),
            ADD_RELU(x, x, alpha=other),
        ),
        x,
    )


@pytest.mark.parametrize("a, b", [((3, 1), (4,)), ((), (2, 3)), ((), ()), ((0, 3), (3,))])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_add_relu_broadcasts_as_cpu(a, b, dtype):
    x, y = (make_tensor(s, dtype=dtype, device="cpu") for s in (a, b))
    assert_matches_cpu(ADD_RELU, x, y)
    assert_matches_cpu(ADD_RELU, y, x)


@pytest.mark.parametrize("b", [torch.float32, torch.float64])
def test_add_relu_of_special_values_matches_cpu(b):
    x, y = pairs([v for v in EDGES if v == v], torch.float32)
    keep = ~(x + y).isnan()  # CPU keeps NaN in its vectorized loop and gives 0 after it
    assert_matches_cpu(ADD_RELU, x[keep], y[keep].to(b))


def test_add_relu_of_nan_is_nan():
    x = torch.tensor([nan, 1.0, inf], device="tpu")
    y = torch.tensor([1.0, nan, -inf], device="tpu")
    assert ADD_RELU(x, y).isnan().all()
    assert ADD_RELU(x, 1, nan).isnan().all()


@pytest.mark.parametrize("a", SIGNED)
@pytest.mark.parametrize("b", SIGNED)
def test_add_relu_is_bounded_by_the_largest_of_the_first_dtype(a, b):
    x, y = torch.ones(4, dtype=a), torch.ones(4, dtype=b)
    y[:2] = torch.finfo(b).max if b.is_floating_point else torch.iinfo(b).max  # integers wrap
    assert_matches_cpu(ADD_RELU, x, y)


def test_add_relu_in_place_and_out_match_cpu():
    x, y = torch.randn(3, 4), torch.arange(-2, 2)
    a, b = x.to("tpu"), y.to("tpu")
    view = a.clone().mT
    torch._add_relu_(view.mT, b)
    assert torch.equal(view.cpu(), ADD_RELU(x, y).mT)
    torch._add_relu_(view, -0.5)
    assert torch.equal(view.cpu(), ADD_RELU(ADD_RELU(x, y).mT, -0.5))
    out = torch.empty(0, dtype=torch.float64, device="tpu")
    assert torch._add_relu(a, b, alpha=2, out=out) is out
    assert torch.equal(out.cpu(), ADD_RELU(x, y, alpha=2).double())


def test_add_relu_of_new_numbers_compiles_nothing():
    x, y = torch.randn(5, device="tpu"), torch.randn(5, device="tpu")
    ADD_RELU(x, y, alpha=0.5), ADD_RELU(x, 0.5, 1.5)
    with count_compiles() as compiled:
        for v in (1.5, 2.5, nan):
            ADD_RELU(x, y, alpha=v), ADD_RELU(x, v, 2 * v)
    assert compiled == []


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float16, torch.complex64])
def test_add_relu_refuses_the_dtypes_that_cpu_does(dtype):
    with pytest.raises(RuntimeError, match="Unsupported datatype for add_relu:"):
        ADD_RELU(torch.ones(2, dtype=dtype, device="tpu"), torch.ones(2, device="tpu"))


@pytest.mark.parametrize(
    "call",
    [
        lambda d: ADD_RELU(torch.ones(2, 3, device=d), torch.ones(4, device=d)),
        lambda d: ADD_RELU(torch.ones(2, device=d), 1j),
        lambda d: ADD_RELU(
            torch.ones(2, dtype=torch.int64, device=d), torch.ones(2, device=d).half()
        ),
        lambda d: ADD_RELU(torch.ones(2, dtype=torch.int64, device=d), 1, 1j),
        lambda d: ADD_RELU(torch.tensor(1, device=d), torch.ones(2, dtype=torch.int8, device=d)),
        lambda d: ADD_RELU(torch.ones((), dtype=torch.float64, device=d), torch.ones(2, device=d)),
        lambda d: torch._add_relu_(torch.ones(2, dtype=torch.int64, device=d), 1.5),
        lambda d: torch._add_relu_(torch.ones(2, device=d), torch.ones(3, 2, device=d)),
        lambda d: torch._add_relu_(
            torch.ones(2, dtype=torch.int64, device=d), torch.ones(2, device=d)
        ),
        lambda d: torch._add_relu(
            torch.ones(2, device=d),
            torch.ones(2, device=d),
            out=torch.ones(2, dtype=torch.int64, device=d),
        ),
        lambda d: ADD_RELU(torch.ones(2, device=d, requires_grad=True), 1).sum().backward(),
    ],
)
def test_add_relu_refusals_read_as_on_cpu(call):
    assert_same_error(call)
