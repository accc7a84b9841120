"""Whatever goes wrong on a command line is one line on stderr, an exit code, and no traceback."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from graphkernel import cli
from graphkernel.cli import app as graphkernel_app
from graphkernel.cli.ondemand import COMMANDS, imported
from graphkernel.errors import InputError
from kernelgen.__main__ import app as kernelgen_app
from kernelgen.errors import BackendUnavailable
from kernelgen.system.exit_codes import FAULT, FINE, INTERRUPTED, WRONG_USE, run

PROGRAMS = ("graphkernel", "kernelgen")


def raising(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(("error", "code", "said"), [
    (InputError("x is f32[2], got f32[3]"), WRONG_USE, "error: x is f32[2], got f32[3]\n"),
    (BackendUnavailable("no NVRTC; pip install it"), WRONG_USE, "error: no NVRTC; pip install it\n"),
    (ModuleNotFoundError("No module named 'onnx.helper'", name="onnx.helper"), WRONG_USE,
     "error: the package onnx is not installed: pip install onnx\n"),
    (PermissionError(13, "Permission denied", "out.gk"), WRONG_USE, "error: [Errno 13] Permission denied: 'out.gk'\n"),
    (MemoryError("Unable to allocate 4 TiB"), WRONG_USE, "error: there is not enough memory: Unable to allocate 4 TiB\n"),
    (KeyboardInterrupt(), INTERRUPTED, "interrupted\n"),
    (typer.Exit(FINE), FINE, ""),
    (typer.Exit(1), 1, ""),
])  # fmt: skip
def test_an_error_is_one_line_and_the_exit_code_of_its_kind(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["program"])
    app = typer.Typer()
    app.command()(raising(error))
    with pytest.raises(SystemExit) as ended:
        run(app, (InputError, BackendUnavailable))
    assert (ended.value.code, capsys.readouterr().err) == (code, said)


@pytest.mark.parametrize("message", ["'<' not supported\nbetween 'Sym' and 'int'", ""])
def test_a_fault_says_where_it_is_and_how_to_see_more(
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(sys, "argv", ["program"])
    app = typer.Typer()
    app.command()(raising(TypeError(message)))
    caplog.set_level(logging.DEBUG)
    with pytest.raises(SystemExit) as ended:
        run(app, ())
    said = capsys.readouterr().err
    assert ended.value.code == FAULT
    assert said.startswith("error: TypeError")
    assert said.count("\n") == 1
    assert "test_command_line.py line " in said
    assert "GRAPHKERNEL_LOG=debug" in said
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("command", PROGRAMS)
@pytest.mark.parametrize(("arguments", "said"), [
    (["rnu"], "No such command 'rnu'"),
    (["compile", "verify", "--no-such-option"], "--help` tells more"),
])  # fmt: skip
def test_wrong_use_names_the_help(command: str, arguments: list[str], said: str) -> None:
    if command == "graphkernel":
        arguments = ["run" if each == "compile" else each for each in arguments]
    line = [sys.executable, "-m", command, *arguments]
    found = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == WRONG_USE
    assert said in found.stderr
    assert "?;" not in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize("app", [graphkernel_app, kernelgen_app], ids=PROGRAMS)
def test_the_exit_codes_stand_in_the_help(app: typer.Typer) -> None:
    found = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert "Exit codes: 0 fine; 1 results differ" in found
    assert "130 interrupted" in found


def test_help_loads_nothing_that_computes() -> None:
    probe = (
        "import sys; from typer.testing import CliRunner; from graphkernel.cli import app;"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0;"
        "print(sorted({'numpy', 'onnx', 'onnxruntime', 'llvmlite', 'islpy', 'networkx'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=False)
    assert found.stdout == "[]\n", found.stderr


def test_the_list_of_commands_is_that_of_the_files() -> None:
    for name, entry in COMMANDS.items():
        assert len(entry.told) <= 62, "one line of 80 columns"
        assert imported(name).name == name
    files = {path.stem for path in Path(cli.__file__).parent.glob("*.py")}
    assert {entry.file for entry in COMMANDS.values()} <= files
    declared = {
        command.name or getattr(command.callback, "__name__", "") for command in graphkernel_app.registered_commands
    }
    assert declared | {group.name for group in graphkernel_app.registered_groups} == set(COMMANDS)
