"""The command convert: MindSpore Lite's words, our files."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import graphkernel as gk
from graphkernel import ops
from graphkernel.cli import app
from graphkernel.errors import OptionError

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    gk.save(gk.trace(lambda x: ops.exp(x * 2.0 + 1.0), gk.spec(("N", 4))), tmp_path / "net.gk")
    (tmp_path / "akg.cfg").write_text("# how the page of MindSpore Lite writes it\n[graph_kernel_param]\nopt_level=2\n")
    return tmp_path


def convert(folder: Path, *more: str) -> Result:
    arguments = ["--fmk=GK", f"--modelFile={folder / 'net.gk'}", f"--outputFile={folder / 'out'}"]
    found = RUNNER.invoke(app, ["convert", *arguments, *more])
    if isinstance(found.exception, Exception):
        raise found.exception
    return found


def kernels(folder: Path) -> int:
    return sum(node.body is not None for node in gk.load(folder / "out.gk").operators)


@pytest.mark.parametrize(
    ("orientation", "expected"), [("none", 0), ("general", 1), ("gpu_oriented", 1), ("ascend_oriented", 1)]
)
def test_the_configuration_file_switches_graph_kernels_on(folder: Path, orientation: str, expected: int) -> None:
    convert(folder, f"--configFile={folder / 'akg.cfg'}", f"--optimize={orientation}")
    assert kernels(folder) == expected


def test_without_a_configuration_file_nothing_is_fused_and_a_line_says_so(folder: Path) -> None:
    assert "write opt_level=2 below [graph_kernel_param]" in convert(folder).stderr
    assert kernels(folder) == 0


def test_other_flags_stand_beside_the_level(folder: Path) -> None:
    (folder / "akg.cfg").write_text("[graph_kernel_param]\nopt_level=2\ndisable_cluster_ops=Exp\n")
    convert(folder, f"--configFile={folder / 'akg.cfg'}")
    assert [node.op.name for node in gk.load(folder / "out.gk").operators] == ["Fused", "Exp"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[graph_kernel]\nopt_level=2\n", r"no section \[graph_kernel_param\] \(did you mean 'graph_kernel'\?\)"),
        ("opt_level=2\n", "cannot be read: File contains no section headers"),
        ("[graph_kernel_param]\nopt_levle=2\n", r"unknown flag 'opt_levle' \(did you mean 'opt_level'\?\)"),
    ],
)
def test_a_wrong_configuration_is_refused(folder: Path, text: str, said: str) -> None:
    (folder / "akg.cfg").write_text(text)
    with pytest.raises(OptionError, match=said):
        convert(folder, f"--configFile={folder / 'akg.cfg'}")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--optimize=gpu", "--optimize=gpu: one of none, general, gpu_oriented, ascend_oriented"),
        ("--fmk=TFLITE", "--fmk=TFLITE: one of ONNX, GK, COMPOSITE"),
        ("--fmk=ONNX", "--fmk=ONNX reads .onnx, not"),
        ("--configFile=nothing.cfg", "--configFile=nothing.cfg: cannot be read"),
    ],
)
def test_wrong_words_are_refused(folder: Path, more: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        convert(folder, more)
