"""The device benchmark at tiny size on a stand-in for cupy, and its machinery without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import classes, correctness, estimates, run, v100
from benchmarks.gpu.cases import CASES, GpuCase
from benchmarks.gpu.contestants import CAPTURED, OURS
from benchmarks.gpu.correctness import catalogue, every
from benchmarks.gpu.run import Request, summary, table_line
from kernelgen.composite.read import load_desc
from kernelgen.errors import BackendUnavailable
from kernelgen.targets.gpu.launch.nvrtc import version
from tests.support import fake_cupy
from tests.support.sources import ROOT


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_class_runs_and_is_right(case: GpuCase, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        version()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setattr(classes, "ROUNDS", 1)
    monkeypatch.setattr("benchmarks.gpu.timing.BATCH", 1)
    monkeypatch.setattr("benchmarks.gpu.timing.LEAST_CALLS", 1)
    fake_cupy.install(monkeypatch)
    record = classes.measured(case, sys.modules["cupy"], None, 1e12, tiny=True, seconds=0.1)
    assert {OURS, CAPTURED} <= set(record["contestants"])
    assert all(row["right"] for row in record["contestants"].values()), record
    assert record["limit_ms"] > 0
    assert len(record["sizes"]) == len({min(rows, 6) for rows in case.rows})
    assert json.loads(json.dumps(record)) == record


def test_without_a_device_the_file_says_so(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    subprocess.run(
        [sys.executable, "-m", "benchmarks", "gpu", "--tiny", "--json", str(out)], cwd=ROOT, check=True, timeout=120
    )
    record = json.loads(out.read_text())
    if record["device"] is None:
        assert record["reason"]
        assert record["date"]


@pytest.mark.long
def test_all_of_it_runs_on_a_stand_in_for_a_device(tmp_path: Path) -> None:
    """The parent, its processes for classes and the verification with ``--device``: each imports this cupy."""
    try:
        version()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    (tmp_path / "cupy.py").write_text(
        "import pytest\nfrom tests.support import fake_cupy\nfake_cupy.install(pytest.MonkeyPatch())\n"
    )
    corpus, out = tmp_path / "corpus", tmp_path / "gpu.json"
    catalogue_of(corpus, "Add", "ReduceMax")
    options = ["--tiny", "--no-peers", "--corpus", str(corpus), "--case", "softmax", "--case", "dynamic_softmax"]
    paths = os.pathsep.join(map(str, (tmp_path, ROOT)))
    subprocess.run(
        [sys.executable, "-m", "benchmarks", "gpu", *options, "--json", str(out)],
        cwd=ROOT, check=True, timeout=240, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    record = json.loads(out.read_text())
    assert record["device"]["name"] == "NVIDIA Stand-in"
    assert {part: (found["passed"], found["faults"]) for part, found in record["correctness"].items()} == {
        "catalogue": (2, {}), "corpus": (2, {})
    }  # fmt: skip
    assert record["summary"]["right"] == record["summary"]["measured"] == 2
    assert set(record["classes"]["softmax"]["contestants"]) == {OURS, CAPTURED}


def catalogue_of(folder: Path, *names: str) -> None:
    folder.mkdir()
    catalogue(folder, names)


# ---------------------------------------------------------------- estimates


def test_estimates_name_what_each_launch_is_bound_by() -> None:
    (case,) = (case for case in CASES if case.name == "softmax")
    record = estimates.guarded(case, tiny=True)
    if "BackendUnavailable" in record.get("failed", ""):
        pytest.skip(record["failed"])
    (launch,) = record["launches"]
    assert launch["bound"] in launch["limits_us"]
    assert launch["microseconds"] >= max(launch["limits_us"].values())
    assert record["compile_ms"] > 0
    assert record["without_a_kernel"] == []


def test_published_times_stand_beside_estimates(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    catalogue_of(corpus, "Add", "ReduceMax")
    published = {path.name: {"avg_us": 2.0, "bytes": 2**21} for path in corpus.glob("*.info")}
    (tmp_path / v100.TIMES).write_text(json.dumps(published))
    saved: list[Any] = []
    record = v100.run(corpus, tiny=True, jobs=1, save=saved.append)
    if any("BackendUnavailable" in row.get("reason", "") for row in record["kernels"]):
        pytest.skip(record["kernels"][0]["reason"])
    assert {row["class"] for row in record["kernels"]} == {"element-wise", "reduction of columns"}
    for found in record["classes"].values():
        assert found["large"]["akg"] == pytest.approx(2**21 / 2e-6 / 900e9)
        assert found["large"]["akg_over_estimated"] > 0
    assert saved == []


def test_a_kernel_that_takes_too_long_says_so() -> None:
    with pytest.raises(v100.TimeUp, match="processor time"), v100.limited(0.05):
        spin()


def spin() -> None:
    while True:
        pass


def test_catalogue_has_a_description_for_every_operator_that_a_kernel_holds(tmp_path: Path) -> None:
    count = catalogue(tmp_path, ("Add", "ReduceSum", "Softmax", "MatMul"))
    files = sorted(tmp_path.glob("*.info"))
    assert len(files) == count >= 3
    assert {load_desc(file).operators[0].op.name for file in files} >= {"Add", "ReduceSum", "MatMul"}


def test_sample_is_spread_over_all_files() -> None:
    paths = [Path(str(k)) for k in range(10)]
    assert [path.name for path in every(paths, 4)] == ["0", "2", "5", "7"]
    assert every(paths, 20) == paths


def child(text: str, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...] = ("softmax", "adam", "swiglu")) -> Any:
    """The record of classes that are measured by a program with this text instead."""
    monkeypatch.setattr(run, "START_SECONDS", 0.0)
    monkeypatch.setattr(run, "CLASS_SECONDS", 3.0)
    real = subprocess.Popen

    def start(command: list[str], **options: Any) -> Any:
        return real([sys.executable, "-c", text, *command[3:]], **options)

    monkeypatch.setattr("benchmarks.gpu.run.subprocess.Popen", start)
    record: Any = {"classes": {}}
    run._classes(Request(names, None, True, False), record, lambda _: None, 30.0)
    return record["classes"]


SAY = """
import json, sys, time
names = [name for name in sys.argv[1:] if name[0] != "-"]
say = lambda name: print(json.dumps({"class": name, "record": {"failed": "said"}}), flush=True)
"""


def test_class_that_kills_its_process_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    found = child(SAY + "for name in names:\n  if name == 'adam': sys.exit(9)\n  say(name)", monkeypatch)
    assert {name: one["failed"] for name, one in found.items()} == {
        "softmax": "said", "adam": "the process ended with code 9", "swiglu": "said"
    }  # fmt: skip


def test_class_that_hangs_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    found = child(SAY + "for name in names:\n  if name == 'adam': time.sleep(60)\n  say(name)", monkeypatch)
    assert {name: one["failed"] for name, one in found.items()} == {
        "softmax": "said", "adam": "not done after 3 s", "swiglu": "said"
    }  # fmt: skip


@pytest.mark.long
def test_each_operator_of_the_catalogue_is_right(tmp_path: Path) -> None:
    """What the benchmark asks of a device, asked of a CPU: it holds the samples and the ranges of the checker, too."""
    count = correctness.catalogue(tmp_path)
    found = correctness.verified(sorted(tmp_path.glob("*.info")), "cpu", 300)
    assert not found["faults"]
    assert found["passed"] + found["skipped"] == found["files"] == count
    assert found["passed"] > 120


def test_summary_and_table() -> None:
    spread = {"median": 2.0, "low": 1.0, "high": 3.0}
    ours = {"milliseconds": spread, "bandwidth_fraction": 0.5, "right": True, "cold_compile_ms": 10.0}
    peer = ours | {"cold_compile_ms": 400.0}
    modes = dict.fromkeys(run.MODES, peer)
    row = {"contestants": {OURS: ours, **modes}, "times_of_ours": dict.fromkeys(modes, spread)}
    record = {"classes": {"softmax": row, "adam": {"failed": "not done"}}}
    assert summary(record) == {"measured": 1, "right": 1, "torch_over_ours": 2.0, "bandwidth_fraction": 0.5,
                               "torch_cold_compile_over_ours": 40.0}  # fmt: skip
    assert "2.0000 ms" in table_line("softmax", row)
    assert "torch.compile 2.00x" in table_line("softmax", row)
    assert table_line("adam", {"failed": "not done"}).endswith("not done")
