"""The project's sources as syntax trees, for the house tests."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "tests" / "facts"
PACKAGES = ("graphkernel", "kernelgen")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One file of a package: its path from the root, its lines and its syntax tree."""

    path: str
    lines: tuple[str, ...]
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, which every rule looks through."""
        return tuple(ast.walk(self.tree))

    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes if isinstance(node, Function))


@cache
def sources() -> tuple[Source, ...]:
    """Every Python file of the two packages, sorted by path.

    Their million nodes stay to the end. Looking for garbage among them took four times as long as reading them.
    """
    gc.disable()
    try:
        return tuple(_read(path) for path in _paths())
    finally:
        gc.freeze()
        gc.enable()


@cache
def rooms() -> tuple[Path, ...]:
    """Every directory of the two packages that holds Python files."""
    return tuple(sorted({path.parent for path in _paths()}))


def _paths() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def _read(path: Path) -> Source:
    text = path.read_text()
    return Source(str(path.relative_to(ROOT)), tuple(text.splitlines()), ast.parse(text, str(path)))
