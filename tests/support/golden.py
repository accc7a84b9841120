"""Golden files: what passes do to graphs, as text. Every block of a ``.gk`` file under ``tests/`` is one test.

A block is a title line ``== case | pass, pass | flags`` (flags may be left out), the graph before, a line ``--`` and
the graph after. ``pytest --update-golden`` writes the graphs after as they are now; the difference is read like code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kernelgen.tensor.graph import Graph

TITLE = re.compile(r"^== (?P<case>[^|\n]+)\|(?P<passes>[^|\n]+)(?:\|(?P<flags>[^\n]*))?$", re.MULTILINE)
SEPARATOR = re.compile(r"^--$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One case of a golden file."""

    case: str
    passes: tuple[str, ...]
    flags: str
    before: str
    after: str

    def __str__(self) -> str:
        flags = f" | {self.flags}" if self.flags else ""
        return f"== {self.case} | {', '.join(self.passes)}{flags}\n{self.before}\n--\n{self.after}\n"

    def outcome(self) -> str:
        """The text of the graph that the passes make of ``before`` now."""
        from graphkernel.ops import OPS
        from kernelgen.tensor.text import parse

        return str(transformed(parse(self.before, OPS), self.passes, self.flags)).strip()


def transformed(graph: Graph, names: Iterable[str], flags: str) -> Graph:
    """The graph after the named passes, with everything that the project declares at their disposal."""
    from graphkernel.declarations import builtin_catalogue
    from graphkernel.options import Options

    catalogue = builtin_catalogue()
    passes = {entry.name: entry for entry in catalogue.passes}
    context = catalogue.context(Options.parse(flags))
    for name in names:
        graph = passes[name](graph, context)
    return graph


def blocks(text: str) -> Iterator[Block]:
    """The cases of a golden file, in order."""
    titles = list(TITLE.finditer(text))
    ends = [title.start() for title in titles[1:]] + [len(text)]
    for title, end in zip(titles, ends, strict=True):
        before, after = SEPARATOR.split(text[title.end() : end], maxsplit=1)
        passes = tuple(name.strip() for name in title["passes"].split(","))
        yield Block(title["case"].strip(), passes, (title["flags"] or "").strip(), before.strip(), after.strip())


def update(path: Path, case: str, after: str) -> None:
    """Writes one case's graph after into its file."""
    rewritten = [replace(block, after=after) if block.case == case else block for block in blocks(path.read_text())]
    path.write_text("\n".join(map(str, rewritten)))


class GoldenMismatch(Exception):
    """The graph after is not the one in the file."""


class GoldenItem(pytest.Item):
    """One block, run as a test."""

    block: Block

    def runtest(self) -> None:
        outcome = self.block.outcome()
        if outcome == self.block.after:
            return
        if not self.config.getoption("--update-golden"):
            raise GoldenMismatch(f"expected\n{self.block.after}\n\ngot\n{outcome}")
        update(self.path, self.block.case, outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None) -> str:
        if isinstance(excinfo.value, GoldenMismatch):
            return f"{self.path}: case {self.block.case!r}: {excinfo.value}\n(pytest --update-golden accepts it)"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.block.case


class GoldenFile(pytest.File):
    """A ``.gk`` file with blocks."""

    def collect(self) -> Iterator[GoldenItem]:
        for block in blocks(self.path.read_text()):
            item = GoldenItem.from_parent(self, name=block.case)
            item.block = block
            yield item
