"""Farms in figures, as the committed records say: what handing out costs, what went wrong on purpose, what tuning gained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from docs.markdown import table
from docs.measured import read

DIGEST = re.compile("[0-9a-f]{32,}")


def hand_out() -> str:
    """Simulated workers, local ones, and what a shared cache is asked."""
    record = read("farm.json")
    if record is None:
        return ""
    head = ("workers", "seconds each", "answers a second", "at best", "processor, us per answer")
    rows = [
        (f"{row['workers']:,}", f"{row['seconds']:g}", f"{row['answers_per_second']:,.0f}", f"{row['at_best']:,.0f}",
         f"{row['processor_us_per_answer']:.0f}")
        for row in record["simulated"]
    ]  # fmt: skip
    seconds = record["workers"]["seconds"]
    local = ", ".join(f"{spent} s with {jobs}" for jobs, spent in seconds.items())
    asked = "; ".join(f"who {who}: {spelled(calls)}" for who, calls in record["exchanges"].items())
    return (
        f"{record['date']}, {record['cores']} cores, other work on the machine (load {record['load']:.0f}):\n\n"
        f"{table(head, rows)}\n\n"
        f"{record['workers']['files']} files of AKG's corpus with processes of the same machine: {local}; where other "
        f"work has the cores, more processes gain nothing.\n\n"
        f"Requests to the place of a shared cache for a network of one kernel: {asked}.\n"
    )


def spelled(calls: Mapping[str, int]) -> str:
    """Counts of fsspec's calls in words."""
    words = {"cat_file": "read", "pipe_file": "written", "rm_file": "removed", "exists": "looked for"}
    return ", ".join(f"{count} {words.get(name, name)}" for name, count in calls.items()) or "none"


def troubles() -> str:
    """What was done to a cluster, and what became of the answers."""
    record = read("farm_faults.json")
    if record is None:
        return ""
    head = ("what happened", "answers", "different", "twice", "seconds", "warnings")
    rows = [
        (name, f"{run['answers']} of {record['files']}", str(run["different"]), str(run["journal_lines_twice"]),
         f"{run['seconds']:.0f}", "; ".join(shortened(run["warnings"])) or "none")
        for name, run in record["runs"].items()
    ]  # fmt: skip
    return f"{table(head, rows)}\n"


def shortened(messages: Sequence[str]) -> list[str]:
    """Messages that differ in a digest alone are one of them and their number; digests are cut."""
    alike: dict[str, list[str]] = {}
    for message in messages:
        alike.setdefault(DIGEST.sub("", message), []).append(DIGEST.sub(lambda found: f"{found[0][:8]}...", message))
    return [found[0] if len(found) == 1 else f"{found[0]} ({len(found)} such messages)" for found in alike.values()]


def tuned() -> str:
    """What tuning gained on a model's kernels and on some of a corpus."""
    record = read("tuning.json")
    if record is None:
        return ""
    told = [f"- {name}: {_told(part)}" for name, part in record["summary"].items()]
    whole = f"- {record['model']} as a whole ({', '.join(record['dims'])}): {_of_network(record['network'])}"
    limits = f"at most {record['plans_at_most']} plans and {record['seconds_at_most']:g} s for a kernel"
    return "\n".join((f"{record['date']}, {limits}, load {record['load']:g}:\n", *told, whole, ""))


def _of_network(network: Mapping[str, Any] | None) -> str:
    if network is None:
        return "none of its kernels is another one, so nothing to time"
    low, high = network["ratio"]["quartiles"]
    rounds = f"half of {network['rounds']} rounds between {low:.2f} and {high:.2f}"
    return f"{network['ratio']['median']:.2f} of {network['untuned_ms']:.1f} ms ({rounds})"


def _told(part: Mapping[str, Any]) -> str:
    agreed, of = part["dask_same_choice_where_measurements_agree"]
    gains = f", these at {part['mean_of_kept']:.2f} of their time in the geometric mean, the best at {part['best']:.2f}"
    return (
        f"{part['kept']} of {part['kernels']} kernels faster by more than the noise{gains if part['kept'] else ''}; "
        f"followed again in another process "
        f"{part['same_bytes_again']} of {part['kernels']} are the same byte for byte; over dask the same choice for "
        f"{part['dask_same_choice']}, and for {agreed} of the {of} whose measurements agree"
    )
