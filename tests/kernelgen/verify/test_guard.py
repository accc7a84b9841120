"""Kernels between pages without access: sound ones pass in every placement, planted faults are findings, not ends of runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_examples import Writer, column_sum, layer_norm, softmax, tensor
from typer.testing import CliRunner

from kernelgen.__main__ import app
from kernelgen.composite.write import dump_desc
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.tensor.dtypes import BOOL, FLOAT16, FLOAT64, INT8
from kernelgen.verify import Record, Status, verify_files
from kernelgen.verify.guard_pages import PATTERN, SHIFTS, Fenced, Placement, Touch, placements
from kernelgen.verify.pool import Job
from tests.random_kernels import pool as random_kernels
from tests.random_kernels.check import Kind

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="faults are reported on Linux alone")

VECTORS = pytest.mark.skipif(
    detect_host().vector_bytes < 32, reason="no instruction of this processor demands alignment"
)

TARGETS = r"""
import re
from dataclasses import replace
from kernelgen.targets.cpu import TARGET as CPU

ACCESS = re.compile(r"^  (?:%\S+ = load|store) <(\d+) x float>(?: %\S+)?, ptr (%\S+), align 4$", re.M)

def touching(offset):
    numbers = iter(range(10**6))
    def beside(found):
        number, lanes = next(numbers), int(found[1])
        place = f"  %planted{number} = getelementptr float, ptr {found[2]}, i64 {offset(lanes)}\n"
        return place + "  " + READ.format(number) + "\n" + found[0]
    return replace(CPU, emit=lambda nest: ACCESS.sub(beside, CPU.emit(nest)), printer=None)

def aligning(nest):
    return re.sub(r"(store <\d+ x float> %\S+, ptr %\S+), align 4", r"\1, align 64, !nontemporal !0", CPU.emit(nest))

READ = "%touched{0} = load volatile float, ptr %planted{0}"
"""
PLANTS = {
    "reads_behind": "touching(lambda lanes: lanes)",
    "reads_before": "touching(lambda lanes: -1)",
    "aligns": "replace(CPU, emit=aligning, printer=None, claims=None)",
}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one description; the package ``planted_targets`` has a target for each fault."""
    package = tmp_path / "planted_targets"
    package.mkdir()
    for name, text in {
        "__init__": "",
        **{name: f"{TARGETS}\nTARGET = {plant}\n" for name, plant in PLANTS.items()},
    }.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    w, x = Writer(), tensor("x", 256)
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.info").write_text(json.dumps(dump_desc(w.desc(name, (x,), w.op("Neg", x, shape=(256,))))))
    return folder


def _records(folder: Path, target: str) -> list[Record]:
    return verify_files(sorted(folder.iterdir()), Job(target, guard=True), 1)


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        ("reads_behind", "0 bytes behind the end of x; arrays at the back, 0 bytes"),
        ("reads_before", "4 bytes before x"),
    ],
)
@VECTORS
def test_a_read_beside_an_array_is_a_finding_with_its_address(planted: Path, plant: str, message: str) -> None:
    records = _records(planted, f"planted_targets.{plant}")
    assert [(r.status, r.reason) for r in records] == [(Status.FAILED, "fault")] * 2, records[0].message
    assert all(message in record.message for record in records)


@VECTORS
def test_an_alignment_that_arrays_do_not_have_is_a_finding(planted: Path) -> None:
    records = _records(planted, "planted_targets.aligns")
    assert {record.reason for record in records} == {"fault"}
    assert all("not aligned" in record.message for record in records)


def test_sound_kernels_pass_in_all_placements(tmp_path: Path) -> None:
    for desc in (softmax(7, 33), layer_norm(5, 50), column_sum()):
        (tmp_path / f"{desc.name}.info").write_text(json.dumps(dump_desc(desc)))
    out = tmp_path / "out.json"
    found = CliRunner().invoke(app, ["verify", str(tmp_path), "--guard", "--jobs", "1", "--json", str(out)])
    assert found.exit_code == 0, found.output
    assert [record["placements"] for record in json.loads(out.read_text())["records"]] == [2 * len(SHIFTS)] * 3


def test_only_kernels_of_this_machine_lie_on_its_pages(tmp_path: Path) -> None:
    (tmp_path / "a.info").write_text(json.dumps(dump_desc(softmax())))
    assert "--guard" in str(CliRunner().invoke(app, ["verify", str(tmp_path), "--guard", "--target", "gpu"]).exception)


@pytest.mark.parametrize("kind", [BOOL, INT8, FLOAT16, FLOAT64])
def test_an_array_lies_as_near_to_a_page_as_its_type_may(kind) -> None:
    array = np.arange(37).astype(kind.numpy)
    fenced = Fenced("x", array)
    for placement in placements([array]):
        placed = fenced.place(placement)
        start, stop = fenced.span
        assert placed.flags.aligned
        np.testing.assert_array_equal(placed, array)
        assert (-stop if placement.at_back else start) % 4096 == placement.shift_of(array.dtype)
        assert not fenced.is_spoiled


def test_a_write_beside_an_array_shows() -> None:
    fenced = Fenced("x", np.zeros(10, np.float32))
    placed = fenced.place(Placement(at_back=False, shift=4))
    beside = np.lib.stride_tricks.as_strided(placed[-1:], (2,), (4,))
    beside[1] = 1
    assert fenced.is_spoiled
    assert beside[1] != PATTERN


def test_shifts_that_move_nothing_are_left_out() -> None:
    assert {place.shift for place in placements([np.zeros(4)])} == {0, 8, 16, 32}
    assert {place.shift for place in placements([np.zeros(4), np.zeros(4, np.int8)])} == set(SHIFTS)


def test_a_touch_is_named_by_the_nearest_array() -> None:
    spans = [("x", 4096, 8192), ("y", 65536, 65600)]
    assert str(Touch.of(8200, spans)) == "8 bytes behind the end of x"
    assert str(Touch.of(65532, spans)) == "4 bytes before y"
    assert "not aligned" in str(Touch.of(0, spans))


@VECTORS
@pytest.mark.usefixtures("planted")
def test_random_kernels_lie_between_fences_too() -> None:
    sound = list(random_kernels.run(range(3), random_kernels.Job("cpu", guard=True), 1))
    assert {result.outcome.kind for result in sound} == {Kind.PASSED}
    families = ("smooth",)
    faulty = random_kernels.Job("planted_targets.reads_behind", elements=4000, families=families, guard=True)
    found = [result.outcome for result in random_kernels.run(range(10, 15), faulty, 1)]
    assert "fault" in {outcome.reason for outcome in found}
    assert any("behind the end of" in outcome.message for outcome in found)
