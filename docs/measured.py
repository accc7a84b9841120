"""Pages of what was measured at the graph level: the networks' table, and how the time grows with the graph."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.exported import exported
from docs.markdown import RUNS, page, table

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
TARGETS = ("cpu", "gpu", "ascend")
HALF = "float16"
COLOURS = {"transformer": "#1f6feb", "chain": "#bf3989", "fan_out": "#1a7f37", "branches": "#9a6700"}
WIDTH, HEIGHT, MARGIN = 640, 400, 60

Rows = Sequence[Sequence[str]]


def read(name: str) -> Mapping[str, Any] | None:
    """A committed record, if there is one."""
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else None


# ---------------------------------------------------------------- networks


def networks() -> Mapping[str, str]:
    """What the levels make of whole networks, as the committed run found it."""
    record, ancestor = read("networks.json"), read("mindspore_counts.json")
    if record is None:
        return {}
    head = (
        "network",
        "level",
        *(f"launches, bytes: {target}" for target in TARGETS),
        "MindSpore, cpu",
        "optimize, s",
    )
    sizes = "; ".join(f"`{name}`: {case['size']}" for name, case in record["cases"].items())
    halves = [name for name in record["cases"] if name.endswith(HALF)]
    exact = largest_error(record, [name for name in record["cases"] if name not in halves])
    coarse = f", in float16 to {largest_error(record, halves):.1e}" if halves else ""
    older = [f"`{name}` {case['date']}" for name, case in record["cases"].items() if case["date"] != record["date"]]
    measured = ", ".join((record["date"], *older))
    theirs = "" if ancestor is None else (
        f"The same networks built from MindSpore {ancestor['mindspore']}'s own layers, compiled there for the CPU on "
        f"{ancestor['date']} (`python -m benchmarks.peers.mindspore_counts --json OUT`). Its numbers differ at level 0 where "
        "its layers are made of other operators than ours. "
    )  # fmt: skip
    text = (
        "A kernel is a launch, or several on a gpu where blocks wait for each other's sums; so is an operator outside of "
        "kernels; views (Reshape and the like) launch nothing. Bytes are those "
        "of operands and results of all launches, each tensor once a launch, constants of one element left out. The last "
        f"column is the processor time of `optimize` on each target. {theirs}"
        f"The numbers of every optimized graph are those of the graph to {exact:.1e} of the largest magnitude of an output"
        f"{coarse}. "
        f"{sizes}. Measured {measured}: `python -m benchmarks networks --json OUT`."
    )
    rows = table(head, network_rows(record, ancestor))
    return {"docs/networks.md": page("Whole networks", text, rows, *exported(), note=RUNS)}


def largest_error(record: Mapping[str, Any], names: Sequence[str]) -> float:
    """The largest error of the networks at any level on any target."""
    cases = [record["cases"][name] for name in names]
    return max(case[target][level]["largest_error"] for case in cases for target in TARGETS for level in case[target])


def network_rows(record: Mapping[str, Any], ancestor: Mapping[str, Any] | None) -> Rows:
    """A row for each network and level: launches and bytes on each target, and what MindSpore launches on the CPU."""
    rows: list[Sequence[str]] = []
    for name, case in record["cases"].items():
        before = case["before"]
        rows.append(
            (f"`{name}`", "0", *[f"{before['outside']}, {size(before['bytes'])}"] * 3, theirs(ancestor, name, 0), "")
        )
        for level in (1, 2, 3):
            found = [case[target][f"level{level}"] for target in TARGETS]
            cells = [f"{launched(row)} ({row['kernels']} kernels), {size(row['bytes'])}" for row in found]
            seconds = ", ".join(f"{row['optimize_seconds']:.2f}" for row in found)
            rows.append(("", str(level), *cells, theirs(ancestor, name, level), seconds))
    return rows


def theirs(ancestor: Mapping[str, Any] | None, name: str, level: int) -> str:
    """MindSpore's launches and bytes for the network on the CPU."""
    levels = (ancestor or {"nets": {}})["nets"].get(name, {})
    counts = levels.get(f"level{level or 1}", {})
    if "failed" in counts or not counts:
        return counts.get("failed", "")
    row = counts["after" if level else "before"]
    held = f" ({row['kernels']} kernels)" if level else ""
    return f"{launched(row)}{held}, {size(row['bytes'])}"


def launched(row: Mapping[str, int]) -> int:
    """Launches; of the ancestor's records kernels and operators outside of kernels, each of which is one there."""
    return row.get("launches", row["kernels"] + row["outside"])


