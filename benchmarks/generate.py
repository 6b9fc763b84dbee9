# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M greedy decode in strict eager: `tpu` beside torch CPU, and where the time goes.

    python benchmarks/generate.py [--rounds N] [--new-tokens N] [--dtype bfloat16] [--no-profile]

Both sides run the unmodified `model.generate` with a dynamic cache; the first round is a warm-up
with as many tokens, so nothing is compiled in the measured ones (the count is printed).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

from sides import Side, ratio, serve

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

PROMPT = "Write a short story about a lighthouse keeper who finds a letter in a bottle."


class Generation:
    """Answers "decode" with milliseconds a token, prefill left out, "compiles" with their number so
    far, "profile" with a table.
    """

    def __init__(self, device: str, dtype: str, new_tokens: int) -> None:
        import torch
        from transformers.generation.streamers import BaseStreamer

        from smollm2 import load_model, load_tokenizer

        tokenizer = load_tokenizer()
        self._model = load_model(device, getattr(torch, dtype))
        chat = [{"role": "user", "content": PROMPT}]
        self._inputs = tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
        ).to(device)
        self._new_tokens = new_tokens

        class Clock(BaseStreamer):
            def __init__(self) -> None:
                self.arrivals: list[float] = []

            def put(self, value: torch.Tensor) -> None:
                self.arrivals.append(time.perf_counter())

            def end(self) -> None:
                pass

        self._clock = Clock
        self._generate(new_tokens)

    def _generate(self, new_tokens: int) -> list[float]:
        clock = self._clock()
        self._model.generate(
            **self._inputs,
            do_sample=False,
            min_new_tokens=new_tokens,
            max_new_tokens=new_tokens,
            streamer=clock,
        )
        return clock.arrivals[1:]  # the first is the prompt

    def __call__(self, question: str) -> object:
        if question == "decode":
            arrivals = self._generate(self._new_tokens)
            steps = [b - a for a, b in zip(arrivals, arrivals[1:], strict=False)]
            return statistics.median(steps) * 1e3
        if question == "compiles":
            import torch

            return torch.tpu.compile_stats()["compiles"] if self._model.device.type == "tpu" else 0
        return self._profile()

    def _profile(self) -> str:
        """Host time by operator over 16 tokens. XLA:CPU runs small programs in the caller, so their
        execution is in it.
        """
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU]) as trace:
            self._generate(16)
        return trace.key_averages().table(
            sort_by="self_cpu_time_total", row_limit=25, max_name_column_width=48
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--device", default="tpu", help="our side's device")
    parser.add_argument("--no-profile", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.serve:
        serve(Generation(args.device, args.dtype, args.new_tokens))
        return
    sides = [
        Side(
            name,
            __file__,
            *("--device", device, "--dtype", args.dtype, "--new-tokens", str(args.new_tokens)),
        )
        for name, device in (("ours", args.device), ("cpu", "cpu"))
    ]
    compiled_before = [side.ask("compiles") for side in sides]
    rounds = [[side.ask("decode") for side in sides] for _ in range(args.rounds)]
    compiled = [side.ask("compiles") for side in sides]
    if any(answer is None for row in rounds for answer in row):
        sys.exit("a side failed; its message is above")
    ours, cpu = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"SmolLM2-135M greedy, {args.dtype}, {args.new_tokens} tokens, {args.rounds} rounds")
    print(f"  {args.device:8} {ours:8.1f} ms a token   {1e3 / ours:6.1f} tokens/s")
    print(f"  {'cpu':8} {cpu:8.1f} ms a token   {1e3 / cpu:6.1f} tokens/s")
    print(f"  ratio    {ratio(ours, cpu):8.2f}   (goal: at most 1.5)")
    print(f"  compiles: warm-up {compiled_before[0]}, rounds {compiled[0] - compiled_before[0]}")
    if not args.no_profile:
        for side in sides:
            print(f"\n{side.name}: host time by operator over 16 tokens\n{side.ask('profile')}")
    for side in sides:
        side.close()


if __name__ == "__main__":
    main()
