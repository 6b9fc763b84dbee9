# SPDX-License-Identifier: Apache-2.0
"""The one-minute test that pre-commit runs: one step of everything that the rest stands on."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from torch_tpu.testing import assert_same_error, count_compiles


def test_training_step_equals_cpus():
    def step(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)
        ).to(device)
        x, y = torch.randn(5, 8).to(device), torch.tensor([0, 1, 2, 1, 0]).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        return [parameter.detach().cpu() for parameter in model.parameters()]

    assert_close(step("tpu"), step("cpu"))


def test_write_through_a_view_is_seen_by_its_base():
    x = torch.zeros(4, 6, device="tpu")
    x.t()[2:4].fill_(3.0)
    assert x.cpu()[:, 2:4].eq(3).all() and x.sum().item() == 24


def test_new_scalar_compiles_nothing():
    x = torch.ones(7, device="tpu")
    x * 1.5
    with count_compiles() as compiled:
        y = x * 2.5
    assert compiled == [] and y.tolist() == [2.5] * 7


def test_shape_error_reads_as_on_cpu():
    assert_same_error(lambda d: torch.ones(2, 3, device=d) + torch.ones(4, device=d))
