import json
import subprocess
import sys
from typing import Any

import kernel_examples as examples
import numpy as np
import pytest
from typer.testing import CliRunner

import kernelgen
from kernelgen.__main__ import app, described_files, write_json
from kernelgen.composite.write import dump_desc
from kernelgen.errors import ArgumentError
from kernelgen.system.exit_codes import WRONG_USE

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path):
    for desc in (examples.softmax(), examples.transpose_add()):
        (tmp_path / f"{desc.name}.info").write_text(json.dumps(dump_desc(desc)))
    (tmp_path / "notes.txt").write_text("not a kernel")
    return tmp_path


def test_directories_give_their_composite_files_in_order(folder):
    assert [p.name for p in described_files([folder])] == ["softmax.info", "transpose_add.info"]


def test_verify_ends_with_the_counts_and_writes_records(folder, tmp_path):
    out = tmp_path / "records.out"
    found = RUNNER.invoke(app, ["verify", str(folder), "--target", "python", "--jobs", "1", "--json", str(out)])
    assert found.output.splitlines()[-1] == "2 passed, 0 failed"
    assert found.exit_code == 0
    document = json.loads(out.read_text())
    assert [r["name"] for r in document["records"]] == ["softmax.info", "transpose_add.info"]
    assert document["target"] == "python"
    assert document["versions"]["kernelgen"] == kernelgen.__version__
    assert document["records"][0]["proof"]["legality"] > 0


def test_verify_fails_when_a_file_does(folder):
    (folder / "bad.info").write_text("{}")
    found = RUNNER.invoke(app, ["verify", str(folder / "bad.info"), "--target", "python", "--jobs", "1"])
    assert found.exit_code == 1
    assert "bad.info: bad-description: $.composite" in found.output
    assert found.output.splitlines()[-1] == "0 passed, 1 failed"


def test_verify_against_another_description(folder, tmp_path):
    softmax, wrong = folder / "softmax.info", tmp_path / "wrong.info"
    document = json.loads(softmax.read_text())
    for op in document["op_desc"]:
        op["name"] = {"Sub": "Add"}.get(op["name"], op["name"])
    wrong.write_text(json.dumps(document))

    def verified(file, against):
        arguments = ["verify", str(file), "--against", str(against), "--target", "python", "--jobs", "1"]
        return RUNNER.invoke(app, arguments).output

    assert verified(softmax, softmax).splitlines()[-1] == "1 passed, 0 failed"
    for one, other in ((softmax, wrong), (wrong, softmax)):
        assert "wrong-answer" in verified(one, other)
    assert "has other inputs or outputs" in verified(softmax, folder / "transpose_add.info")


def test_show_prints_the_stages(folder):
    found = RUNNER.invoke(app, ["show", str(folder / "softmax.info"), "--target", "python"])
    assert found.exit_code == 0
    assert "---- build" in found.output
    assert "---- source" in found.output


def test_show_of_one_stage_and_of_none(folder):
    found = RUNNER.invoke(app, ["show", str(folder / "softmax.info"), "--target", "python", "--stage", "build"])
    assert found.output.startswith("scop softmax")
    found = RUNNER.invoke(app, ["show", str(folder / "softmax.info"), "--target", "python", "--stage", "bild"])
    assert found.exit_code == 1


def test_compile_tells_the_time(folder):
    found = RUNNER.invoke(app, ["compile", str(folder), "--target", "python"])
    assert found.exit_code == 0
    assert found.output.count(" ms") == 2


def test_files_appear_complete_or_not_at_all(tmp_path):
    with pytest.raises(TypeError):
        write_json(tmp_path / "out.json", {"bad": object()})
    assert list(tmp_path.iterdir()) == []


def test_public_names_load_on_demand():
    for name in kernelgen.__all__:
        assert getattr(kernelgen, name) is not None
    unknown = "nothing"
    with pytest.raises(AttributeError, match="load_desc"):
        getattr(kernelgen, unknown)


@pytest.mark.parametrize(("arguments", "message"), [
    (["verify", "{folder}", "--target", "cup"], "unknown target 'cup'"),
    (["compile", "{folder}", "--target", "no.such"], "target 'no.such': No module named 'no'"),
    (["verify", "{folder}", "--json", "{folder}/no/x.json"], "there is no folder"),
    (["verify", "{folder}/empty"], "holds no composite JSON files"),
])  # fmt: skip
def test_wrong_use_is_one_line_before_any_work(arguments, message, folder):
    (folder / "empty").mkdir()
    filled = [argument.format(folder=folder) for argument in arguments]
    command = [sys.executable, "-m", "kernelgen", *filled]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == WRONG_USE
    assert message in found.stderr
    assert "Traceback" not in found.stderr


def test_a_kernel_prints_in_one_line_and_refuses_a_bare_output():
    kernel = kernelgen.compile(examples.softmax(), target="python")
    bare: Any = np.empty((6, 9), np.float32)
    assert repr(kernel).startswith("<Kernel softmax for python: ")
    with pytest.raises(ArgumentError, match="a tuple of arrays"):
        kernel(np.ones((6, 9), np.float32), out=bare)


def test_compile_says_how_a_path_becomes_a_description():
    path: Any = "kernel.info"
    with pytest.raises(ArgumentError, match=r"got str; kernelgen\.load_desc reads one"):
        kernelgen.compile(path)


def test_a_plan_goes_through_a_file(folder, tmp_path):
    source, plan = str(folder / "softmax.info"), tmp_path / "plan.out"
    found = RUNNER.invoke(app, ["compile", source, "--target", "python", "--dump-plan", str(plan)])
    assert found.exit_code == 0
    document = json.loads(plan.read_text())
    again = tmp_path / "again.out"
    arguments = ["compile", source, "--target", "python", "--plan", str(plan), "--dump-plan", str(again)]
    assert RUNNER.invoke(app, arguments).exit_code == 0
    assert json.loads(again.read_text()) == document
    found = RUNNER.invoke(
        app, ["compile", str(folder / "transpose_add.info"), "--target", "python", "--plan", str(plan)]
    )
    assert found.exit_code == 1
    assert "the plan was made for softmax " in found.output


def test_tune_prints_what_it_tried_and_writes_the_best(folder, tmp_path):
    file, out = folder / "softmax.info", tmp_path / "best.json"
    found = RUNNER.invoke(app, ["tune", str(file), "--most", "2", "--dump-plan", str(out)])
    assert found.exit_code == 0, found.output
    assert "band 0: " in found.output
    assert json.loads(out.read_text())["version"] == 1
    wrong = RUNNER.invoke(app, ["tune", str(file), "--machine", "K80"])
    assert isinstance(wrong.exception, ArgumentError)
    assert "H200" in str(wrong.exception)


def test_a_plan_is_of_one_kernel_and_well_formed(folder, tmp_path):
    wrong = tmp_path / "wrong.out"
    wrong.write_text('{"cpu": {"tile": "64"}}')
    for arguments, message in (
        ([str(folder), "--dump-plan", str(tmp_path / "x.out")], "2 files were given"),
        ([str(folder / "softmax.info"), "--plan", str(wrong)], r"wrong.out: \$.cpu.tile: expected int, found str"),
        ([str(folder / "softmax.info"), "--dump-plan", str(tmp_path / "no" / "x.out")], "there is no folder"),
    ):
        with pytest.raises(ArgumentError, match=message):
            RUNNER.invoke(app, ["compile", *arguments, "--target", "python"], catch_exceptions=False)
