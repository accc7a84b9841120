"""What long runs found, as the committed records say: fuzzers, faults of a machine, compilations in one process."""

from __future__ import annotations

from collections.abc import Sequence

from docs.markdown import table
from docs.measured import read

FUZZERS = ("onnx_models", "onnx_bytes", "text_ir", "composite_json", "flags", "plans")
ENDS = ("samples", "passed", "refused", "explained", "wrong", "internal", "crash", "hang")
"""How samples end, in the words of a record."""


def fuzzers() -> str:
    """A row for each fuzzer and level."""
    rows: list[Sequence[str]] = []
    for name in FUZZERS:
        levels = (read(f"fuzz_{name}.json") or {"levels": {}})["levels"]
        for level, counts in levels.items():
            at_level = f", level {level}" if len(levels) > 1 else ""
            rows.append((f"`{name}`{at_level}", *(f"{counts[end]:,}" for end in ENDS)))
    return f"{table(('fuzzer', *ENDS), rows)}\n"


def faults() -> str:
    """A row for each fault."""
    record = read("faults.json") or {}
    rows = [(f"`{name}`", str(entry["count"]), str(len(entry["problems"]))) for name, entry in record.items()]
    return f"{table(('fault', 'times', 'problems'), rows)}\n"


def memory() -> str:
    """The growth of a process that compiles."""
    record = read("memory.json")
    if record is None:
        return ""
    grown = [
        f"{found['growth_bytes'] / 1e6:.1f} MB with {what}"
        for what, found in (
            ("nothing kept on disk", record["cache off"]),
            ("everything kept there", record["cache on"]),
        )
    ]
    after = f"{record['compiles']:,} kernels compiled, run and let go of in one process, after the first fifth"
    return f"{after}: {' and '.join(grown)}.\n"
