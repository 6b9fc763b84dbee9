# SPDX-License-Identifier: Apache-2.0
"""Random programs of views, in-place writes and reads, run on "tpu" and on CPU; a difference is
shrunk to a few lines.

    python -m torch_tpu.testing.view_fuzz --programs 20000 --seed 0 [--compile-every 10]

A program is a list of lines over a pool of tensors t0, t1, ...; each line reads or writes earlier
ones. The same lines run on both devices. At the end every tensor's values, sizes, strides and
offset must agree; a line that raises on CPU must raise the same type on tpu. Shapes come from small
sets, so that programs compile rarely.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from torch_tpu import tpu

__all__ = ["Failure", "check", "generate", "main", "run", "shrink"]

BASES = [
    ((6, 4), torch.float32),
    ((2, 3, 4), torch.float32),
    ((8,), torch.int64),
    ((4, 6), torch.int32),
    ((3, 8), torch.bfloat16),
    ((4, 4), torch.float32),
]


class Failure(AssertionError):
    """A program whose results differ; the text is the program and the difference."""


def _view(r: random.Random, t: torch.Tensor, name: str) -> str | None:
    """A line's right side: some view of t (given as its CPU twin, for shapes)."""
    d = t.dim()
    kind = r.choice(
        [
            "transpose",
            "narrow",
            "slice",
            "select",
            "unsqueeze",
            "expand",
            "reshape",
            "as_strided",
            "diagonal",
            "unfold",
            "dtype",
            "flatten",
            "permute",
            "flip_view",
        ]
    )
    if kind == "transpose" and d >= 2:
        a, b = r.sample(range(d), 2)
        return f"{name}.transpose({a}, {b})"
    if kind == "permute" and d >= 2:
        p = list(range(d))
        r.shuffle(p)
        return f"{name}.permute({p})"
    if kind == "narrow" and d and max(t.shape) > 1:
        i = r.randrange(d)
        if t.shape[i] < 2:
            return None
        n = r.randint(1, t.shape[i] - 1)
        return f"{name}.narrow({i}, {r.randint(0, t.shape[i] - n)}, {n})"
    if kind == "slice" and d:
        i = r.randrange(d)
        return f"{name}[{', '.join([':'] * i + [f'{r.randint(0, 1)}::{r.choice([2, 2, 3])}'])}]"
    if kind == "select" and d >= 1 and t.numel():
        i = r.randrange(d)
        return f"{name}.select({i}, {r.randrange(t.shape[i])})"
    if kind == "unsqueeze" and d < 4:
        return f"{name}.unsqueeze({r.randint(0, d)})"
    if kind == "expand" and d and 1 in t.shape:
        return f"{name}.expand({[r.choice([2, 3]) if s == 1 else s for s in t.shape]})"
    if kind == "reshape" and t.is_contiguous() and t.numel():
        n = t.numel()
        divisors = [k for k in range(1, n + 1) if n % k == 0]
        k = r.choice(divisors)
        return f"{name}.view({k}, {n // k})"
    if kind == "flatten" and d:
        return f"{name}.flatten()"
    if kind == "as_strided" and t.numel():
        size = r.choice([(2, 2), (3,), (2, 3), (4,), (2, 1, 2)])
        stride = tuple(r.choice([0, 1, 1, 2, 3, 4]) for _ in size)
        room = (
            t.untyped_storage().nbytes() // t.element_size()
            - 1
            - sum((a - 1) * b for a, b in zip(size, stride, strict=True))
        )
        if room < 0:
            return None
        return f"torch.as_strided({name}, {size}, {stride}, {r.randint(0, room)})"
    if kind == "diagonal" and d >= 2:
        return f"{name}.diagonal({r.choice([0, 0, 1, -1])}, 0, 1)"
    if kind == "unfold" and d and max(t.shape) >= 2:
        i = r.randrange(d)
        if t.shape[i] < 2:
            return None
        return f"{name}.unfold({i}, 2, {r.choice([1, 2])})"
    if kind == "dtype" and t.dtype == torch.float32:
        return f"{name}.view(torch.int32)"
    return None


