# SPDX-License-Identifier: Apache-2.0
"""One check of one entry: runs it on the CPU and on `tpu` and says what happened."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map

from torch_tpu import tpu
from torch_tpu.testing.operators.entries import DTYPES, depth, find

__all__ = ["Outcome", "run_check"]


class Outcome(NamedTuple):
    """What a check found.

    Attributes:
        kind: "pass", "missing" (NotImplementedError that names operator, dtypes and shapes),
            "wrong", "error", or "none" (PyTorch has no sample that the CPU runs). The survey adds
            "crash" and "timeout".
        text: the first thing that is not as on the CPU.
    """

    kind: str
    text: str = ""


class Wrong(Exception):
    """A result that is not the CPU's."""


# Values of these are drawn: shape, dtype and device are compared, and tests/python holds their
# distributions.
RANDOM = re.compile(
    r"rand|normal|bernoulli|multinomial|dropout|uniform|exponential|geometric|cauchy|empty|rrelu|Fractional|fractional|multi_head_attention|lowrank"
)
# Which of equal values comes first is not defined: an index is compared by shape, where there may
# be ties.
TIES = ("sort", "argsort", "topk", "kthvalue")
# In-place operators that change what the tensor is, not what it holds.
RESHAPES = (
    "as_strided",
    "squeeze",
    "t",
    "transpose",
    "swapaxes",
    "swapdims",
    "unsqueeze",
    "resize_",
    "resize_as_",
)
# Sums run in another order than the CPU's, and XLA's transcendental functions are others: what the
# samples' conditioning makes of a few units in the last place. The CPU rounds 16-bit floats between
# the steps of an operator, the device once.
TOLERANCE = {
    torch.float32: (2e-3, 2e-4),
    torch.complex64: (2e-3, 2e-4),
    torch.float64: (1e-6, 1e-7),
    torch.complex128: (1e-6, 1e-7),
    torch.bfloat16: (4e-2, 4e-2),
    torch.float16: (4e-3, 4e-3),
}
NAMED_GAP = re.compile(r"aten::\w+.* is not implemented for tpu.*\w+\[", re.DOTALL)


def run_check(entry: str, check: str, samples: int) -> Outcome:
    """Runs `check` of `entry` on at most `samples` of PyTorch's samples. Wants no host fallback."""
    torch.manual_seed(0)
    kind = entry.partition("/")[0]
    run = {"op": _operator, "module": _module, "optim": _optimizer}[kind]
    before = tpu.fallback_stats()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            count = run(entry, check, samples)
            torch.accelerator.synchronize()
    except Wrong as e:
        return Outcome("wrong", str(e))
    except NotImplementedError as e:
        kind = "missing" if NAMED_GAP.search(str(e)) else "error"
        return Outcome(kind, f"{'' if kind == 'missing' else 'NotImplementedError: '}{_line(e)}")
    except Exception as e:
        return Outcome("error", f"{type(e).__name__}: {_line(e)}")
    if tpu.fallback_stats() != before:
        return Outcome("wrong", "it ran on the host")
    return Outcome("pass") if count else Outcome("none", "no sample that the CPU runs")


def _line(e: Exception) -> str:
    return " ".join(str(e).split())[:240]


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]


