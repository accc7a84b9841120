"""Places where nothing can be written, and commands that are given what they cannot take."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

import graphkernel as gk
from graphkernel.cli import main as graphkernel_command
from kernelgen.__main__ import main as kernelgen_command
from tests.hostile.case import Case
from tests.hostile.composite_cases import document

SAVE, DUMP, COMMAND = "saving a graph", "dumping graphs", "commands"
GRAPH = "graph main(x: f32[4]) {\n  y: f32[4] = Neg(x)\n  return y\n}\n"
FULL = "/dev/full"
"""A device on which every write fails as on a full disk."""


class Wrong(Exception):
    """A command ended otherwise than with one line that says what is wrong."""


class Refused(Exception):
    """A command ended with status 2 and one line that says what is wrong."""


PLACES: Mapping[str, Callable[[Path], str]] = {
    "a folder that is not there": lambda folder: str(folder / "nothing" / "x.gk"),
    "a file in place of the folder": lambda folder: str(folder / "net.gk" / "x.gk"),
    "a folder in place of the file": lambda folder: str(folder / "folder.gk"),
    "the files of the kernel": lambda folder: "/proc/x.gk",
    "no name": lambda folder: "",
    "a name with a null character": lambda folder: str(folder / "a\0b.gk"),
    "a name of 300 characters": lambda folder: str(folder / f"{'n' * 300}.gk"),
    "a named pipe": lambda folder: str(folder / "pipe.gk"),
}


def prepared(folder: Path) -> Path:
    """A graph, a folder and a pipe."""
    (folder / "net.gk").write_text(GRAPH, encoding="utf-8")
    (folder / "folder.gk").mkdir()
    os.mkfifo(folder / "pipe.gk")
    return folder


def saved(place: Callable[[Path], str]) -> Callable[[Path], object]:
    """Saves there."""
    return lambda folder: gk.save(gk.parse(GRAPH), place(prepared(folder)))


def dumped(place: Callable[[Path], str]) -> Callable[[Path], object]:
    """Dumps there."""
    return lambda folder: gk.optimize(gk.parse(GRAPH), flags={"dump_dir": place(prepared(folder))})


COMMANDS: Mapping[str, tuple[str, ...]] = {
    "explain nothing": ("graphkernel", "explain", "nothing.gk"),
    "explain a folder": ("graphkernel", "explain", "."),
    "explain what is no graph": ("graphkernel", "explain", "evil.gk"),
    "explain what is no model": ("graphkernel", "explain", "evil.onnx"),
    "optimize into no folder": ("graphkernel", "optimize", "net.gk", "-o", "nothing/x.gk"),
    "optimize into the files of the kernel": ("graphkernel", "optimize", "net.gk", "-o", "/proc/x.gk"),
    "report into the files of the kernel": ("graphkernel", "report", "net.gk", "-o", "/proc/x.html"),
    "convert to no file": ("graphkernel", "convert", "--fmk=GK", "--modelFile=net.gk", "--outputFile="),
    "convert into the files of the kernel": (
        "graphkernel", "convert", "--fmk=GK", "--modelFile=net.gk", "--outputFile=/proc/x"
    ),
    "run with a size of 10,000 digits": ("graphkernel", "run", "net.gk", "--dim", f"N={'9' * 10_000}"),
    "run with a superscript as a size": ("graphkernel", "run", "net.gk", "--dim", "N=²"),
    "run with inputs that are no archive": ("graphkernel", "run", "net.gk", "--input", "net.gk"),
    "flags from a device": ("graphkernel", "explain", "net.gk", "--flags", "--path=/dev/zero"),
    "dump into the files of the kernel": ("graphkernel", "explain", "net.gk", "--flags", "--dump_dir=/proc/x"),
    "compile what is no description": ("kernelgen", "certify", "evil.json"),
    "compile with a plan that is none": ("kernelgen", "compile", "k.json", "--plan", "evil.json"),
    "write a report over a device": ("kernelgen", "compile", "k.json", "--json", FULL),
    "write a plan into the files of the kernel": ("kernelgen", "compile", "k.json", "--dump-plan", "/proc/x"),
    "an unknown target": ("kernelgen", "compile", "k.json", "--target", "evil"),
}  # fmt: skip


def command(arguments: tuple[str, ...]) -> Callable[[Path], object]:
    """Runs a command; Refused when it ends as commands do that are used in the wrong way."""

    def run(folder: Path) -> None:
        import json

        prepared(folder)
        for name in ("evil.gk", "evil.onnx", "evil.json"):
            (folder / name).write_bytes(b"\xff evil \x1b]0;evil\x07")
        (folder / "k.json").write_text(json.dumps(document()), encoding="utf-8")
        program = graphkernel_command if arguments[0] == "graphkernel" else kernelgen_command
        said = io.StringIO()
        with mock.patch.object(sys, "argv", list(arguments)), contextlib.redirect_stderr(said):
            try:
                program()
            except SystemExit as end:
                text = said.getvalue()
                if end.code in (1, 2) and "Traceback" not in text and "\x1b" not in text:
                    raise Refused(text) from end
                raise Wrong(f"{end.code}: {text}") from end

    return run


CASES: tuple[Case, ...] = (
    *(Case(SAVE, name, "FrontendError", saved(place)) for name, place in PLACES.items()),
    *(
        Case(DUMP, name, "OptionError", dumped(PLACES[name]))
        for name in ("a file in place of the folder", "the files of the kernel", "a name with a null character")
    ),
    *(Case(COMMAND, name, "Refused", command(arguments)) for name, arguments in COMMANDS.items()),
)