def _overlaps(t: torch.Tensor) -> bool:
    """Whether two indices of t reach one element: what a write leaves there depends on its order,
    also on CPU.
    """
    offsets = [0]
    for size, stride in zip(t.shape, t.stride(), strict=True):
        offsets = [o + k * stride for o in offsets for k in range(size)]
    return len(set(offsets)) < len(offsets)


def _write(r: random.Random, t: torch.Tensor, name: str, pool: list[torch.Tensor]) -> str | None:
    """A line that changes t in place."""
    if (
        _overlaps(t) or t.dtype != pool[0].dtype
    ):  # small integers written into floats are denormals, which XLA flushes
        return None
    kind = r.choice(
        [
            "add",
            "mul",
            "copy",
            "fill",
            "zero",
            "index_put",
            "masked_fill",
            "mask_set",
            "clamp",
            "add_tensor",
            "copy_row",
            "index_add",
            "scatter_add",
            "setitem",
            "neg",
        ]
    )
    d = t.dim()
    # A source that shares the storage but not the exact layout: CPU reads what it has already
    # written, in its loop's order.
    apart = [
        i
        for i, o in enumerate(pool)
        if o.untyped_storage().data_ptr() != t.untyped_storage().data_ptr() or str(i) == name[1:]
    ]
    same = [i for i in apart if pool[i].shape == t.shape and pool[i].dtype == t.dtype]
    if kind == "add":
        return f"{name}.add_({r.choice([1, 2, -3])})"
    if kind == "mul":
        return f"{name}.mul_({r.choice([2, 3, -1])})"
    if kind == "neg":
        return f"{name}.neg_()"
    if kind == "fill":
        return f"{name}.fill_({r.choice([0, 5, -7])})"
    if kind == "zero":
        return f"{name}.zero_()"
    if kind == "clamp":
        # not 0: CPU and XLA differ in max(-0., 0.)'s sign
        return f"{name}.clamp_({r.choice([-2, 1])}, {r.choice([3, 9])})"
    if kind == "copy" and same:
        return f"{name}.copy_(t{r.choice(same)})"
    if kind == "add_tensor" and same:
        return f"{name}.add_(t{r.choice(same)})"
    if kind == "copy_row" and d >= 1:
        rows = [
            i
            for i in apart
            if 1 <= pool[i].dim() <= d
            and tuple(pool[i].shape) == tuple(t.shape[d - pool[i].dim() :])
        ]
        return f"{name}.copy_(t{r.choice(rows)})" if rows else None
    if kind == "index_put" and d >= 1 and t.numel():
        n = t.shape[0]
        index = [r.randrange(n) for _ in range(3)]
        if r.random() < 0.5:
            return (
                f"{name}.index_put_((torch.tensor({index}, device=device),), "
                f"torch.tensor(2, dtype={name}.dtype, device=device), accumulate=True)"
            )
        index = sorted(set(index))
        return (
            f"{name}.index_put_((torch.tensor({index}, device=device),), "
            f"torch.tensor({r.choice([4, 6])}, dtype={name}.dtype, device=device))"
        )
    if kind == "masked_fill":
        return f"{name}.masked_fill_({name} > 3, {r.choice([1, -1])})"
    if kind == "mask_set" and t.numel():
        return f"{name}[{name} < 2] = {r.choice([8, -4])}"
    if kind == "index_add" and d >= 1 and t.numel():
        return (
            f"{name}.index_add_(0, torch.tensor([0, {t.shape[0] - 1}, 0], device=device), "
            f"{name}.detach().clone()[:1].expand({[3, *t.shape[1:]]}))"
        )
    if kind == "scatter_add" and d == 1 and t.numel():
        return (
            f"{name}.scatter_add_(0, torch.tensor([0, 0, {t.shape[0] - 1}], device=device), "
            f"torch.ones(3, dtype={name}.dtype, device=device))"
        )
    if kind == "setitem" and d >= 1 and t.numel():
        return f"{name}[{r.randrange(t.shape[0])}] = {r.choice([11, 12])}"
    return None


