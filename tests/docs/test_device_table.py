"""The table of the device benchmark: measured rows, rows that failed, and estimates that say so."""

from __future__ import annotations

from docs.device import COMPILED, EAGER, OURS, estimated, measured

SPREAD = {"median": 2.0, "low": 1.0, "high": 3.0}


def test_measured_classes_stand_beside_the_best_of_torch() -> None:
    ours = {"milliseconds": SPREAD, "bandwidth_fraction": 0.913, "right": True, "cold_compile_ms": 300.0}
    peers = {name: ours | {"cold_compile_ms": 9000.0 + k} for k, name in enumerate((*COMPILED, EAGER))}
    against = {COMPILED[0]: SPREAD, COMPILED[1]: SPREAD | {"median": 1.5}, EAGER: SPREAD | {"median": 4.0}}
    record = {
        "device": {"name": "NVIDIA H200", "cuda": 13000}, "date": "2026-01-01",
        "summary": {"torch_over_ours": 1.5, "bandwidth_fraction": 0.913, "torch_cold_compile_over_ours": 30.0},
        "classes": {
            "softmax": {"contestants": {OURS: ours, **peers}, "times_of_ours": against},
            "adam": {"failed": "not done after 45 s"},
        },
    }  # fmt: skip
    text = measured(record | {"estimate": {"classes": {"softmax": {"milliseconds": 1.9}}}})
    assert "| `softmax` | 2 |  | 1.9 | 1.50 times | 4.00 times | 91% | 300 | 9000 |" in text
    assert "| `adam` | not done after 45 s |" in text
    assert "Estimates" not in text


def test_estimates_are_called_estimates() -> None:
    launch = {"microseconds": 126.0, "bound": "memory", "limits_us": {"memory": 124.0, "l2": 98.0}}
    row = {"milliseconds": 0.126, "bandwidth_fraction": 0.99, "launches": [launch], "compile_ms": 250.0}
    text = estimated(
        {"date": "2026-01-01", "estimate": {"machine": "H200", "classes": {"softmax": row, "adam": {"failed": "no"}}}}
    )
    assert "**Estimates, not measurements**" in text
    assert "| `softmax` | 0.126 (bound by memory) | 99% | l2 79% | 1 | 250 |" in text
    assert "| `adam` | no |" in text
