# SPDX-License-Identifier: Apache-2.0
"""What the training examples share: their command line, and the comparison of a loss curve with the
CPU's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import torch
from torch.utils.data import DataLoader, TensorDataset

OPTIMIZERS = {
    "sgd": lambda params, lr, **how: torch.optim.SGD(params, lr=lr, momentum=0.9, **how),
    "adam": lambda params, lr, **how: torch.optim.Adam(params, lr=lr, **how),
    "adamw": lambda params, lr, **how: torch.optim.AdamW(params, lr=lr, weight_decay=0.05, **how),
}
# How an optimizer walks its parameters: one by one, as lists, or all in one operator.
FORMS = {
    "for-loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


def parser(doc: str, *, steps: int) -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=doc.splitlines()[0])
    result.add_argument("--device", default="tpu")
    result.add_argument("--steps", type=int, default=steps)
    result.add_argument(
        "--compare", action="store_true", help="run on the CPU too; the loss curves must agree"
    )
    return result


def add_optimizer_options(options: argparse.ArgumentParser, *, default: str) -> None:
    options.add_argument("--optimizer", default=default, choices=OPTIMIZERS)
    options.add_argument("--form", default="foreach", choices=FORMS)


def batches(data: TensorDataset, device: torch.device, *, batch_size: int) -> Iterator[list]:
    """Yields shuffled batches on `device`, without end; the same ones on every device."""
    loader = DataLoader(
        data,
        batch_size=batch_size,
        shuffle=True,
        drop_last=True,
        generator=torch.Generator().manual_seed(0),
        pin_memory=device.type != "cpu",
    )
    while True:
        for batch in loader:
            yield [part.to(device, non_blocking=True) for part in batch]


def run(
    train: Callable[[torch.device], list[float]], args: argparse.Namespace, *, rtol: float
) -> None:
    """Trains on `args.device` and prints the losses.

    With --compare it trains on the CPU as well and raises AssertionError unless each loss is within
    `rtol` of the CPU's. Rounding differs between the two (order of sums, fused multiply-add), and
    training amplifies it step by step: `rtol` is for the number of steps that the example makes by
    default.
    """
    losses = train(torch.device(args.device))
    if len(losses) != args.steps:
        raise AssertionError(f"{len(losses)} losses for {args.steps} steps")
    if args.compare:
        reference = train(torch.device("cpu"))
        print(f"{'step':>4} {args.device:>10} {'cpu':>10}")
        for step, pair in enumerate(zip(losses, reference, strict=True)):
            print(f"{step:4d} {pair[0]:10.5f} {pair[1]:10.5f}")
        torch.testing.assert_close(
            torch.tensor(losses, dtype=torch.float64),
            torch.tensor(reference, dtype=torch.float64),
            rtol=rtol,
            atol=0,
        )
        print(f"the loss curves agree within {rtol:g}")
    else:
        for step, loss in enumerate(losses):
            print(f"step {step:4d}  loss {loss:.5f}")
    if torch.device(args.device).type == "tpu":
        print(f"compile: {torch.tpu.compile_stats()}")
        print(f"host fallback: {torch.tpu.fallback_stats() or 'none'}")