def _to_tpu(tree: Any) -> Any:
    def move(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x.detach().to("tpu").requires_grad_(x.requires_grad)
        return torch.device("tpu") if isinstance(x, torch.device) else "tpu" if x == "cpu" else x

    return tree_map(move, tree)


def _compare(
    what: str, expected: Any, actual: Any, values: bool = True, indices: bool = True
) -> None:
    expected, actual = _tensors(expected), _tensors(actual)
    if len(expected) != len(actual):
        raise Wrong(f"{what}: {len(actual)} results for {len(expected)}")
    for e, a in zip(expected, actual, strict=True):
        if a.device.type != "tpu" and not (e.numel() == 0 or a.is_sparse):
            raise Wrong(f"{what}: a result on {a.device}")
        if (e.dtype, e.shape) != (a.dtype, a.shape):
            raise Wrong(f"{what}: {a.dtype}{list(a.shape)} for {e.dtype}{list(e.shape)}")
        if values and e.layout == torch.strided and (indices or e.dtype != torch.int64):
            rtol, atol = TOLERANCE.get(e.dtype, (0, 0))
            try:
                torch.testing.assert_close(
                    a.detach().cpu(), e.detach(), rtol=rtol, atol=atol, equal_nan=True
                )
            except AssertionError as error:
                raise Wrong(f"{what}: {_line(error)}") from None


def _gradients(results: Any, leaves: list[torch.Tensor]) -> list[torch.Tensor | None]:
    loss = sum(
        (t.abs() if t.is_complex() else t.float() if t.dtype != torch.float64 else t).square().sum()
        for t in _tensors(results)
        if t.requires_grad
    )
    if not isinstance(loss, torch.Tensor):
        return []
    return list(torch.autograd.grad(loss, leaves, allow_unused=True))


def _compare_gradients(what: str, expected: Any, actual: Any, cpu: Any, tpu: Any) -> None:
    leaves, moved = ([x for x in _tensors(t) if x.requires_grad] for t in (cpu, tpu))
    pairs = zip(_gradients(expected, leaves), _gradients(actual, moved), strict=True)
    for i, (e, a) in enumerate(pairs):
        if (e is None) != (a is None):
            raise Wrong(f"{what}: gradient {i} is missing on one side")
        if e is not None:
            _compare(f"{what}, gradient {i}", e.to_dense(), a)


# --- operators


def _operator(entry: str, check: str, samples: int) -> int:
    op = find(entry)
    name = check if check in DTYPES else depth(op)
    assert name is not None, "checks_of gives no such check"
    dtype = DTYPES[name]
    in_depth = check == depth(op)
    grad = in_depth and op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    if check == "in-place":
        one: Callable[..., bool] = _one_in_place
    elif check == "out=":
        one = _one_out
    else:
        one = _one_call
    found = islice(op.sample_inputs("cpu", dtype, requires_grad=grad), samples)
    return sum(one(op, f"sample {i}", sample, grad) for i, sample in enumerate(found))


def _moved(op: Any, sample: Any) -> tuple[tuple, dict]:
    args, kwargs = _to_tpu(((sample.input, *sample.args), sample.kwargs))
    if op.name == "tensor_split":  # its indices are a CPU tensor by definition
        args = (args[0], *sample.args)
    if (
        op.full_name == "as_strided.partial_views"
    ):  # the sample is itself a view of a larger storage
        x = sample.input.detach()
        whole = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
        view = whole.to("tpu").as_strided(x.size(), x.stride(), x.storage_offset())
        args = (view.requires_grad_(sample.input.requires_grad), *args[1:])
    return args, kwargs


def _is_random(op: Any, sample: Any) -> bool:
    return bool(RANDOM.search(op.full_name) or sample.kwargs.get("dropout_p"))


def _widened(x: Any) -> Any:
    return x.detach().float() if isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16 else x


def _narrowed(x: Any) -> Any:
    return x.bfloat16() if isinstance(x, torch.Tensor) and x.dtype == torch.float32 else x


def _one_call(op: Any, what: str, sample: Any, grad: bool) -> bool:
    args = (sample.input, *sample.args)
    try:
        expected = op(*args, **sample.kwargs)
    except Exception:  # the sample is not for the CPU
        return False
    moved, kwargs = _moved(op, sample)
    actual = op(*moved, **kwargs)
    values = not _is_random(op, sample)
    # PyTorch's own way to compare what is defined up to a sign or a phase, as eigenvectors are.
    want, got = (sample.output_process_fn_grad(r) for r in (expected, actual))
    ties = op.name in TIES and sample.input.dtype != torch.float32
    try:
        _compare(what, want, got, values, indices=not ties)
    except Wrong:
        if sample.input.dtype != torch.bfloat16:
            raise
        wide = tree_map(_widened, (args, sample.kwargs))
        rounded = tree_map(_narrowed, sample.output_process_fn_grad(op(*wide[0], **wide[1])))
        _compare(f"{what}, against float32", rounded, got, values, indices=not ties)
    if grad and values:
        _compare_gradients(what, expected, actual, (args, sample.kwargs), (moved, kwargs))
    return True


def _one_in_place(op: Any, what: str, sample: Any, grad: bool) -> bool:
    f = op.get_inplace()
    if sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
        return False
    target = sample.input.detach().clone()
    with torch.no_grad():
        try:
            f(target, *sample.args, **sample.kwargs)
        except Exception:  # the result does not fit the input
            return False
        (x, *args), kwargs = _moved(op, sample)
        # Written through a view: the write must reach its base, and only there.
        base = torch.stack([torch.zeros_like(x), x.detach()])
        result = f(x.detach().clone() if op.name in RESHAPES else base[1], *args, **kwargs)
    values = not _is_random(op, sample)
    _compare(what, target, result, values)
    if op.name not in RESHAPES:
        _compare(f"{what}, base", (torch.zeros_like(target), target), (base[0], base[1]), values)
    return True


def _one_out(op: Any, what: str, sample: Any, grad: bool) -> bool:
    args = (sample.input, *sample.args)
    with torch.no_grad():
        try:
            expected = op(*args, **sample.kwargs)
        except Exception:
            return False
        moved, kwargs = _moved(op, sample)
        if not _tensors(expected):
            return False
        for name, make in OUTS.items():
            host, outs = (
                tree_map(lambda t, m=make, d=d: m(t, d), expected) for d in ("cpu", "tpu")
            )
            try:
                op(*args, **sample.kwargs, out=host)
            except Exception:  # this out is refused
                continue
            before = [_used_strides(t) for t in _tensors(outs)]
            op(*moved, **kwargs, out=outs)
            # Against the functional result: the CPU's gelu, avg_pool3d and narrow_copy write a
            # strided out wrongly.
            want, got = (sample.output_process_fn_grad(r) for r in (expected, outs))
            ties = op.name in TIES and sample.input.dtype != torch.float32
            values = not _is_random(op, sample)
            _compare(f"{what}, {name} out", want, got, values, indices=not ties)
            # What fits is written as it lies; how a resized one lies is the operator's choice.
            after = [_used_strides(t) for t in _tensors(outs)]
            if name == "strided" and before != after:
                raise Wrong(f"{what}, {name} out: strides {after} for {before}")
    return True


def _used_strides(t: torch.Tensor) -> list[int]:
    return [stride for stride, size in zip(t.stride(), t.shape, strict=True) if size > 1]


def _strided(t: torch.Tensor, device: str) -> torch.Tensor:
    return torch.zeros(*t.shape, 2, dtype=t.dtype, device=device)[..., 1]


def _wrong_sized(t: torch.Tensor, device: str) -> torch.Tensor:
    return torch.zeros(t.numel() + 1, dtype=t.dtype, device=device)


OUTS = {
    "strided": _strided,
    "empty": lambda t, device: torch.empty(0, dtype=t.dtype, device=device),
    "wrong-sized": _wrong_sized,
}


# --- modules and optimizers


def _module(entry: str, check: str, samples: int) -> int:
    info = find(entry)
    training = check == "train"
    inputs = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
    )
    values = not RANDOM.search(entry)
    count = 0
    for sample in islice(inputs, samples):
        construct, forward = sample.constructor_input, sample.forward_input
        if forward is None:
            continue
        module = info.module_cls(*construct.args, **construct.kwargs).train(training)
        if info.is_lazy:
            module(*forward.args, **forward.kwargs)
        # A drawn mask is not the CPU's: dropout's own tests hold it.
        for part in module.modules():
            if isinstance(getattr(part, "dropout", None), float):
                part.dropout = 0.0
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        moved = copy.deepcopy(module).to("tpu")
        if getattr(moved, "_random_samples", None) is not None:  # no buffer, so the user moves it
            moved._random_samples = moved._random_samples.to("tpu")
        args, kwargs = _to_tpu((forward.args, forward.kwargs))
        expected = module(*forward.args, **forward.kwargs)
        actual = moved(*args, **kwargs)
        what = f"sample {count}"
        _compare(what, expected, actual, values)
        if values:
            cpu = (forward.args, forward.kwargs, list(module.parameters()))
            tpu = (args, kwargs, list(moved.parameters()))
            _compare_gradients(what, expected, actual, cpu, tpu)
            _compare(f"{what}, buffers", list(module.buffers()), list(moved.buffers()))
        count += 1
    return count


