"""The page of models as people bring them: which run, how near to onnxruntime, and what they take beside it."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import Any

from docs.markdown import RUNS, page, table
from docs.measured import read

INTRODUCTION = """Published ONNX files (onnx's own light models; the packages silero-vad, rapidocr-onnxruntime, magika and
onnx-asr), networks that torchvision and transformers export, with known and with open extents, and what onnxruntime's
quantizer makes of some. Inputs are drawn by what onnxruntime says of them, for two sizes of open extents. Types and shapes
are onnxruntime's; numbers are at most 1e-4 of the largest apart, or sixteen times as far as onnxruntime's own results are
when its optimizations are off or inputs and weights move by a unit in the last place. Each side runs in a process of its
own: from its start to the first result, imports included."""

COLUMNS = """`apart`: the largest difference over the largest value. `memory`: the peak of the process over that of
onnxruntime's, with nothing in the cache, and with all in it. `start`: the same for the time to the first result."""


def models() -> Mapping[str, str]:
    """The page of the committed run, if there is one."""
    record = read("models.json")
    if record is None:
        return {}
    found: Mapping[str, Mapping[str, Any]] = record["models"]
    ran = {name: each for name, each in found.items() if not isinstance(each["onnxruntime"], str)}
    good = {name: each for name, each in ran.items() if each.get("wrong") == []}
    rows = [(f"`{name}`", f"{each['bytes'] / 2**20:.1f}", *_cells(each)) for name, each in ran.items()]
    rest = [f"`{name}`: {each['onnxruntime']}" for name, each in found.items() if name not in ran]
    summary = (
        f"{len(good)} of {len(ran)} agree. Geometric means over these: memory {_mean(good, 'cold', 'peak_kib'):.2f} cold, "
        f"{_mean(good, 'warm', 'peak_kib'):.2f} warm; time to the first result {_mean(good, 'cold', 'seconds'):.2f} cold, "
        f"{_mean(good, 'warm', 'seconds'):.2f} warm. {record['machine']['processor']}, {record['machine']['cores']} cores, "
        f"{record['date']}{_at_load(record)}."
    )
    head = ("model", "MiB", "apart", "memory", "warm", "start", "warm")
    return {
        "docs/models.md": page(
            "Models as people bring them",
            INTRODUCTION,
            summary,
            COLUMNS,
            table(head, rows),
            *(
                ["onnxruntime takes no inputs that were tried, or does not load: " + "; ".join(rest) + "."]
                if rest
                else []
            ),
            "`python -m benchmarks.peers.published_models FOLDER` collects the published files, "
            "`python -m benchmarks.peers.architectures FOLDER/exported` exports the networks, "
            "`python -m benchmarks.models FOLDER --json OUT` measures again.",
            note=RUNS,
        )
    }


def _at_load(record: Mapping[str, Any]) -> str:
    """How many programs were at work besides, which tells what seconds are worth."""
    return f", at a load of {record['load'][0]} to {record['load'][1]}: memory is what it always is, times are not"


def _cells(each: Mapping[str, Any]) -> tuple[str, ...]:
    if each.get("wrong") != []:
        said = (
            each["wrong"][0]
            if each.get("wrong")
            else next(x for x in (each["cold"], each["warm"]) if isinstance(x, str))
        )
        return (f"**no**: {said}", "", "", "", "")
    shares = [_share(each, side, what) for what in ("peak_kib", "seconds") for side in ("cold", "warm")]
    return (f"{each['apart']:.0e}" if each["apart"] else "0", *(f"{share:.2f}" for share in shares))


def _share(each: Mapping[str, Any], side: str, what: str) -> float:
    return each[side][what] / each["onnxruntime"][what]


def _mean(found: Mapping[str, Mapping[str, Any]], side: str, what: str) -> float:
    return exp(sum(log(_share(each, side, what)) for each in found.values()) / max(len(found), 1))
