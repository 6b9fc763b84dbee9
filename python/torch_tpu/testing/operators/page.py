# SPDX-License-Identifier: Apache-2.0
"""docs/operators.json, the record of the last survey; docs/operators.md, the same for readers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from torch_tpu.testing.operators.entries import checks_of, entries
from torch_tpu.testing.operators.reasons import reason

__all__ = ["COMPLETE", "all_checks", "lowerings", "load", "save", "stale", "status", "summary"]

# The column that is kept complete; the plugins run the same programs.
COMPLETE = "xla-cpu-pjrt"
# The worst first: an entry is what its worst check is.
ORDER = ["crash", "timeout", "wrong", "error", "missing", "listed", "pass", "none"]


def lowerings() -> list[str]:
    """The names in the code's registry."""
    from torch_tpu import _C

    return sorted(_C.lowerings())


def all_checks() -> list[tuple[str, str]]:
    """Every (entry, check), the deep ones first."""
    pairs = [(entry, check) for entry in entries() for check in checks_of(entry)]
    first = {entry: checks_of(entry)[0] for entry in entries() if checks_of(entry)}
    return sorted(pairs, key=lambda p: first[p[0]] != p[1])


def load(path: Path) -> dict[str, Any]:
    """The record at `path`, or an empty one."""
    if path.exists():
        return json.loads(path.read_text())
    return {"torch": "", "lowerings": [], "decomposed": [], "plugins": {}}


def save(path: Path, record: dict[str, Any]) -> None:
    """Writes the record, and beside it the page; what the databases no longer have is left out."""
    import torch

    record["torch"] = torch.__version__.partition("+")[0]
    record["decomposed"] = sorted(set(record["decomposed"]) - set(record["lowerings"]))
    for column in record["plugins"].values():
        for e in set(column) - set(entries()):
            del column[e]
        for e in column:
            column[e] = {c: column[e][c] for c in checks_of(e) if c in column[e]}
    path.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n")
    path.with_suffix(".md").write_text(render(record))


def status(column: dict[str, Any], entry: str, check: str) -> tuple[str, str]:
    """What a column says of a check, reasons applied: kind and text. ("", "") if it was not run."""
    kind, text = (*column.get(entry, {}).get(check, [""]), "")[:2]
    why = reason(entry, check)
    if why and kind not in ("", "pass", "none", "crash", "timeout"):
        return "listed", why
    return kind, text


def entry_status(column: dict[str, Any], entry: str) -> tuple[str, str]:
    """The worst of an entry's checks, and its text after the check's name."""
    found = [
        (ORDER.index(kind), kind, check, text)
        for check in checks_of(entry)
        for kind, text in [status(column, entry, check)]
        if kind
    ]
    if not found:
        return "", ""
    _, kind, check, text = min(found)
    return kind, "" if kind in ("pass", "none") else f"{check}: {text}"


def stale(record: dict[str, Any]) -> list[str]:
    """What in the record is not of this code: entries and lowerings that one has and the other has
    not.
    """
    column = record["plugins"].get(COMPLETE, {})
    recorded = {(e, c) for e, checks in column.items() for c in checks}
    differences = [f"check {e} {c}" for e, c in sorted(recorded ^ set(all_checks()))]
    differences += [f"lowering {n}" for n in sorted(set(record["lowerings"]) ^ set(lowerings()))]
    return differences


def _counts(column: dict[str, Any], kind: str) -> Counter[str]:
    return Counter(
        entry_status(column, e)[0] for e in entries() if e.startswith(kind + "/") and e in column
    )


def summary(record: dict[str, Any]) -> str:
    """Totals, a line for each plugin and database."""
    lines = []
    for plugin, column in record["plugins"].items():
        for kind in ("op", "module", "optim"):
            counts = _counts(column, kind)
            texts = ", ".join(f"{k} {counts[k]}" for k in reversed(ORDER) if counts[k])
            lines.append(f"{plugin} {kind}: {sum(counts.values())} entries: {texts}")
    return "\n".join(lines)


TITLES = {"op": "Operators", "module": "Modules", "optim": "Optimizers"}


def render(record: dict[str, Any]) -> str:
    """The page."""
    plugins = list(record["plugins"])
    lines = [
        "# What works",
        "",
        f"PyTorch {record['torch']}'s own databases of operators (`op_db`), modules (`module_db`) "
        "and optimizers (`optim_db`), run on `tpu` against",
        "the CPU, host fallback off. Written by `make operators-page`; do not edit. "
        "What each check found is in `operators.json`.",
        "",
        "An entry *passes* if all its checks do: values, shapes and dtypes in float32 with "
        "gradients, in bfloat16, int64, bool, complex64 and",
        "float64 where the operator has them, in place (through a view), and with `out=` (strided, "
        "empty, wrong-sized). It is *missing* if a",
        "check ends in a NotImplementedError that names operator, dtypes and shapes. It is "
        "*listed* if there is a reason why it should not pass.",
        "Drawn values are compared by shape and dtype only.",
        "",
        f"Lowerings: {len(record['lowerings'])}. Operators that run by PyTorch's decompositions, "
        f"seen in these runs: {len(record['decomposed'])}.",
        "",
        "| Plugin | Database | Entries | "
        + " | ".join(k.capitalize() for k in reversed(ORDER))
        + " |",
        "|---|---|---|" + "---|" * len(ORDER),
    ]
    for plugin in plugins:
        for kind, title in TITLES.items():
            counts = _counts(record["plugins"][plugin], kind)
            lines.append(
                f"| {plugin} | {title} | {sum(counts.values())} | "
                + " | ".join(str(counts[k]) for k in reversed(ORDER))
                + " |"
            )
    for kind, title in TITLES.items():
        lines += [
            "",
            f"## {title}",
            "",
            "| Entry | " + " | ".join(plugins) + " | First that does not pass |",
            "|---|" + "---|" * (len(plugins) + 1),
        ]
        for entry in entries():
            if not entry.startswith(kind + "/"):
                continue
            found = [entry_status(record["plugins"][p], entry) for p in plugins]
            text = next((t for _, t in found if t), "").replace("|", "\\|")
            lines.append(
                f"| {entry.partition('/')[2]} | "
                + " | ".join(k or "not run" for k, _ in found)
                + f" | {text[:200]} |"
            )
    return "\n".join(lines) + "\n"
