"""The table of the benchmark on a CUDA device, for the README and the page about devices: measured, or said to be estimated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.markdown import table
from docs.measured import read

OURS, CAPTURED, EAGER = "ours", "ours, CUDA graph", "torch eager"
COMPILED = ("torch.compile", "torch.compile, CUDA graph")


def classes() -> str:
    """A row for each class of kernels; empty where there is no run."""
    record = read("gpu.json")
    if record is None:
        return ""
    return measured(record) if record["device"] else estimated(record)


def measured(record: Mapping[str, Any]) -> str:
    """Ours, captured too, what the model says of it, the best of torch.compile's modes over ours, eager over ours, the share
    of a copy's bandwidth.
    """
    device, summary = record["device"], record["summary"]
    head = ("class", "ours, ms", "captured, ms", "estimated, ms", "torch.compile takes", "torch eager takes",
            "of a copy's bandwidth", "cold compile, ms", "torch's, ms")  # fmt: skip
    expected = record.get("estimate", {}).get("classes", {})
    rows = [_measured_row(name, row, expected.get(name, {})) for name, row in record["classes"].items()]
    text = (
        f"{device['name']}, CUDA {device['cuda']}, {record['date']}: medians in which all take turns. Geometric means: "
        f"torch.compile takes {_times(summary['torch_over_ours'])}, {_share(summary['bandwidth_fraction'])} of a copy's "
        f"bandwidth, torch.compile's cold compile takes {_times(summary['torch_cold_compile_over_ours'])}."
    )
    return f"\n{text}\n\n{table(head, rows)}\n\n"


def _measured_row(name: str, row: Mapping[str, Any], expected: Mapping[str, Any]) -> tuple[str, ...]:
    if "failed" in row:
        return (f"`{name}`", row["failed"], "", "", "", "", "", "", "")
    ours, against, everyone = row["contestants"][OURS], row["times_of_ours"], row["contestants"]
    modes = [mode for mode in COMPILED if mode in against]
    best = min((against[mode]["median"] for mode in modes), default=None)
    eager = against[EAGER]["median"] if EAGER in against else None
    cold = min((everyone[mode]["cold_compile_ms"] for mode in modes), default=None)
    return (
        f"`{name}`{'' if ours['right'] else ' (wrong)'}", _milliseconds(ours), _milliseconds(everyone.get(CAPTURED)),
        f"{expected['milliseconds']:.3g}" if "milliseconds" in expected else "", _times(best), _times(eager),
        _share(ours["bandwidth_fraction"]), f"{ours['cold_compile_ms']:.0f}", "" if cold is None else f"{cold:.0f}",
    )  # fmt: skip


def _milliseconds(contestant: Mapping[str, Any] | None) -> str:
    return "" if contestant is None else f"{contestant['milliseconds']['median']:.3g}"


def estimated(record: Mapping[str, Any]) -> str:
    """What the model gives, where nothing could be measured."""
    found = record["estimate"]
    head = ("class", "estimated, ms", "of a copy's bandwidth", "next to that", "launches", "compile, ms")
    rows = [_estimated_row(name, row) for name, row in found["classes"].items()]
    text = (
        f"**Estimates, not measurements**: no device was there ({record['date']}). The model of the GPU target for an "
        f"{found['machine']}, from what the PTX interpreter counts. `next to that`: the resource behind the narrowest one, as "
        "a share of its time; near 100 % the estimate is too good, since resources never overlap wholly. Compiling: processor "
        "time from the function to machine code."
    )
    return f"\n{text}\n\n{table(head, rows)}\n\n"


def _estimated_row(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    if "failed" in row:
        return (f"`{name}`", row["failed"], "", "", "", "")
    longest = max(row["launches"], key=lambda launch: launch["microseconds"])
    (_, first), (second, limit), *_ = longest["limits_us"].items()
    share = row["bandwidth_fraction"] if "memory" in longest["limits_us"] else None
    cells = (f"{row['milliseconds']:.3g}", _share(share), f"{second} {limit / first:.0%}")
    bound = f" (bound by {longest['bound']})"
    return (f"`{name}`", cells[0] + bound, *cells[1:], str(len(row["launches"])), f"{row['compile_ms']:.0f}")


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} times"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
