# SPDX-License-Identifier: Apache-2.0
"""A two-layer transformer encoder learns in which third of a sequence a mark stands.

    python examples/train_transformer_classifier.py [--optimizer NAME] [--form FORM] [--compare]

Uses: Embedding, nn.TransformerEncoder (attention with a padding mask, layer norm, GELU), Adam,
gradient clipping, warm-up and cosine schedule. No dropout: each device draws its own random
numbers, and the curves are to be compared.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

import training

PAD, MARK, VOCABULARY, LENGTH, PARTS = 0, 1, 32, 24, 3


def sequences(count: int) -> TensorDataset:
    """Random tokens of random length with one MARK among them; the label says in which third it
    stands.
    """
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(MARK + 1, VOCABULARY, (count, LENGTH), generator=draw)
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (count,), generator=draw)
    tokens[torch.arange(LENGTH) >= lengths[:, None]] = PAD
    thirds = torch.arange(count) % PARTS
    places = (torch.rand(count, generator=draw) * lengths + thirds * lengths).long() // PARTS
    tokens[torch.arange(count), places] = MARK
    return TensorDataset(tokens, thirds)


class Classifier(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width, padding_idx=PAD)
        self.place = nn.Parameter(torch.randn(LENGTH, width) * 0.5)
        nn.init.normal_(self.token.weight, std=0.5)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, PARTS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        padding = tokens == PAD
        x = self.encoder(self.token(tokens) + self.place, src_key_padding_mask=padding)
        weight = (~padding).to(x.dtype).unsqueeze(-1)
        return self.head((x * weight).sum(1) / weight.sum(1))


def train(args, device: torch.device) -> list[float]:
    torch.manual_seed(0)
    model = Classifier().to(device).train()
    optimizer = training.OPTIMIZERS[args.optimizer](
        model.parameters(), 2e-3, **training.FORMS[args.form]
    )
    warm_up = 5
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warm_up, 0.5 + 0.5 * math.cos(math.pi * step / args.steps)),
    )
    losses = []
    source = training.batches(sequences(1024), device, batch_size=64)
    for _ in range(args.steps):
        tokens, labels = next(source)
        loss = F.cross_entropy(model(tokens), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


if __name__ == "__main__":
    options = training.parser(__doc__, steps=40)
    training.add_optimizer_options(options, default="adam")
    args = options.parse_args()
    training.run(lambda device: train(args, device), args, rtol=1e-3)
