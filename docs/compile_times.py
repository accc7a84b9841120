"""The page of compile times: stages over the AKG corpus, and growth with the number of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docs.markdown import RUNS, page, table
from docs.measured import read

SHOWN_STAGES = 12


def compile_times() -> Mapping[str, str]:
    """How long kernels take to compile, as the committed run found it."""
    record = read("compile.json")
    if record is None:
        return {}
    corpus, machine = record["cases"]["corpus"], record["machine"]
    total, lost = corpus["milliseconds"], len(corpus["lost"])
    text = (
        f"Milliseconds on one core of an {machine['processor']}, {record['date']}, with libraries loaded and an empty cache "
        f"of objects for every kernel. The AKG corpus: {corpus['files']} files, {corpus['refused']} refused, {lost} lost. "
        f"Median {total['median']:.0f} ms, 95th percentile {total['p95']:.0f} ms, at most {total['max']:.0f} ms. "
        "`load` is LLVM at work. `python -m benchmarks compile --json OUT` measures again."
    )
    growth = (
        "A chain of element-wise operators, and softmaxes one behind the other (five operators each). The exponent is that of "
        "the growth from the row before: 1 is linear."
    )
    return {
        "docs/compile_times.md": page(
            "How long kernels take to compile", text, table(("stage", "median", "p95", "max"), stage_rows(corpus)),
            "## The slowest of the corpus", table(("kernel", "operators", "ms"), slowest_rows(corpus)),
            "## Growth", growth, table(("kernel", "operators", "ms", "exponent", "slowest stages, ms"), growth_rows(record)),
            note=RUNS,
        )
    }  # fmt: skip


def stage_rows(corpus: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """All stages together, then those that take longest at the 95th percentile."""
    ranked = sorted(corpus["stages"].items(), key=lambda entry: (-entry[1]["p95"], -entry[1]["max"]))[:SHOWN_STAGES]
    rows = [("**all**", corpus["milliseconds"]), *((f"`{name}`", spread) for name, spread in ranked)]
    return [(name, *(f"{spread[key]:.1f}" for key in ("median", "p95", "max"))) for name, spread in rows]


def slowest_rows(corpus: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """The ten kernels that take longest."""
    return [(f"`{row['name']}`", str(row["operators"]), f"{row['milliseconds']:.0f}") for row in corpus["slowest"]]


def growth_rows(record: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """A row for each generated kernel; what was refused or lost says so."""
    rows: list[Sequence[str]] = []
    for name, entries in record["cases"].items():
        for row in entries if name != "corpus" else ():
            if "milliseconds" not in row:
                rows.append((f"`{row['name']}`", "", "", "", row.get("refused") or row.get("lost", "")))
                continue
            first = ", ".join(f"{stage} {spent:.0f}" for stage, spent in list(row["stages"].items())[:3])
            cells = (str(row["operators"]), f"{row['milliseconds']:.0f}", f"{row.get('exponent', '')}")
            rows.append((f"`{name}`", *cells, first))
    return rows
