"""Records of random kernels: runs over seeds that follow each other are one record, others are not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.random_kernels.records import joined


def record(seed: int, kernels: int, failed: int = 0, commit: str = "a", target: str = "ascend") -> dict[str, Any]:
    """A record of which every second kernel is refused."""
    skipped = kernels // 2
    return {
        "target": target, "guard": False, "commits": {commit: kernels}, "seed": seed, "kernels": kernels,
        "passed": kernels - skipped - failed, "skipped": skipped, "failed": failed,
        "operators": 3 * kernels, "by_operator": {"Add": kernels, f"Op{seed}": 2 * kernels}, "traits": {"bool": kernels},
        "refusals": {"float64": skipped}, "first_seed_refused": {"float64": seed + 1},
        "failures": [{"seed": seed}] * failed, "seconds": 10, "date": f"2026-11-{10 + seed // 100}",
    }  # fmt: skip


def test_one_record_holds_what_several_do() -> None:
    found = joined([record(400, 50, 1, "b"), record(0, 250), record(250, 150)])
    assert list(found) == list(record(0, 1))
    assert found == {
        **record(0, 450), "commits": {"a": 400, "b": 50}, "failed": 1, "passed": 224, "failures": [{"seed": 400}],
        "by_operator": {"Op0": 500, "Add": 450, "Op250": 300, "Op400": 100}, "seconds": 30, "date": "2026-11-14",
    }  # fmt: skip


@pytest.mark.parametrize("other", [record(249, 50), record(251, 50), record(250, 50, target="gpu")])
def test_runs_that_do_not_follow_each_other_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"seeds|beside"):
        joined([record(0, 250), other])