def _read(r: random.Random, t: torch.Tensor, name: str, pool: list[torch.Tensor]) -> str | None:
    kind = r.choice(["clone", "plus", "sum", "cat", "contiguous", "mask", "take"])
    same = [i for i, o in enumerate(pool) if o.shape == t.shape]
    if kind == "clone":
        return f"{name}.clone()"
    if kind == "contiguous":
        return f"{name}.contiguous()"
    if kind == "plus":
        return f"{name} + t{r.choice(same)}"
    if kind == "sum" and t.dim():
        return f"{name}.sum({r.randrange(t.dim())})"
    if kind == "cat" and t.dim():
        return f"torch.cat([{name}, {name}], {r.randrange(t.dim())})"
    if kind == "mask" and t.numel():
        return f"{name}[{name} > 2]"
    if kind == "take" and t.dim() and t.numel():
        return f"{name}[torch.tensor([0, {t.shape[0] - 1}], device=device)]"
    return None


def generate(seed: int, grad: bool | None = None) -> list[str]:
    """The lines of program number `seed`. `grad`: the first tensor requires a gradient and the last
    lines run backward.
    """
    r = random.Random(seed)
    if grad is None:
        grad = r.random() < 0.15
    shape, dtype = r.choice([b for b in BASES if b[1] == torch.float32] if grad else BASES)
    n = 1
    for s in shape:
        n *= s
    lines = [f"t0 = (torch.arange({n}, dtype={dtype}) % 7 - 2).reshape({shape}).to(device)"]
    if grad:
        lines = [lines[0] + ".requires_grad_()", "t1 = t0 * 2"]
    makers: list[Callable[..., str | None]] = [_view, _view, _view, _write, _write, _read]
    for _ in range(r.randint(3, 10)):
        pool = _pool(lines)
        names = list(range(1 if grad else 0, len(pool)))
        i = r.choice(names[-4:])
        t, name = pool[i], f"t{i}"
        make = r.choice(makers)
        line = (
            make(r, t.detach(), name)
            if make is _view
            else make(r, t.detach(), name, [p.detach() for p in pool])
        )
        if line is None:
            continue
        if make is not _write:
            line = f"t{len(pool)} = {line}"
        try:
            _pool([*lines, line])
        except (RuntimeError, IndexError, ValueError, NotImplementedError):
            if r.random() < 0.9:  # now and then keep a line that CPU refuses, as the last
                continue
            lines.append(line)
            break
        lines.append(line)
    if grad:
        last = sum(line[0] == "t" and line.split(" = ")[0][1:].isdigit() for line in lines) - 1
        lines.append(f"g = torch.autograd.grad((t{last} * 3).sum() + (t1 * t1).sum(), t0)[0]")
    return lines


def _pool(lines: list[str]) -> list[torch.Tensor]:
    env: dict[str, Any] = {"torch": torch, "device": "cpu"}
    for line in lines:
        exec(line, env)  # noqa: S102 - our own lines
    return [env[f"t{i}"] for i in range(sum(k[0] == "t" and k[1:].isdigit() for k in env))]


def run(lines: list[str], device: str) -> tuple[dict[str, torch.Tensor], str | None]:
    """All tensors after the lines, and the type of the exception that ended them early."""
    env: dict[str, Any] = {"torch": torch, "device": device}
    error = None
    try:
        for line in lines:
            exec(line, env)  # noqa: S102
    except (RuntimeError, IndexError, ValueError, NotImplementedError, TypeError) as e:
        error = f"{type(e).__name__}: {str(e).splitlines()[0]}"
    return {k: v for k, v in env.items() if isinstance(v, torch.Tensor)}, error


def _compiled(lines: list[str], device: str, backend: str) -> dict[str, torch.Tensor]:
    """The program after its first line as one compiled function of t0."""
    names = [
        line.split(" = ")[0]
        for line in lines
        if line[0] in "tg" and " = " in line and line.split(" = ")[0].isalnum()
    ]
    source = (
        "def program(t0, device):\n"
        + "".join(f"    {line}\n" for line in lines[1:])
        + f"    return {', '.join(names)},\n"
    )
    env: dict[str, Any] = {"torch": torch, "device": device}
    exec(source, env)  # noqa: S102
    exec(lines[0], env)  # noqa: S102
    torch._dynamo.reset()
    out = torch.compile(env["program"], backend=backend, dynamic=False)(env["t0"], device)
    return dict(zip(names, out, strict=True))


