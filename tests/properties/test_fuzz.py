"""Every fuzzer runs for some seeds, kept findings stay mended, and planted faults are found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planted_fuzzer import BROKEN, DIES, EATS_MEMORY, FINE, HANGS, INTERNAL, REFUSED, WRONG

from tests.fuzz.kept import FOLDER, keep, read, replay
from tests.fuzz.outcome import Kind, Outcome
from tests.fuzz.pool import Job, Result, Task, run, work
from tests.fuzz.record import Record

PLANTED = "tests.support.planted_fuzzer"
KEPT = {path: read(path) for path in sorted(FOLDER.glob("*.json"))}
SEEDS = {"text_ir": 40, "composite_json": 80, "flags": 80, "onnx_bytes": 80, "plans": 20}


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_without_a_finding(name: str) -> None:
    outcomes = {seed: work(Task(seed), Job(name)).outcome for seed in range(SEEDS[name])}
    assert {seed: outcome for seed, outcome in outcomes.items() if outcome.is_finding} == {}
    assert Kind.PASSED in {outcome.kind for outcome in outcomes.values()}


@pytest.mark.parametrize("name", sorted({kept.fuzzer for kept in KEPT.values()}))
def test_findings_that_were_kept_are_mended(name: str) -> None:
    cases = [path for path, kept in KEPT.items() if kept.fuzzer == name]
    outcomes = dict(zip(cases, replay([KEPT[path] for path in cases]), strict=True))
    assert {path.name: outcome for path, outcome in outcomes.items() if outcome.is_finding} == {}


def planted(*seeds: int, **job: object) -> dict[int, Outcome]:
    tasks = [Task(seed) for seed in seeds]
    return {result.task.seed: result.outcome for result in run(tasks, Job(PLANTED, **job), 1)}  # pyright: ignore[reportArgumentType]


def test_every_end_is_told_apart_and_the_next_seed_is_worked() -> None:
    found = planted(FINE, REFUSED, WRONG, INTERNAL, DIES, FINE + 8, EATS_MEMORY, BROKEN, REFUSED + 8, level=3)
    assert [outcome.kind for outcome in found.values()] == [
        Kind.PASSED, Kind.REFUSED, Kind.WRONG, Kind.INTERNAL, Kind.CRASH, Kind.PASSED, Kind.INTERNAL, Kind.INTERNAL,
        Kind.REFUSED,
    ]  # fmt: skip
    assert found[WRONG].reason == "wrong at level 3"
    assert found[INTERNAL].reason == "here: KeyError in planted_fuzzer.py:_internal"
    assert "-11" in found[DIES].reason
    assert "MemoryError" in found[EATS_MEMORY].reason
    assert "the fuzzer" in found[BROKEN].reason


def test_a_sample_that_hangs_is_found_and_its_process_replaced() -> None:
    found = planted(FINE, HANGS, FINE + 8, seconds=0.5)
    assert [outcome.kind for outcome in found.values()] == [Kind.PASSED, Kind.HANG, Kind.PASSED]


def test_a_finding_is_made_small_kept_and_replayed(tmp_path: Path) -> None:
    job = Job(PLANTED, shrink=True)
    result = work(Task(WRONG + 80), job)
    assert result.sample == "xx"
    kept = read(keep(result, job, tmp_path))
    assert (kept.seed, kept.was) == (WRONG + 80, "wrong: wrong at level 2")
    assert replay([kept]) == [result.outcome]


def test_a_record_goes_on_behind_its_last_seed(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    for first in (0, 3):
        record = Record.read(path, "flags", 1)
        tally = record.tally("2", None)
        assert tally.next == first
        for seed in range(first, first + 3):
            tally.add(Result(Task(seed), Outcome(Kind.REFUSED, f"reason {seed % 2}")))
        tally.next = first + 3
        record.write(path)
    written = json.loads(path.read_text())["levels"]["2"]
    assert (written["samples"], written["refused_by_reason"]) == (6, {"reason 0": 3, "reason 1": 3})
    assert Record.read(path, "flags", 2).levels == {}, "another generator: the seeds mean other samples"


def test_findings_are_checked_once_more_after_a_mend() -> None:
    tally = Record("flags", 1).tally("2", None)
    for seed, kind in enumerate((Kind.PASSED, Kind.WRONG, Kind.CRASH)):
        tally.add(Result(Task(seed), Outcome(kind, "a reason")))
    assert tally.take_findings() == [1, 2]
    tally.add(Result(Task(1), Outcome(Kind.PASSED)))
    tally.add(Result(Task(2), Outcome(Kind.HANG, "still")))
    written = tally.to_json()
    assert (written["samples"], written["passed"], written["hang"], written["checked_again"]) == (3, 2, 1, 2)
    assert [entry["seed"] for entry in written["findings"]] == [2]
