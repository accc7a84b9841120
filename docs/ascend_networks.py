"""The page of whole networks on Ascend: every kernel that was simulated, with the estimate of its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docs.markdown import RUNS, page, table
from docs.measured import read


def ascend_networks() -> Mapping[str, str]:
    """What the simulator said of the kernels of whole networks, as the committed run found it."""
    record = read("ascend_networks.json")
    if record is None:
        return {}
    text = (
        "`graphkernel convert --fmk=ONNX --optimize=ascend_oriented` makes and simulates every distinct kernel of a network: "
        "the text is read back, its order proved, its results compared with the reference. Times are **estimates of a "
        f"model, never measured by us**. Run {record['date']}: `python -m benchmarks ascend --json OUT`."
    )
    parts = [part for name, case in record["cases"].items() for part in _network(name, case)]
    return {"docs/ascend_networks.md": page("Networks on Ascend", text, *parts, note=RUNS)}


def _network(name: str, case: Mapping[str, Any]) -> Iterator[str]:
    left = case["left_to_the_vendor"]
    named = ", ".join(f"{count} {operator}" for operator, count in left.items())
    scaled = sum(row.get("scaled", False) for row in case["rows"])
    yield f"## {name}"
    yield (
        f"{case['operators']} operators; {case['kernel_calls']} kernel calls, {case['kernels']} distinct kernels: "
        f"{case['passed']} passed in the simulator, {case['refused']} refused, {scaled} simulated at smaller shapes. "
        f"{sum(left.values())} operators are left to the vendor: {named}. {case['views']} views, for which nothing runs. "
        f"Machine {case['machine']}; all of it took {case['seconds']:.0f} s."
    )
    yield table(("kernel", "calls", "simulated with", "estimate, us", "bound by", "error"), _rows(case))


def _rows(case: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for row in case["rows"]:
        if "bound_by" not in row:
            rows.append((f"`{row['kernel']}`", str(row["calls"]), row["reason"], "", "", ""))
            continue
        shapes = row["simulated_shapes"]
        given = ", ".join("x".join(map(str, shape)) for shape in shapes[:2]) + (", ..." if len(shapes) > 3 else "")
        time, error = f"{row['estimated_microseconds']:.2f}", f"{row['largest_error']:.0e}"
        rows.append((f"`{row['kernel']}`", str(row["calls"]), given, time, row["bound_by"], error))
    return rows
