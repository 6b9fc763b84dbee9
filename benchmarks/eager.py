# SPDX-License-Identifier: Apache-2.0
"""Eager operators: microseconds a call on `tpu`, on torch CPU and on Google's torch_tpu.

    python benchmarks/eager.py [--peer-python PATH] [--only TEXT] [--rounds N] [--json FILE]

The sides take turns, case by case; the figure is the median over the rounds of calls that end in a
host read. Compare the ratios, not the microseconds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time

from sides import Side, alternate, cell, ratio, serve

# (name, calls per measurement)
CASES = {
    "add 4x4": 3000,
    "mul scalar 4x4": 3000,
    "matmul 4x4": 3000,
    "matmul 256": 300,
    "softmax 128x768": 300,
    "layer_norm 128x768": 300,
    "cat of 8": 1000,
    "index rows": 500,
    "slice write": 1000,
    "transpose+narrow+add": 300,
    "90 pointwise on 1M": 3,
    "150 pointwise on 4x4": 100,
    "AdamW 50 params, foreach": 10,
    "AdamW 50 params, fused": 10,
}
WARM_UP = 20
# On XLA:CPU the peer's optimizer step does not come back, so it is not asked.
PEER_HANGS = {name for name in CASES if name.startswith("AdamW")}


def build(case: str, device: str):
    """Returns the call of this case, on tensors of its own."""
    import torch
    from torch.nn import functional as F

    def rand(*shape: int) -> torch.Tensor:
        return torch.randn(*shape).to(device)

    def repeated(x: torch.Tensor, times: int):
        def call() -> torch.Tensor:
            y = x
            for _ in range(times):
                y = torch.tanh(y * 1.01) + 0.1
            return y

        return call

    def adamw(**form: bool):
        parameters = [torch.nn.Parameter(rand(64, 64)) for _ in range(50)]
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        optimizer = torch.optim.AdamW(parameters, lr=1e-3, **form)

        def call() -> torch.Tensor:
            optimizer.step()
            return parameters[0].detach()

        return call

    if case.startswith("AdamW"):
        return adamw(**{case.rsplit(" ", 1)[1]: True})
    if case == "90 pointwise on 1M":
        return repeated(rand(1024, 1024), 30)
    if case == "150 pointwise on 4x4":
        return repeated(rand(4, 4), 50)
    if case == "slice write":
        grid, strip = rand(256, 256), rand(256, 2)

        def write() -> torch.Tensor:
            grid[:, 3:5] = strip
            return grid

        return write
    a, b = (rand(256, 256), rand(256, 256)) if "256" in case else (rand(4, 4), rand(4, 4))
    x, w = rand(128, 768), rand(768)
    rows = torch.arange(0, 128, 2).to(device)
    parts = [rand(16, 64) for _ in range(8)]
    return {
        "add 4x4": lambda: a + b,
        "mul scalar 4x4": lambda: a * 1.5,
        "matmul 4x4": lambda: a @ b,
        "matmul 256": lambda: a @ b,
        "softmax 128x768": lambda: torch.softmax(x, -1),
        "layer_norm 128x768": lambda: F.layer_norm(x, (768,), w, w),
        "cat of 8": lambda: torch.cat(parts),
        "index rows": lambda: x[rows],
        "transpose+narrow+add": lambda: x.t()[3:] + 1.0,
    }[case]


class Measure:
    """Microseconds a call; a case is built and warmed up when it is first asked for."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._calls: dict = {}

    def __call__(self, case: str) -> float:
        if case not in self._calls:
            self._calls = {case: build(case, self._device)}
            self._repeat(case, WARM_UP)
        count = CASES[case]
        self._repeat(case, count // 10 + 1)  # the other sides have had the caches meanwhile
        started = time.perf_counter()
        self._repeat(case, count)
        return (time.perf_counter() - started) / count * 1e6

    def _repeat(self, case: str, count: int) -> None:
        call = self._calls[case]
        for _ in range(count):
            result = call()
        result.cpu()


def goal(case: str, peer: float | None) -> float | None:
    """The ratio to the peer's time that the project asks for."""
    if peer is None:
        return None
    if case == "add 4x4":
        return 0.25
    return 0.35 if peer < 20 else 1.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="interpreter of an environment with the peer")
    parser.add_argument("--peer-setup", default="peer_device", help="module that sets the peer up")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="also write the medians to this file")
    parser.add_argument("--device", default="tpu", help="our side's device")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--setup", help=argparse.SUPPRESS)
    return parser.parse_args()


def report(medians: dict, our_device: str) -> int:
    heads = [our_device, "cpu", "peer", "/cpu", "/peer", "goal"]
    print(f"{'microseconds a call':24}{''.join(h.rjust(10) for h in heads)}")
    missed = 0
    for case, side in medians.items():
        peer = side.get("peer")
        to_peer, wanted = ratio(side["ours"], peer), goal(case, peer)
        failed = side["ours"] is None
        late = failed or (to_peer is not None and wanted is not None and to_peer > wanted)
        missed += late
        columns = [
            side["ours"],
            side["cpu"],
            peer,
            ratio(side["ours"], side["cpu"]),
            to_peer,
            wanted,
        ]
        print(f"{case:24}{''.join(map(cell, columns))}{'  missed' if late else ''}")
    return missed


def main() -> None:
    args = arguments()
    if args.serve:
        if args.setup:
            importlib.import_module(args.setup)
        serve(Measure(args.device))
        return
    sides = [
        Side("ours", __file__, "--device", args.device),
        Side("cpu", __file__, "--device", "cpu"),
    ]
    cases = [name for name in CASES if args.only in name]
    peer_cases = [name for name in cases if name not in PEER_HANGS]
    if args.peer_python:
        peer = Side("peer", __file__, "--setup", args.peer_setup, python=args.peer_python)
        medians = alternate([*sides, peer], peer_cases, rounds=args.rounds)
        peer.close()
        rest = [name for name in cases if name in PEER_HANGS]
    else:
        medians, rest = {}, cases
    medians |= alternate(sides, rest, rounds=args.rounds)
    for side in sides:
        side.close()
    missed = report(medians, args.device)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(medians, file, indent=1)
    if args.peer_python:
        print(f"{missed} rows miss their goal")
    sys.exit(0)


if __name__ == "__main__":
    main()
