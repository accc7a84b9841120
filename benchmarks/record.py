"""One run as JSON, and as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.case import Problem
from benchmarks.contestants import LIMIT, OURS, TORCH, Contestant
from benchmarks.measure import Spread, Times, ratio

Record = dict[str, Any]


def case_record(problem: Problem, contestants: Sequence[Contestant], times: Times) -> Record:
    """Times in milliseconds, speed in GB/s, errors, and the ratios of peers and of the limit to ours."""
    rows = {one.name: _contestant_record(problem, one, times[one.name]) for one in contestants}
    against = {name: asdict(ratio(times, name, OURS)) for name in times if name != OURS}
    shapes = {name: list(shape) for name, shape in problem.shapes.items()}
    return {"shapes": shapes, "bytes": problem.bytes, "contestants": rows, "times_of_ours": against}


def _contestant_record(problem: Problem, contestant: Contestant, seconds: Sequence[float]) -> Record:
    spread = Spread.of(seconds, 1e3)
    answer = contestant.answer
    return {
        "milliseconds": asdict(spread),
        "gigabytes_per_second": problem.bytes / spread.median / 1e6,
        "largest_error": None if answer is None else problem.error(answer()),
    }


def table(cases: Mapping[str, Record]) -> str:
    """A line a case: our time, and how many times of it torch.compile and the limit take (median, least-greatest)."""
    lines = [f"{'case':18s}{'ours ms':>24s}{'torch.compile / ours':>28s}{'limit / ours':>28s}{'error':>10s}"]
    for name, record in cases.items():
        mine, against = record["contestants"][OURS], record["times_of_ours"]
        spreads = (mine["milliseconds"], against.get(TORCH), against.get(LIMIT))
        ours, peer, limit = (Spread(**spread) if spread else "-" for spread in spreads)
        lines.append(f"{name:18s}{ours!s:>24s}{peer!s:>28s}{limit!s:>28s}{mine['largest_error']:10.1e}")
    return "\n".join(lines)