def _compiled_difference(
    lines: list[str], want: dict[str, torch.Tensor], device: str, backend: str
) -> str | None:
    try:
        return _compare(
            {k: v for k, v in want.items() if k != "t0"},
            _compiled(lines, device, backend),
            compiled=True,
        )
    except NotImplementedError:
        return None  # said so, and wrong values are not at stake
    except Exception as e:  # noqa: BLE001 - any failure is the finding
        if "NotImplementedError" in str(e):  # Dynamo's wrapping of the same
            return None
        return f"{type(e).__name__}: {str(e)[:500]}"


def _plain(t: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(t.detach().cpu().double())


def _layout(t: torch.Tensor, compiled: bool) -> tuple:
    # Compiled, an output has storage of its own, so offset 0; and the stride of a dimension of one
    # element, which addresses nothing, is what FakeTensor says: not always eager's.
    if compiled:
        return tuple(s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1)
    return (*t.stride(), t.storage_offset())


def _compare(
    want: dict[str, torch.Tensor], got: dict[str, torch.Tensor], compiled: bool = False
) -> str | None:
    for k, w in want.items():
        g = got[k]
        if (w.shape, w.dtype, _layout(w, compiled)) != (g.shape, g.dtype, _layout(g, compiled)):
            return (
                f"{k}: {g.dtype}{list(g.shape)} strides {g.stride()} offset {g.storage_offset()} "
                f"for {w.dtype}{list(w.shape)} {w.stride()} {w.storage_offset()}"
            )
        if not torch.equal(_plain(w), _plain(g)):
            return f"{k}: {g.detach().cpu().tolist()} for {w.detach().tolist()}"
    return None


def check(lines: list[str], compiled: bool = False) -> str | None:
    """What differs between CPU and tpu, or None."""
    want, error = run(lines, "cpu")
    got, tpu_error = run(lines, "tpu")
    if error or tpu_error:
        kinds = [e.split(":")[0] if e else None for e in (error, tpu_error)]
        if kinds[0] != kinds[1]:
            return f"tpu: {tpu_error}; CPU: {error}"
        return None
    difference = _compare(want, got)
    if difference is None and compiled:
        difference = _compiled_difference(lines, want, "tpu", "tpu")
        # What functionalization gets wrong on CPU too (as_strided of as_strided, say) is PyTorch's.
        if difference and _compiled_difference(lines, want, "cpu", "aot_eager"):
            difference = None
        if difference:
            difference = "compiled: " + difference
    return difference


def shrink(lines: list[str], compiled: bool = False) -> list[str]:
    """Fewer lines that still differ. A line goes if the rest still runs on CPU; its name's later
    uses go with it.
    """
    changed = True
    while changed:
        changed = False
        for i in range(len(lines) - 1, 0, -1):
            fewer = lines[:i] + lines[i + 1 :]
            try:
                if run(fewer, "cpu")[1] and not run(lines, "cpu")[1]:
                    continue
                if check(fewer, compiled):
                    lines, changed = fewer, True
            except (KeyError, NameError):  # a later line needs this one
                continue
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile-every", type=int, default=0)
    args = parser.parse_args(argv)
    if args.compile_every:
        from torch_tpu import compile as tpu_compile

        tpu_compile.register()
    began, failures = time.time(), 0
    for k in range(args.programs):
        lines = generate(args.seed + k)
        compiled = bool(args.compile_every) and k % args.compile_every == 0
        difference = check(lines, compiled)
        if difference:
            failures += 1
            small = shrink(lines, difference.startswith("compiled"))
            smallest = check(small, difference.startswith("compiled")) or difference
            print("\n    ".join([f"--- program {args.seed + k}: {smallest}", *small]), flush=True)
        if (k + 1) % 500 == 0:
            print(
                f"{k + 1} programs, {failures} differences, {time.time() - began:.0f} s, "
                f"{tpu.compile_stats()['compiles']} compiles",
                flush=True,
            )
    print(f"{args.programs} programs, {failures} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
