"""The table of AKG's published times beside our estimates, a generated part of the page about devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.markdown import table
from docs.measured import read


def shares() -> str:
    """For each class the shares of a V100's peak bandwidth; empty where there is no run."""
    record = read("v100.json")
    if record is None:
        return ""
    rows = [_row(name, entry) for name, entry in record["classes"].items()]
    missing = sum(row["estimated_us"] is None for row in record["kernels"])
    head = ("class", "kernels", "AKG, of the peak", "ours, estimated", "kernels > 1 MB", "AKG", "ours, estimated")
    return (
        f"\n{len(record['kernels'])} kernels, {missing} of them without an estimate; the peak is "
        f"{record['peak_bandwidth'] / 1e9:.0f} GB/s, a copy reaches {record['attainable']:.0%} of it. {record['date']}.\n\n"
        f"{table(head, rows)}\n\n"
    )


def _row(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    small, large = entry["all"], entry["large"]
    shown = [_percent(part[key]) for part in (small, large) for key in ("akg", "estimated")]
    return name, str(entry["kernels"]), *shown[:2], str(entry["large_kernels"]), *shown[2:]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