def size(count: int) -> str:
    """Bytes for people: 829 MB."""
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.2f} GB"


# ---------------------------------------------------------------- growth


def scale() -> Mapping[str, str]:
    """How the time of optimize grows with the graph, as the committed run found it."""
    record = read("scale.json")
    if record is None:
        return {}
    head = ("graph", "operators", "seconds", "exponent", "peak, MB", "launches", "slowest passes, s")
    text = (
        f"`optimize` at level 2 for the CPU on one core of an {record['machine']['processor']}, {record['date']}, each size in "
        "a process of its own; seconds are processor time. The exponent is that of the growth from the row before: 1 is "
        "linear. The dashed line grows linearly. `python -m benchmarks scale --json OUT` measures again.\n\n"
        "![seconds over operators](growth.svg)"
    )
    found = page("How optimize grows with the graph", text, table(head, growth_rows(record)), note=RUNS)
    return {"docs/growth.md": found, "docs/growth.svg": growth_plot(record)}


def growth_rows(record: Mapping[str, Any]) -> Rows:
    """A row for each shape and size."""
    return [
        (
            f"`{name}`", f"{row['operators']:,}", f"{row['seconds']:.2f}", f"{row.get('exponent', '')}",
            f"{row['peak_megabytes']:.0f}", f"{row['launches']:,}", slowest(row["passes"]),
        )
        for name, rows in record["cases"].items()
        for row in rows
    ]  # fmt: skip


def slowest(passes: Mapping[str, float]) -> str:
    """The three passes that take longest."""
    first = sorted(passes.items(), key=lambda entry: -entry[1])[:3]
    return ", ".join(f"{name.partition('_')[2]} {seconds:.2f}" for name, seconds in first)


def growth_plot(record: Mapping[str, Any]) -> str:
    """Seconds over operators, both logarithmic, as an SVG; a dashed line shows linear growth."""
    series = {name: [(row["operators"], row["seconds"]) for row in rows] for name, rows in record["cases"].items()}
    points = [point for line in series.values() for point in line]
    across = Axis.around([x for x, _ in points], MARGIN, WIDTH - 20)
    up = Axis.around([y for _, y in points], HEIGHT - MARGIN, 20)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *(f'<path d="M{across.at(x):.1f} 20V{HEIGHT - MARGIN}" stroke="#ddd"/>' for x in across.decades),
        *(f'<path d="M{MARGIN} {up.at(y):.1f}H{WIDTH - 20}" stroke="#ddd"/>' for y in up.decades),
        *(text(across.at(x), HEIGHT - MARGIN + 18, f"{x:,.0f}", "middle") for x in across.decades),
        *(text(MARGIN - 8, up.at(y) + 4, f"{y:g} s", "end") for y in up.decades),
        text((MARGIN + WIDTH) / 2, HEIGHT - 15, "operators", "middle"),
        linear(min(points), across, up),
    ]
    for index, (name, line) in enumerate(series.items()):
        way = " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in line)
        colour = COLOURS.get(name, "#555")
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{across.at(x):.1f}" cy="{up.at(y):.1f}" r="3" fill="{colour}"/>' for x, y in line]
        parts.append(text(MARGIN + 12, 36 + 16 * index, name, "start", colour))
    return "\n".join([*parts, "</svg>", ""])


class Axis:
    """A logarithmic axis over whole decades, from one pixel to another."""

    def __init__(self, low: int, high: int, first: float, last: float) -> None:
        self.low, self.high, self.first, self.last = low, high, first, last

    @staticmethod
    def around(values: Sequence[float], first: float, last: float) -> Axis:
        """The decades that hold the values."""
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return Axis(low, max(high, low + 1), first, last)

    @property
    def decades(self) -> list[float]:
        """The powers of ten on the axis."""
        return [10.0**power for power in range(self.low, self.high + 1)]

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.first + (math.log10(value) - self.low) / (self.high - self.low) * (self.last - self.first)


def linear(start: tuple[float, float], across: Axis, up: Axis) -> str:
    """The line of linear growth through a point, as far as the plot goes."""
    x, y = start
    factor = min(across.decades[-1] / x, up.decades[-1] / y)
    ends = (across.at(x), up.at(y), across.at(x * factor), up.at(y * factor))
    return '<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}" stroke="#888" stroke-dasharray="4 4"/>'.format(*ends)


def text(x: float, y: float, words: str, anchor: str, colour: str = "#333") -> str:
    """A text element."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'
