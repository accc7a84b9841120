"""The page of training steps: ours beside torch's, as the committed runs found them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.markdown import RUNS, page, table
from docs.measured import read

RECORDS = {"One thread": "training.json", "Two threads": "training_two_threads.json"}
OURS = "ours"
COMPILED = "torch.compile"

INTRODUCTION = """One step forward, backward and of the optimizer (AdamWeightDecay), weights and moments written in place, in
float32: `bert_2_layers` is two layers of BERT-base on 2 x 128 tokens, `bottleneck` a block of ResNet's first stage on
4 x 256 x 56 x 56. torch runs eagerly, compiled with its own loop over parameters (`torch.compile`), and with the step
compiled as a whole (`as one`); images also with channels last. All take turns in one process; one thread is measured by
processor time, two by the wall, medians. Before anything is measured each has made one step, and weights and moments are
compared with torch's in float64. `python -m benchmarks.training --layers 2 --json OUT` measures again."""


def training() -> Mapping[str, str]:
    """The page of the committed runs, if there are any."""
    records = {title: found for title, name in RECORDS.items() if (found := read(name)) is not None}
    if not records:
        return {}
    parts = [part for title, record in records.items() for part in (f"## {title}", _where(record), _table(record))]
    return {"docs/training.md": page("Training steps", INTRODUCTION, *parts, note=RUNS)}


def _where(record: Mapping[str, Any]) -> str:
    machine, loads = record["machine"], [found["load"] for found in record["programs"].values()]
    return f"{machine['processor']}, {machine['cores']} cores, {record['date']}; load {min(loads)} to {max(loads)}."


def _table(record: Mapping[str, Any]) -> str:
    programs: Mapping[str, Mapping[str, Any]] = record["programs"]
    peers = list(dict.fromkeys(peer for found in programs.values() for peer in found["times_of_ours"]))
    head = ("step", "kernels", "ours, ms", *(f"{peer} / ours" for peer in peers), "best compiled / ours")
    return table(head, [_row(name, found, peers) for name, found in programs.items()])


def _row(name: str, found: Mapping[str, Any], peers: list[str]) -> tuple[str, ...]:
    ratios = {peer: each["median"] for peer, each in found["times_of_ours"].items()}
    best = min(ratio for peer, ratio in ratios.items() if peer.startswith(COMPILED))
    cells = (f"{ratios[peer]:.2f}" if peer in ratios else "" for peer in peers)
    return f"`{name}`", str(found["kernels"]), f"{found['milliseconds'][OURS]['median']:.1f}", *cells, f"{best:.2f}"
