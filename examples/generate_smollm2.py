# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M-Instruct answers on `tpu`: unmodified Transformers, tokens shown as they come.

    python examples/generate_smollm2.py [--device cpu] [--prompt TEXT] [--dtype bfloat16]

Greedy unless --sample SEED is given; ends with the speed and what had to be compiled.
"""

from __future__ import annotations

import argparse
import time

import torch
from transformers import TextStreamer

from smollm2 import load_model, load_tokenizer


class TimedStreamer(TextStreamer):
    """Prints the text and notes when each token arrived; the first call brings the prompt."""

    def __init__(self, tokenizer) -> None:
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self.arrivals: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        self.arrivals.append(time.perf_counter())
        super().put(value)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="tpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--prompt", default="Explain in three sentences why the sky is blue.")
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--sample", type=int, metavar="SEED", help="sample instead of greedy")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    tokenizer = load_tokenizer()
    model = load_model(args.device, getattr(torch, args.dtype))
    chat = [{"role": "user", "content": args.prompt}]
    inputs = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    ).to(model.device)

    sampling = {"do_sample": False}
    if args.sample is not None:
        torch.manual_seed(args.sample)
        sampling = {"do_sample": True, "temperature": 0.7, "top_p": 0.9}
    streamer = TimedStreamer(tokenizer)

    print(f"{model.device}, {args.dtype}, prompt of {inputs['input_ids'].shape[1]} tokens:\n")
    started = time.perf_counter()
    model.generate(**inputs, max_new_tokens=args.new_tokens, streamer=streamer, **sampling)

    tokens = streamer.arrivals[1:]
    first, rest = tokens[0] - started, tokens[-1] - tokens[0]
    speed = f", then {(len(tokens) - 1) / rest:.1f} tokens/s" if len(tokens) > 1 else ""
    print(f"\n{len(tokens)} tokens: the first after {first:.2f} s{speed}")
    if model.device.type == "tpu":
        print(f"compile: {torch.tpu.compile_stats()}")
        print(f"host fallback: {torch.tpu.fallback_stats() or 'none'}")


if __name__ == "__main__":
    main()
