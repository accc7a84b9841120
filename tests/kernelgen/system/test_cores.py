"""How many threads make sense: what the user says, against what the machine gives."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kernelgen.system import cores, notices
from kernelgen.system.cores import core_count, quota, thread_count


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that gives four processors."""
    notices.warn_once.cache_clear()
    monkeypatch.setattr(cores, "core_count", lambda: 4)


@pytest.mark.parametrize("text", ["", "²", "many", "0", "-3", "1e3", "4.0", ",", "9" * 5000])
def test_what_is_no_number_of_threads_says_nothing(four: None, text: str) -> None:
    assert thread_count({"OMP_NUM_THREADS": text}) is None
    assert thread_count({}) is None


@pytest.mark.parametrize(("text", "count"), [("1", 1), (" 3 ", 3), ("4", 4), ("2,1", 2)])
def test_a_number_that_the_machine_has_counts(
    four: None, text: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert thread_count({"OMP_NUM_THREADS": text}) == count
    assert not caplog.records


@pytest.mark.parametrize("text", ["5", "100000", "9" * 100])
def test_more_than_the_machine_has_is_told_once(four: None, text: str, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        assert thread_count({"OMP_NUM_THREADS": text}) == 4
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_there_is_at_least_one_processor() -> None:
    assert core_count() >= 1


VERSION_2 = {"a/cpu.max": "150000 100000", "a/b/cpu.max": "max 100000", "a/b/c/cpu.max": "400000 100000"}
VERSION_1 = {"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "100000", "cpu/cpu.cfs_quota_us": "-1"}


@pytest.mark.parametrize(
    ("files", "groups", "processors"),
    [
        (VERSION_2, "0::/a/b/c", 2),
        (VERSION_2, "0::/", None),
        (VERSION_2, "0::/elsewhere", None),
        ({"cpu.max": "300000 100000"}, "0::/", 3),
        ({"cpu.max": "300000 100000"}, "0::/not/visible/here", 3),
        (VERSION_1, "5:memory:/a\n4:cpu,cpuacct:/a/b\n0::/", 1),
        (VERSION_1, "4:cpuset:/a", None),
        ({"cpu.max": "nonsense"}, "0::/", None),
        ({"cpu.max": "1 0"}, "0::/", None),
        ({}, "", None),
    ],
)
def test_quotas_of_control_groups(tmp_path: Path, files: dict[str, str], groups: str, processors: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert quota(groups, tmp_path) == (processors or quota("", tmp_path))
