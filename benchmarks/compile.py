# SPDX-License-Identifier: Apache-2.0
"""torch.compile on `tpu` beside Inductor and eager: a tiny graph, SmolLM2, training steps.

    python benchmarks/compile.py [--only TEXT] [--rounds N]

Four sides take turns: `tpu` compiled (backend "tpu") and strict eager, torch CPU compiled
(Inductor) and eager. The figure is the median of calls that end in a host read. The first call
traces and compiles.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sides import Side, alternate, cell, ratio, serve

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

# (name, calls per measurement)
CASES = {
    "tiny graph": 1000,
    "SmolLM2 prefill 128": 2,
    "SmolLM2 decode, static cache": 10,
    "MLP train step": 50,
    "transformer train step": 10,
}
PREFILL, CACHE = 128, 256


def tiny(device, wrap):
    import torch

    x = torch.randn(4, 4, device=device)
    f = wrap(lambda x: torch.tanh(x * 1.01) + 0.1)
    return lambda: f(x)


def prefill(device, wrap):
    import torch

    from smollm2 import load_model

    model = load_model(device).requires_grad_(False)
    tokens = torch.arange(100, 100 + PREFILL, device=device)[None]
    f = wrap(lambda tokens: model(tokens, use_cache=False).logits)

    def call():
        with torch.no_grad():
            return f(tokens)

    return call


def decode(device, wrap):
    import torch
    from transformers import StaticCache

    from smollm2 import load_model

    model = load_model(device).requires_grad_(False)
    cache = StaticCache(config=model.config, max_cache_len=CACHE)
    with torch.no_grad():  # fills the cache outside of the graph that is measured
        model(torch.arange(100, 164, device=device)[None], past_key_values=cache, use_cache=True)
    token = torch.tensor([[7]], device=device)
    place = torch.tensor([[64]], device=device)
    f = wrap(
        lambda token, place: (
            model(token, position_ids=place, past_key_values=cache, use_cache=True).logits
        )
    )

    def call():
        # The same step again and again: the cache is written in place, the length is not taken
        # further.
        for layer in cache.layers:
            length = getattr(layer, "cumulative_length", None)
            if isinstance(length, torch.Tensor):
                length.fill_(64)
        with torch.no_grad():
            return f(token, place)

    return call


def train_step(model, inputs, loss_of, wrap):
    """Forward, backward and the AdamW step; model and optimizer are compiled as two functions."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    forward = wrap(lambda *inputs: loss_of(model, *inputs))
    update = wrap(optimizer.step)

    def call():
        optimizer.zero_grad()
        loss = forward(*inputs)
        loss.backward()
        update()
        return loss.detach()

    return call


def mlp_step(device, wrap):
    import torch
    from torch import nn
    from torch.nn import functional as F

    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 10)).to(device)
    x, y = torch.randn(64, 256, device=device), torch.arange(64, device=device) % 10
    return train_step(model, (x, y), lambda m, x, y: F.cross_entropy(m(x), y), wrap)


def transformer_step(device, wrap):
    import torch
    from torch.nn import functional as F
    from train_transformer_classifier import LENGTH, VOCABULARY, Classifier

    model = Classifier().to(device).train()
    x = (torch.arange(64 * LENGTH, device=device) % (VOCABULARY - 2) + 2).view(64, LENGTH)
    y = torch.arange(64, device=device) % 3
    return train_step(model, (x, y), lambda m, x, y: F.cross_entropy(m(x), y), wrap)


BUILDERS = dict(zip(CASES, (tiny, prefill, decode, mlp_step, transformer_step), strict=True))


class Measure:
    """Microseconds a call of a case; "first " before the name asks for the seconds that its first
    call took.
    """

    def __init__(self, device: str, backend: str) -> None:
        import torch

        self._device = torch.device(device)
        self._backend = backend
        self._name, self._call, self._first_s = "", None, 0.0

    def _wrap(self, f):
        import torch

        if self._backend == "eager":
            return f
        # A bound method (optimizer.step) is no single graph: its bookkeeping stays in Python.
        fullgraph = not hasattr(f, "__self__")
        return torch.compile(f, backend=self._backend, fullgraph=fullgraph, dynamic=False)

    def _read(self, result) -> None:
        result.flatten()[:1].cpu()

    def __call__(self, case: str) -> float:
        first = case.startswith("first ")
        case = case.removeprefix("first ")
        if case != self._name:
            import torch

            torch.manual_seed(0)
            torch._dynamo.reset()
            self._name, self._call = case, BUILDERS[case](self._device, self._wrap)
            started = time.perf_counter()
            self._read(self._call())
            self._first_s = time.perf_counter() - started
            for _ in range(3):
                self._read(self._call())
        if first:
            return self._first_s
        count = CASES[case]
        started = time.perf_counter()
        for _ in range(count):
            result = self._call()
        self._read(result)
        return (time.perf_counter() - started) / count * 1e6


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-tpu", action="store_true", help="the CPU's two sides only")
    parser.add_argument("--device", help=argparse.SUPPRESS)
    parser.add_argument("--backend", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.serve:
        serve(Measure(args.device, args.backend))
        return
    kinds = {
        "tpu": ("tpu", "tpu"),
        "tpu eager": ("tpu", "eager"),
        "inductor": ("cpu", "inductor"),
        "cpu eager": ("cpu", "eager"),
    }
    if args.without_tpu:
        kinds = {name: kind for name, kind in kinds.items() if kind[0] == "cpu"}
    sides = [
        Side(name, __file__, "--device", device, "--backend", backend)
        for name, (device, backend) in kinds.items()
    ]
    names = [name for name in CASES if args.only in name]
    heads = [*kinds, "/inductor", "/tpu eager"]
    print(f"{'microseconds a call':30}{''.join(h.rjust(11) for h in heads)}   first call, s")
    for name in names:
        firsts = {side.name: side.ask(f"first {name}") for side in sides}
        row = alternate(sides, [name], rounds=args.rounds)[name]
        ours = row.get("tpu")
        ratios = [ratio(ours, row.get("inductor")), ratio(ours, row.get("tpu eager"))]
        columns = [*row.values(), *ratios]
        firsts_shown = ", ".join(f"{side} {s:.1f}" for side, s in firsts.items() if s is not None)
        print(
            f"{name:30}{''.join(cell(value, 11) for value in columns)}   {firsts_shown}", flush=True
        )
    for side in sides:
        side.close()


if __name__ == "__main__":
    main()