def _optimizer(entry: str, check: str, samples: int) -> int:
    info = find(entry)
    inputs = info.optim_inputs_func(device=torch.device("cpu"))
    count = 0
    # Every configuration where the survey asks for depth: they differ by more than their numbers.
    for sample in inputs if samples > 2 else inputs[:samples]:
        options = {
            k: v
            for k, v in sample.kwargs.items()
            if k not in ("foreach", "fused", "differentiable", "capturable")
        }
        if check != "for-loop":
            options[check] = True
        elif "foreach" in info.supported_impls:
            options["foreach"] = False
        on_cpu, on_tpu = (_trained(info, device, options) for device in ("cpu", "tpu"))
        for e, a in zip(on_cpu, on_tpu, strict=True):
            _compare(f"{sample.desc or 'default'} after {STEPS} steps", e, a)
        count += 1
    return count


STEPS = 3


def _trained(info: Any, device: str, options: dict) -> Iterator[torch.Tensor]:
    """Parameters, one of them strided, after some steps of gradients that are the same on every
    device.
    """
    generator = torch.Generator().manual_seed(0)

    def draw(*size):
        return torch.randn(*size, generator=generator)

    # Muon takes matrices only.
    starts = [draw(5, 3), draw(3, 4).t()] + ([] if info.optim_cls.__name__ == "Muon" else [draw(7)])
    parameters = [x.to(device).requires_grad_() for x in starts]
    # The loop is the definition. The CPU's fused kernels are another implementation, which reads a
    # strided parameter beside a dense gradient in memory order.
    if device == "cpu":
        options = {k: v for k, v in options.items() if k not in ("fused", "foreach")}
    if device == "tpu":
        options = {
            k: v.to("tpu") if isinstance(v, torch.Tensor) and options.get("fused") else v
            for k, v in options.items()
        }
    if info.optim_cls is torch.optim.LBFGS:
        # Its twenty inner iterations divide by differences that vanish as it converges, and
        # rounding grows without bound.
        options.setdefault("max_iter", 3)
    optimizer = info.optim_cls(parameters, **options)
    for _ in range(STEPS):
        gradients = [draw(*p.shape).to(device) for p in parameters]

        def closure(gradients=gradients):
            optimizer.zero_grad()
            for p, g in zip(parameters, gradients, strict=True):
                p.grad = g.to_sparse() if info.only_supports_sparse_grads else g + p.detach()
            return sum(p.detach().square().sum() for p in parameters)

        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return iter(parameters)
