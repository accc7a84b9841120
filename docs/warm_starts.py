"""The page of warm starts: the time to the first result of a fresh process, beside onnxruntime's."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import Any

from docs.markdown import RUNS, page, table
from docs.measured import read

INTRODUCTION = """A fresh process loads a model that it has seen before and runs it once: by `gk.compile(gk.load(model))` with a
filled cache, by `gk.load_compiled(package)`, and by an onnxruntime session of the model as it comes. Imports are included,
numpy's too, which takes 55 ms of each; reading the inputs is not. Times are medians over fresh processes that take turns, as
shares of onnxruntime's: `wall` is what a user waits, `processor` the time of all threads together, which is steadier where
others work on the machine."""

HEAD = ("model", "onnxruntime, ms", "cache: wall", "processor", "package: wall", "processor")
WAYS, CLOCKS = ("cache", "package"), ("wall", "cpu")


def warm_starts() -> Mapping[str, str]:
    """The page of the committed run, if there is one."""
    record = read("warm_start.json")
    if record is None:
        return {}
    found: Mapping[str, Mapping[str, Any]] = record["models"]
    shares = {name: [_share(each, way, clock) for way in WAYS for clock in CLOCKS] for name, each in found.items()}
    means = [exp(sum(map(log, column)) / len(column)) for column in zip(*shares.values(), strict=True)]
    rows = [
        (f"`{name}`", f"{found[name]['onnxruntime']['first']['wall']:.0f}", *map(_text, each))
        for name, each in shares.items()
    ]
    before, after = record["load"]
    where = (
        f"{record['machine']['processor']}, {record['machine']['cores']} cores, Python {record['machine']['python']}, "
        f"{record['date']}, {record['rounds']} rounds. Others worked on the machine: its load was {before:.1f} when this "
        f"began and {after:.1f} when it ended."
    )
    again = "`python -m benchmarks.warm_start MODEL... --json OUT` measures again."
    rows.append(("geometric mean", "", *map(_text, means)))
    return {"docs/warm_start.md": page("Warm starts", INTRODUCTION, where, table(HEAD, rows), again, note=RUNS)}


def _share(each: Mapping[str, Any], way: str, clock: str) -> float:
    return each[way]["first"][clock] / each["onnxruntime"]["first"][clock]


def _text(share: float) -> str:
    return f"{share:.2f}"
