# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples of wrong calls (`error_inputs` of operators, modules and optimizers) end on
tpu as on CPU: same exception type, same text.

DIFFERENT lists the samples that do not, each with its reason. A sample that is listed and agrees
fails the test, as one that differs and is not listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db
from torch.utils._pytree import tree_flatten, tree_map

from torch_tpu.testing import _error, _show, _text

_DEVICES = (
    "the sample's other device is meta for the CPU and the CPU for tpu, and the text names it"
)
_SPARSE = "the sample's parameters are sparse tensors, which tpu refuses by name"
DIFFERENT = {
    "op/gradient 3": _DEVICES,
    "op/gradient 10": _DEVICES,
    "op/gradient 17": _DEVICES,
    "op/masked_fill 2": "the meta function refuses the number first, in Python's words",
    "optim/SparseAdam 7": _SPARSE,
    "optim/SparseAdam 8": _SPARSE,
}

# A wrong call, run on the device for which it was made; and what tells it from its neighbours.
Call = Callable[[], object]
Samples = Callable[[str], Iterator[tuple[tuple, Call]]]


def described(regex: str, *values: Any) -> tuple:
    def one(v: Any) -> Any:
        if isinstance(v, torch.Tensor):
            return (tuple(v.shape), v.stride(), str(v.dtype), v.device.type == "meta")
        return repr(v).replace("tpu:0", "cpu").replace("tpu", "cpu")

    return (regex, *[one(v) for v in tree_flatten(values)[0]])


def of_operator(op: Any) -> Samples:
    def samples(device: str) -> Iterator[tuple[tuple, Call]]:
        for e in op.error_inputs(device):
            s = e.sample_input
            yield (
                described(e.error_regex, s.input, s.args, s.kwargs),
                lambda s=s: op(s.input, *s.args, **s.kwargs),
            )

    return samples


def of_module(info: Any) -> Samples:
    def samples(device: str) -> Iterator[tuple[tuple, Call]]:
        for e in info.module_error_inputs_func(
            info, device=device, dtype=torch.float32, requires_grad=False, training=True
        ):
            new, call = e.module_error_input.constructor_input, e.module_error_input.forward_input

            def run(e=e, new=new, call=call) -> object:
                module = info.module_cls(*new.args, **new.kwargs).to(device, torch.float32)
                if e.error_on is ModuleErrorEnum.CONSTRUCTION_ERROR:
                    return module
                return module(*call.args, **call.kwargs)

            values = [x for x in (new, call) if x is not None]
            yield described(e.error_regex, [(x.args, x.kwargs) for x in values]), run

    return samples


def of_optimizer(info: Any) -> Samples:
    def samples(device: str) -> Iterator[tuple[tuple, Call]]:
        twins: dict[int, torch.Tensor] = {}  # a parameter given twice stays one

        def moved(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            if id(x) not in twins:
                y = x.detach().to(device)
                twins[id(x)] = torch.nn.Parameter(y) if isinstance(x, torch.nn.Parameter) else y
            return twins[id(x)]

        # PyTorch makes most of them for the CPU only.
        for i, e in enumerate(info.optim_error_inputs_func(device="cpu", dtype=torch.float32)):
            given = e.optimizer_error_input

            def run(e=e, given=given) -> object:
                params, kwargs = tree_map(moved, (given.params, given.kwargs))
                optimizer = info.optim_cls(params, **kwargs)
                if e.error_on is OptimizerErrorEnum.STEP_ERROR:
                    optimizer.step(params)
                return optimizer

            yield described(e.error_regex, i), run

    return samples


ENTRIES: dict[str, Samples] = {}
for _op in op_db:
    if _op.error_inputs_func is not None:
        ENTRIES[f"op/{_op.name}.{_op.variant_test_name}".rstrip(".")] = of_operator(_op)
for _module in module_db:
    if _module.module_error_inputs_func is not None:
        ENTRIES[f"module/{_module.name}"] = of_module(_module)
for _optimizer in optim_db:
    if _optimizer.optim_error_inputs_func is not None:
        ENTRIES[f"optim/{_optimizer.name}"] = of_optimizer(_optimizer)


def same(a: Exception | None, b: Exception | None) -> bool:
    # A tensor type's own name has the device in it: torch.tpu.FloatTensor.
    texts = [_text(e).replace("torch.<device>.", "torch.") if e else "" for e in (a, b)]
    return type(a) is type(b) and texts[0] == texts[1]


def differences(entry: str) -> dict[str, str]:
    """What differs, by sample. Samples that only one device has are left out."""
    on_cpu = defaultdict(list)
    for key, call in ENTRIES[entry]("cpu"):
        on_cpu[key].append(call)
    found = {}
    for i, (key, call) in enumerate(ENTRIES[entry]("tpu")):
        if not on_cpu[key]:
            continue
        twin = on_cpu[key].pop(0)
        expected, actual = (
            _error(lambda _, c=twin: c(), "cpu"),
            _error(lambda _, c=call: c(), "tpu"),
        )
        if not same(expected, actual):
            shown = [_show(e) if e else "nothing" for e in (expected, actual)]
            found[f"{entry} {i}"] = f"cpu: {shown[0]}\n  tpu: {shown[1]}"
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", ENTRIES)
def test_wrong_calls_end_as_on_cpu(entry):
    found = differences(entry)
    new = [f"{name}\n  {text}" for name, text in found.items() if name not in DIFFERENT]
    assert not new, "\n".join(new)
    listed = {name for name in DIFFERENT if name.rsplit(" ", 1)[0] == entry}
    assert listed <= set(found), f"agree by now: {sorted(listed - set(found))}"


def test_listed_samples_exist():
    assert {name.rsplit(" ", 1)[0] for name in DIFFERENT} <= set(ENTRIES)
