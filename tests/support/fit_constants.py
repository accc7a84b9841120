"""Fits the six constants of the time model to six published rows, and says how far the model is off on the others.

Each constant follows from one row (the copy's start and bandwidth from two rows together), so the fit is arithmetic and
leaves nothing to choose. That two blocks from one bank group take two cycles is the manual's rule and is not fitted.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.machines.ascend.description import Rates
from kernelgen.machines.ascend.machines import A2_RATES, ASCEND_910B
from tests.support.published_times import ELEMENTS, KB, ROWS, Row, loads

LIMIT = 0.05
"""How far the model may be off on rows that it was not fitted to."""


def fit() -> Rates:
    """The rates that the fitted rows ask for, all others as they are."""
    measured = {row.fits: row.measured for row in ROWS if row.fits}
    cores = ASCEND_910B.vector_cores
    calls = ELEMENTS / 4096
    add = measured["vector_start"] * ASCEND_910B.gigahertz * 1000 / calls
    share = (32 * KB - 8 * KB) / (measured["copy_all_cores"] - measured["copy_start"])
    start = measured["copy_start"] - 8 * KB / share
    return replace(
        A2_RATES,
        vector_start=add - 2 * 32,
        mmad_start=measured["mmad_start"] - 8 * 16 * 4,
        load_start=(measured["load_start"] - loads(replace(A2_RATES, load_start=0.0))) / 2,
        copy_start=start,
        copy_one_core=8 * KB / (measured["copy_one_core"] - start),
        copy_all_cores=share * cores,
    )


def held_out() -> tuple[Row, ...]:
    """The rows that no constant was fitted to."""
    return tuple(row for row in ROWS if not row.fits)


def table(rates: Rates = A2_RATES) -> str:
    """The rows with measurement, model and error, as a Markdown table."""
    lines = ["| case | measured | model | error | used to fit |", "| --- | --- | --- | --- | --- |"]
    for row in ROWS:
        remark = f" ({row.remark})" if row.remark else ""
        used = f"`{row.fits}`" if row.fits else "no"
        figures = f"{row.measured:.5g} {row.unit} | {row.model(rates):.5g} | {row.error(rates):+.1%}"
        lines.append(f"| {row.case}{remark} | {figures} | {used} |")
    return "\n".join(lines)
