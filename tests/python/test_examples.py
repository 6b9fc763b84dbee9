# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/, as a user starts them: loss curves equal the CPU's, and nothing falls
back to the host.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FORMS = ["for-loop", "foreach", "fused"]

pytestmark = pytest.mark.examples


def run_example(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / program), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{program} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def assert_trained_as_on_cpu(output: str) -> None:
    assert "the loss curves agree" in output
    assert "host fallback: none" in output


@pytest.mark.parametrize(
    "optimizer, form",
    [(name, form) for name in ("sgd", "adam", "adamw") for form in FORMS],
)
def test_digits_cnn_trains_as_on_cpu(optimizer, form):
    output = run_example(
        "train_digits_cnn.py", "--compare", "--optimizer", optimizer, "--form", form
    )
    assert_trained_as_on_cpu(output)
    accuracies = re.findall(r"accuracy on unseen digits ([\d.]+)", output)
    assert len(accuracies) == 2
    assert min(map(float, accuracies)) > 0.6, "40 steps are enough for most of the digits"


@pytest.mark.parametrize("form", FORMS)
def test_transformer_classifier_trains_as_on_cpu(form):
    assert_trained_as_on_cpu(
        run_example("train_transformer_classifier.py", "--compare", "--form", form)
    )


def test_lstm_trains_as_on_cpu():
    assert_trained_as_on_cpu(run_example("train_lstm.py", "--compare"))


def test_smollm2_finetunes_as_on_cpu():
    assert_trained_as_on_cpu(run_example("finetune_smollm2.py", "--compare"))


def test_smollm2_generates_the_cpus_text():
    answers = []
    for device in ("cpu", "tpu"):
        output = run_example("generate_smollm2.py", "--device", device, "--new-tokens", "24")
        answers.append(output.split("\n\n")[1])
    assert answers[0] == answers[1] and answers[0].strip()
    assert "host fallback: none" in output
