"""The compile-time table: its command runs, kernels that are lost or refused are counted, growth is an exponent."""

from __future__ import annotations

from benchmarks import compile_time


def test_generated_kernels_are_measured_in_a_fresh_process() -> None:
    found = compile_time.run(["chain"], tiny=True)
    assert [row["operators"] for row in found["chain"]] == [5, 10]
    assert found["chain"][1]["exponent"] < 3


def test_refusals_and_lost_kernels_cost_one_row(monkeypatch, tmp_path) -> None:
    bad = tmp_path / "bad.info"
    bad.write_text("{}")
    ends_the_process = "chain without a length"
    rows = list(compile_time._measured([str(bad), ends_the_process, "chain 3"]))
    assert ["refused" in rows[0], "lost" in rows[1], rows[2]["operators"]] == [True, True, 3]


def test_the_spread_of_a_table() -> None:
    assert compile_time._spread([1.0, 2.0, 3.0, 100.0]) == {"median": 2.5, "p95": 100.0, "max": 100.0}
    assert compile_time._spread([]) == {}
