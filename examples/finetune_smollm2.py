# SPDX-License-Identifier: Apache-2.0
"""A few fine-tuning steps of SmolLM2-135M-Instruct on a handful of sentences.

    python examples/finetune_smollm2.py [--form FORM] [--steps N] [--device D] [--compare]

Uses: the real weights, autocast to bfloat16, gradient checkpointing, AdamW, gradient clipping by
norm, a linear schedule from Transformers. In --compare the parameters are float32 on both devices,
and the products bfloat16.
"""

from __future__ import annotations

import torch
from transformers import get_linear_schedule_with_warmup

import training
from smollm2 import load_model, load_tokenizer

SENTENCES = [
    "The lighthouse keeper counts the ships at dusk and writes each name in a green ledger.",
    "A tensor on a systolic array is read in tiles, and each tile is used as often as it can be.",
    "Bread rises faster on a warm evening, so the baker starts later in July than in March.",
    "Nobody had wound the tower clock since the war, and yet it struck seven every morning.",
]


def train(args, device: torch.device) -> list[float]:
    torch.manual_seed(0)
    tokenizer = load_tokenizer()
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    batch = tokenizer(SENTENCES, return_tensors="pt", padding=True).to(device)
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)

    model = load_model(device).train()
    model.config.use_cache = False
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, **training.FORMS[args.form])
    scheduler = get_linear_schedule_with_warmup(optimizer, 0, args.steps + 1)

    losses = []
    for _ in range(args.steps):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(**batch, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.detach().float())
    return torch.stack(losses).tolist()


if __name__ == "__main__":
    options = training.parser(__doc__, steps=3)
    options.add_argument("--form", default="foreach", choices=training.FORMS)
    args = options.parse_args()
    # bfloat16 keeps 8 bits: a product differs by up to 1/256 from device to device, and the mean
    # over tokens by less.
    training.run(lambda device: train(args, device), args, rtol=1e-2)
