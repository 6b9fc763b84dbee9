# SPDX-License-Identifier: Apache-2.0
"""A small CNN with batch normalization learns scikit-learn's 8x8 digits.

    python examples/train_digits_cnn.py [--optimizer NAME] [--form FORM] [--steps N] [--compare]

Uses: convolution, BatchNorm2d (running statistics), max pooling, a pinned DataLoader, a step
scheduler; at the end the accuracy on digits that it has not seen.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

import training


def digits() -> tuple[TensorDataset, TensorDataset]:
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    y = torch.tensor(labels, dtype=torch.int64)
    return TensorDataset(x[:1500], y[:1500]), TensorDataset(x[1500:], y[1500:])


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4, 10),
    )


def accuracy(model: nn.Module, data: TensorDataset, device: torch.device) -> float:
    x, y = (part.to(device) for part in data.tensors)
    with torch.no_grad():
        return (model.eval()(x).argmax(-1) == y).float().mean().item()


def train(args, device: torch.device) -> list[float]:
    torch.manual_seed(0)
    model = network().to(device)
    train_data, test_data = digits()
    rate = {"sgd": 0.02, "adam": 3e-3, "adamw": 3e-3}[args.optimizer]
    optimizer = training.OPTIMIZERS[args.optimizer](
        model.parameters(), rate, **training.FORMS[args.form]
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.5)

    losses = []
    source = training.batches(train_data, device, batch_size=64)
    for _ in range(args.steps):
        x, y = next(source)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
    losses = torch.stack(losses).tolist()  # one read at the end: the device is never waited for
    print(f"{device}: accuracy on unseen digits {accuracy(model, test_data, device):.3f}")
    return losses


if __name__ == "__main__":
    options = training.parser(__doc__, steps=40)
    training.add_optimizer_options(options, default="sgd")
    args = options.parse_args()
    training.run(lambda device: train(args, device), args, rtol=1e-3)
