"""The time model: fitted on some published rows, right on the others; pipes overlap; the timeline shows it."""

from __future__ import annotations

import json
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kernelgen.machines.ascend.machines import A2_RATES
from kernelgen.simulators.ascendc.timeline import chrome_trace, picture
from tests.kernelgen.targets.ascend.kernels import SAMPLES
from tests.support import fit_constants as fit
from tests.support import published_times as published

PAGE = Path(__file__).parents[4] / "docs" / "ascend.md"
BEGIN, END = "<!-- published rows -->\n", "<!-- end of published rows -->"
SINGLE_BUFFER = ("int32_t half = i % 2", "int32_t half = 0")


@pytest.mark.parametrize("row", published.ROWS, ids=lambda row: row.case)
def test_model_is_close_to_the_measurement(row: published.Row) -> None:
    assert abs(row.error(A2_RATES)) <= fit.LIMIT


def test_rows_that_were_not_fitted() -> None:
    assert len(fit.held_out()) >= 6
    assert sum(row.unit == "us" for row in fit.held_out()) == 3
    assert len({row.fits for row in published.ROWS if row.fits}) == len(published.ROWS) - len(fit.held_out())


def test_machine_has_the_fitted_rates() -> None:
    assert astuple(A2_RATES) == pytest.approx(astuple(fit.fit()), rel=2e-3)


def test_model_without_conflicts_misses_the_rows() -> None:
    row = published.ROWS[1]
    assert published.addition(A2_RATES, 4096, 48, shift=256) < 0.7 * row.measured


def test_page_has_the_rows(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    shown, after = rest.split(END)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{before}{BEGIN}{fit.table()}\n{END}{after}")
    else:
        assert shown.strip() == fit.table(), "pytest --update-golden writes it"


def test_double_buffering_overlaps_the_pipes() -> None:
    double, _ = SAMPLES["double"].run()
    single, _ = SAMPLES["double"].run(*SINGLE_BUFFER)
    assert double.clean
    assert single.clean
    assert single.cycles / double.cycles > 1.1
    busy = double.pipe_cycles()
    assert sum(busy.values()) > double.pipeline_cycles > max(busy.values())
    assert double.bound_by == "MTE2"


def test_spans_of_a_pipe_do_not_overlap() -> None:
    report, _ = SAMPLES["double"].run()
    for core in (0, 1):
        for pipe in ("V", "MTE2", "MTE3"):
            spans = [one for one in report.spans if (one.core, one.pipe) == (core, pipe)]
            assert all(one.stop <= two.start for one, two in pairwise(spans))


def test_chrome_trace_names_cores_pipes_and_lines() -> None:
    report, _ = SAMPLES["single"].run()
    trace = json.loads(chrome_trace(report))
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {event["tid"] for event in events} == {"MTE2", "V", "MTE3"}
    assert {event["pid"] for event in events} == {0, 1}
    first = events[0]
    assert (first["name"], first["args"]["line"]) == ("DataCopy", 25)
    assert trace["otherData"]["note"] == "estimate, never measured by us"


def test_picture_has_a_bar_for_every_instruction() -> None:
    report, _ = SAMPLES["double"].run()
    root = ElementTree.fromstring(picture(report))
    bars = [one for one in root.iter("{http://www.w3.org/2000/svg}rect") if len(one)]
    assert len(bars) == sum(span.core == report.slowest for span in report.spans)
    text = " ".join(one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "bound by MTE2" in text
    assert "estimate, never measured by us" in text
