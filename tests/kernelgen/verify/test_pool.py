"""Worker processes with targets that behave badly."""

import json

import kernel_examples as examples
import pytest

from kernelgen.composite.write import dump_desc
from kernelgen.verify import Status, verify_files
from kernelgen.verify.pool import Job
from kernelgen.verify.record import summary

TARGET = """
import os, time
from kernelgen.targets import Target

def load(source, nest):
    if nest.name == "hang":
        time.sleep(600)
    if nest.name == "crash":
        os._exit(7)
    def entry(arrays, symbols):
        arrays[-1][...] = 0 if nest.name == "wrong" else -arrays[0]
    return entry

TARGET = Target("moody", lambda nest: "", load)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    package = tmp_path / "moody_targets"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "moody.py").write_text(TARGET)
    monkeypatch.syspath_prepend(tmp_path)
    files = tmp_path / "files"
    files.mkdir()
    for name in ("a_fine", "crash", "hang", "wrong", "z_fine"):
        w, x = examples.Writer(), examples.tensor("x", 5)
        desc = w.desc(name, (x,), w.op("Neg", x, shape=(5,)))
        (files / f"{name}.info").write_text(json.dumps(dump_desc(desc)))
    return files


def test_crashes_and_hangs_are_records_and_the_order_is_that_of_the_files(folder):
    job = Job("moody_targets.moody", limit_seconds=1)
    seen = []
    records = verify_files(sorted(folder.iterdir()), job, 2, seen.append)
    assert [(r.name.split(".")[0], r.status.value, r.reason) for r in records] == [
        ("a_fine", "passed", ""),
        ("crash", "failed", "crash"),
        ("hang", "failed", "time-limit"),
        ("wrong", "failed", "wrong-answer"),
        ("z_fine", "passed", ""),
    ]
    assert "code 7" in records[1].message
    assert sorted(r.name for r in seen) == [r.name for r in records]
    assert summary(records) == "2 passed, 3 failed"


def test_no_files_give_no_records():
    assert verify_files([], Job(), 2) == []


def test_the_summary_mentions_skipped_files_when_there_are_any():
    from kernelgen.verify import Record

    assert summary([Record("k", Status.SKIPPED), Record("l", Status.PASSED)]) == "1 passed, 0 failed, 1 skipped"
