"""The page of compile times, from a small run."""

from __future__ import annotations

from docs import compile_times

CORPUS = {
    "milliseconds": {"median": 60.0, "p95": 200.0, "max": 900.0},
    "stages": {
        "build": {"median": 1.0, "p95": 2.0, "max": 80.0},
        "load": {"median": 40.0, "p95": 150.0, "max": 500.0},
    },
    "slowest": [{"name": "Fused_Add.info", "operators": 3, "milliseconds": 900.4}],
}
CHAIN = [
    {"operators": 25, "milliseconds": 100.0, "stages": {"load": 60.0, "group": 20.0, "source": 9.0, "fold": 1.0}},
    {"operators": 50, "milliseconds": 200.0, "stages": {"load": 150.0}, "exponent": 1.0},
    {"name": "chain 800", "refused": "[budget] too many"},
]


def test_stages_are_ranked_below_the_total() -> None:
    assert compile_times.stage_rows(CORPUS) == [
        ("**all**", "60.0", "200.0", "900.0"),
        ("`load`", "40.0", "150.0", "500.0"),
        ("`build`", "1.0", "2.0", "80.0"),
    ]


def test_growth_says_what_was_slowest_and_what_was_refused() -> None:
    assert compile_times.growth_rows({"cases": {"corpus": CORPUS, "chain": CHAIN}}) == [
        ("`chain`", "25", "100", "", "load 60, group 20, source 9"),
        ("`chain`", "50", "200", "1.0", "load 150"),
        ("`chain 800`", "", "", "", "[budget] too many"),
    ]


def test_the_slowest_kernels_are_named() -> None:
    assert compile_times.slowest_rows(CORPUS) == [("`Fused_Add.info`", "3", "900")]
