"""The verifier of kernels notices faults: descriptions with one fault in them, against the kernel of the sound one.

``python -m tests.mutants DIR`` counts over many files.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import kernel_examples as examples
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.write import dump_desc
from kernelgen.tensor.dtypes import BOOL
from tests.mutants.judge import Judge, Verdict, mutants
from tests.mutants.report import Job, Sums, judge_file, ran, spread


def clamp(size: int = 300) -> KernelDesc:
    """Select, Maximum, Minimum, Abs and a comparison with a constant."""
    w, x, y, full = Writer(), tensor("x", size), tensor("y", size), (size,)
    flag = w.op("LessEqual", x, constant(0.5), shape=full, dtype=BOOL)
    inside = w.op("Minimum", w.op("Maximum", x, constant(-1.0), shape=full), y, shape=full)
    return w.desc("clamp", (x, y), w.op("Select", flag, inside, w.op("Abs", y, shape=full), shape=full, dtype=x.dtype))


def doubled(size: int = 30) -> KernelDesc:
    """Multiplies by 1: without the operator it is the same kernel."""
    w, x = Writer(), tensor("x", size)
    return w.desc("doubled", (x,), w.op("Mul", w.op("Add", x, x, shape=(size,)), constant(1.0), shape=(size,)))


def verdicts(desc: KernelDesc) -> Counter[tuple[str, Verdict]]:
    return Counter((each.kind, each.verdict) for each in Judge(desc, ran(desc, Job(Path(), "cpu"))).verdicts())


def test_every_kind_of_fault_is_made():
    desc = examples.layer_norm()
    assert {m.kind for m in mutants(desc)} >= {"dropped", "swapped", "constant", "cut short"}
    assert {m.kind for m in mutants(examples.own_transpose())} >= {"dropped", "swapped"}


@pytest.mark.parametrize(
    "desc", [examples.softmax(), examples.layer_norm(), examples.momentum(), clamp()], ids=lambda d: d.name
)
def test_faults_of_usual_kernels_are_noticed(desc: KernelDesc):
    found = verdicts(desc)
    noticed = sum(n for (_, verdict), n in found.items() if verdict is Verdict.NOTICED)
    assert noticed > 10
    assert sum(n for (_, verdict), n in found.items() if verdict is Verdict.MISSED) <= 0.1 * noticed


def test_the_same_kernel_written_otherwise_is_no_fault():
    dropped = [
        each
        for each in Judge(doubled(), ran(doubled(), Job(Path(), "cpu"))).verdicts()
        if each.what.startswith("1 Mul: operand")
    ]
    assert [(each.verdict, each.reason.partition(" on ")[0]) for each in dropped] == [
        (Verdict.EQUIVALENT, "the same numbers")
    ]


def test_files_are_judged_and_summed(tmp_path: Path):
    path = tmp_path / "softmax.json"
    path.write_text(json.dumps(dump_desc(examples.softmax())))
    sums = Sums()
    sums.add(judge_file(Job(path, "cpu")))
    record = sums.to_json("cpu", 0)
    assert record["files"] == 1
    assert record["noticed"] == sums.of(Verdict.NOTICED) > 5
    assert len(record["unnoticed"]) == sums.of(*Verdict) - sums.of(Verdict.NOTICED)


def test_a_count_of_files_is_spread_over_all():
    paths = [Path(str(place)) for place in range(10)]
    assert [path.name for path in spread(paths, 4)] == ["0", "2", "5", "7"]
    assert spread(paths, None) == paths
