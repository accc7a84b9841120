"""A hostile name passes through every way out of the program as text, and does nothing there."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import graphkernel as gk
from graphkernel.errors import FrontendError, ParseError
from graphkernel.export.summary import KernelLine, NetworkSummary, Run
from graphkernel.mindspore.flag_text import warn
from graphkernel.ops import OPS
from graphkernel.report.page.html import table
from graphkernel.report.report import Fallback, HostEntry, KernelEntry, Report
from graphkernel.report.table import print_table
from graphkernel.step_hooks import ClusterText
from kernelgen.errors import DescError
from kernelgen.system.escape import line, lines, markup
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import parse_type

HOSTILE = (
    "</td><script>alert(1)</script>", '" onload="alert(1)', "<!--", "]]>", "&lt;b&gt;",
    "\x1b]0;title\x07\x1b[2J\x1b[31mred", "a\nINFO all is well", "a\rb", "a\tb", "\x00", "\x7f\x9b", "\x85\u2028",
    "\u202egpj.exe", "\u2066x\u2069", "\ud800", "=1+1", '=cmd|"/C calc"!A0', "@SUM(A1)", "+1-1", "-2+3", "%s%n", "[red]x[/]",
)  # fmt: skip
CONTROLS = {
    chr(code) for code in (*range(32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


def is_plain(text: str, kept: str = "") -> bool:
    """Whether nothing in it moves a cursor, changes direction, or is half of a character."""
    return not (set(text) - set(kept)) & CONTROLS and not any("\ud800" <= c <= "\udfff" for c in text)


@pytest.mark.parametrize("name", HOSTILE)
def test_lines_are_plain(name: str) -> None:
    assert is_plain(line(name))
    assert is_plain(lines(name), "\n\t")


@pytest.mark.parametrize("text", ["Größe größer 模型", "-0.5", "+3", "1.5 KiB", "1e-5", "-1.2e+10", "x=1", "", "-inf"])
def test_what_is_plain_stays(text: str) -> None:
    assert line(text) == lines(text) == text


class Page(HTMLParser):
    """The elements of a page and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.attributes: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element."""
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        """Text."""
        self.text.append(data)


@pytest.mark.parametrize("name", HOSTILE)
def test_html_holds_it_as_text(name: str) -> None:
    found = Page(table(name, [name], [[name]]))
    assert found.tags == ["h4", "table", "tr", "th", "tr", "td"]
    assert found.text == [lines(name)] * 3
    assert found.attributes == []


def report(name: str) -> Report:
    """A report in which everything is called so."""
    kernel = KernelEntry(name, (name,), (name,), (name,), (name,), 1, 1, 1.0)
    host, left = HostEntry(name, name, (name,)), Fallback(name, name, name, name, name)
    return Report(name, name, 2, name, (kernel,), (host,), (left,), 1.0, 1.0, 1)


@pytest.mark.parametrize("name", HOSTILE)
def test_reports_hold_it_as_text(name: str) -> None:
    plain, named = report("plain"), report(name)
    assert Page(named.to_html()).tags == Page(plain.to_html()).tags
    assert is_plain(str(named), "\n\t")
    assert is_plain(named.summary)
    assert json.loads(named.to_json())["graph"] == name


@pytest.mark.parametrize("name", HOSTILE)
def test_pages_of_networks_hold_it_as_text(name: str) -> None:
    def page(called: str) -> Page:
        run = Run(((1,),), False, 1.0, 1.0, called, {called: 1.0}, 1, 0.0, called)
        kernel = KernelLine(called, "passed", (called,), (called,), (called,), (called,), 1, 1, run=run)
        left = replace(kernel, status="vendor", reason=called, message=called, run=None)
        return Page(NetworkSummary(called, called, 1, 1, (kernel, left), {called: 1}, 1, 1.0).to_html())

    assert page(name).tags == page("plain").tags
    assert page(name).attributes == page("plain").attributes


@pytest.mark.parametrize("name", HOSTILE)
def test_pictures_hold_it_as_text(name: str) -> None:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><text x="{markup(name)}">{markup(name)}</text></svg>'
    (text,) = ElementTree.fromstring(svg)
    assert text.text == lines(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_rows_of_tables_stay_rows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "value"), [(name, 1), ("other", -2)])
    _, first, second = capsys.readouterr().out.splitlines()
    assert is_plain(first)
    assert second.split() == ["other", "-2"]


def graph(name: str) -> Graph:
    """exp(x) + x, where everything is called so."""
    builder = Builder()
    x = builder.parameter(name, parse_type("f32[4]"))
    t = builder.emit(OPS["Exp"], x, name=name)
    return Graph(name, (x,), (builder.emit(OPS["Add"], t, x, name=name),))


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "\ud800"])
def test_dumps_hold_it_as_text(name: str, tmp_path: Path) -> None:
    made = graph(name)
    assert is_plain(str(made), "\n")
    assert str(gk.parse(str(made))) == str(made)
    fused = gk.optimize(made, flags={"dump_dir": str(tmp_path)})
    step: Any = type("Step", (), {"pass_": type("Pass", (), {"name": "graph_kernel_cluster"})})
    ClusterText(tmp_path)(step, made, fused)
    (text,) = tmp_path.glob("*.txt")
    assert is_plain(text.read_text(encoding="utf-8"), "\n")
    assert len(text.read_text(encoding="utf-8").splitlines()) == 4


@pytest.mark.parametrize("name", HOSTILE)
def test_errors_and_warnings_hold_it_as_text(name: str, caplog: pytest.LogCaptureFixture) -> None:
    for error in (FrontendError(name), ParseError(name, 1, 1), DescError(name, name)):
        assert is_plain(str(error), "\n\t")
    with caplog.at_level(logging.WARNING):
        warn(name)
    assert all(is_plain(record.getMessage()) for record in caplog.records)


def test_commands_print_nothing_that_acts(tmp_path: Path) -> None:
    name = json.dumps("\x1b[31m\u202e\x7f=1+1\nfine")
    text = f"graph {name}(x: f32[4]) {{\n  {name}: f32[4] = Exp(x)\n  return {name}\n}}\n"
    (tmp_path / "net.gk").write_text(text, encoding="utf-8")
    why, flags = ["explain", "--why", "x", "\x1b[31m"], ["explain", "--flags", "\x1b"]
    for command in (["explain", "--all"], ["report"], ["run"], why, flags):
        found = subprocess.run(
            [sys.executable, "-m", "graphkernel", command[0], str(tmp_path / "net.gk"), *command[1:]],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert is_plain(found.stdout + found.stderr, "\n\t"), command
