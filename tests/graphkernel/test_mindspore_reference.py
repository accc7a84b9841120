"""Every record of the real MindSpore through the command's checks; and that the checks find what is wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphkernel.declarations import builtin_catalogue
from graphkernel.options import Options
from graphkernel.passes.base import run_steps
from graphkernel.pipeline import steps_for
from tests.mindspore_reference.__main__ import check, main, records
from tests.mindspore_reference.blocks import blocks, places
from tests.mindspore_reference.checks import Check
from tests.mindspore_reference.literals import literal, tensor, types
from tests.mindspore_reference.nets import check_kept_out
from tests.mindspore_reference.rebuild import rebuild
from tests.support.sources import FACTS

RECORDS = dict(records(FACTS / "mindspore_records"))
Record = dict[str, Any]


@pytest.mark.parametrize("name", RECORDS)
def test_a_record(name: str) -> None:
    assert [str(outcome) for outcome in check(RECORDS[name], name).outcomes if outcome.is_failure] == []


def test_most_records_say_what_their_kernels_hold() -> None:
    nets = [name for name in RECORDS if name.startswith("nets/")]
    assert len(nets) == 24
    assert sum(blocks(RECORDS[name]) is not None for name in nets) >= 21


def forget_a_message(record: Record) -> None:
    record["warnings"] = []


def change_a_flag(record: Record) -> None:
    record["effective_flags"]["composite_op_limit_size"] += 1


def disable_a_pass(record: Record) -> None:
    record["passes"] = [line.replace("cluster changed", "cluster disabled") for line in record["passes"]]


def invent_a_pass(record: Record) -> None:
    record["passes"].append("stage3_split_9_no_such_pass enabled")


def share_one_kernel(record: Record) -> None:
    """All operators of the net in one kernel, the matrix product too."""
    record["graph_final"] = {
        "main": {"nodes": [{"op": "call @all"}]},
        "subgraphs": [{"name": "all", "nodes": [node for node in record["graph"]["nodes"] if "fullname" in node]}],
    }


def launch_less(record: Record) -> None:
    record["final_kernels"], record["ops_outside_kernels"] = record["final_kernels"][:1], []


@pytest.mark.parametrize(
    ("name", "fault", "found"),
    [
        ("flag_runs/grammar_bool_bad.json", forget_a_message, Check.MESSAGES),
        ("nets/single_op.json", change_a_flag, Check.FLAGS),
        ("nets/single_op.json", disable_a_pass, Check.PASSES),
        ("nets/single_op.json", invent_a_pass, Check.PASSES),
        ("nets/diamond_matmul.json", share_one_kernel, Check.PARTITION),
        ("nets/diamond_matmul.json", launch_less, Check.LAUNCHES),
    ],
)
def test_a_planted_fault_is_found(name: str, fault: Callable[[Record], None], found: Check) -> None:
    record = dict(copy.deepcopy(RECORDS[name]))
    fault(record)
    assert found in {outcome.check for outcome in check(record, name).outcomes if outcome.is_failure}


def test_an_operator_that_a_flag_keeps_out_is_missed_in_a_kernel() -> None:
    record = RECORDS["nets/single_op.json"]
    graph = rebuild(record["graph"], "net")
    after = run_steps(graph, steps_for(Options()), builtin_catalogue().context(Options()))
    where = places(graph, after)
    assert not list(check_kept_out(record, Options(), graph, where))
    (found,) = check_kept_out(record, Options(disable_cluster_ops=("Exp",)), graph, where)
    assert found.is_failure


def test_the_command_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = (dict(copy.deepcopy(RECORDS[f"nets/{name}.json"])) for name in ("single_op", "bias_add"))
    change_a_flag(bad)
    (tmp_path / "good.json").write_text(json.dumps(good))
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    assert main([str(tmp_path), "--json", str(tmp_path / "out.json")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"
    assert {entry["name"]: entry["status"] for entry in json.loads((tmp_path / "out.json").read_text())} == {
        "good.json": "passed",
        "bad.json": "failed",
    }


def test_an_empty_folder_is_a_failure(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 1


def test_literals() -> None:
    assert literal("(I64(1), (Bool(1), F32(2.5)))") == (1, (True, 2.5))
    assert literal("()") == ()
    with pytest.raises(ValueError, match="is no literal"):
        literal("%3")
    drawn = tensor("Tensor(shape=[2, 3], dtype=Float32, value=[...])", seed=1)
    assert drawn is not None
    assert drawn.shape == (2, 3)
    told = tensor("Tensor(shape=[3], dtype=Bool, value=[true, false, true])", seed=1)
    assert told is not None
    assert told.tolist() == [True, False, True]
    several = {"type": "Tuple[Tensor[Float32]*2], TupleShape((64, 768), (64))"}
    assert types(several) == [("float32", (64, 768)), ("float32", (64,))]
