# SPDX-License-Identifier: Apache-2.0
"""A two-layer LSTM learns to continue a noisy sum of two sines.

    python examples/train_lstm.py [--optimizer NAME] [--form FORM] [--steps N] [--compare]

Uses: nn.LSTM over a batch of sequences, a loss over every time step, AdamW, gradient clipping by
value, a one-cycle schedule.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

import training

LENGTH = 32


def waves(count: int) -> TensorDataset:
    draw = torch.Generator().manual_seed(2)
    time = torch.arange(LENGTH + 1, dtype=torch.float32)
    pitch, phase = (torch.rand(2, count, 1, 2, generator=draw) * scale for scale in (0.5, 6.28))
    signal = torch.sin(pitch[0] * time[None, :, None] + phase[0]).sum(-1)
    signal += 0.05 * torch.randn(signal.shape, generator=draw)
    return TensorDataset(signal[:, :-1, None], signal[:, 1:, None])


class Forecaster(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.memory = nn.LSTM(1, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.memory(x)
        return self.head(states)


def train(args, device: torch.device) -> list[float]:
    torch.manual_seed(0)
    model = Forecaster().to(device)
    optimizer = training.OPTIMIZERS[args.optimizer](
        model.parameters(), 5e-3, **training.FORMS[args.form]
    )
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=args.steps)
    losses = []
    source = training.batches(waves(512), device, batch_size=32)
    for _ in range(args.steps):
        x, y = next(source)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


if __name__ == "__main__":
    options = training.parser(__doc__, steps=30)
    training.add_optimizer_options(options, default="adamw")
    args = options.parse_args()
    training.run(lambda device: train(args, device), args, rtol=1e-3)
