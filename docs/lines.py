"""Lines of the product over time, from git: ``python -m docs.lines`` prints the tables of docs/lines_of_code.md.

A product line is a line of a ``.py`` file below ``graphkernel`` or ``kernelgen``, docstrings and blank lines included.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import PurePosixPath

from docs.markdown import table

PRODUCT = ("graphkernel", "kernelgen")
START = "3cffcd0"
"""Where the rebuild was planned."""

COLUMNS = ("files", "lines", "code", "docstrings", "imports", "blank")


class Lines(dict[str, int]):
    """How many lines of each kind there are, or how many more."""

    def __neg__(self) -> Lines:
        return Lines({name: -count for name, count in self.items()})


STEPS: Mapping[str, str] = {
    "rooms by meaning, names of the literature": "3ca1f76 34ccd7d fc606c8",
    "simulators and nest passes share their tools, what only tests used goes": (
        "33dca09 14541b0 e94cc2f 2546544 46ff1ef 0da677a"
    ),
    "the nest IR is imported as one module": "7f273b4",
    "forms of nests, typed marks, machines as values": "7b53c7d bab7d7f 795a522 1f0775c a32fea4 a62e4f8",
    "one operator, one record": (
        "e69a3b8 8cb33a3 34cdd10 5c52c98 6eb4a43 d8cb34b fa44ddd 8cd85ba 9aa18c1 de079f9 6486804 7c4a064 27ac4ab"
    ),
    "one tensor IR": "82849da 00ee413 8472d38",
    "dense files and functions opened up, faults told from refusals": (
        "95f3a0e fdf87d6 864dbd8 c1bcf59 ee9f738 43e7b64 cca3642 d370c11 bd7668a"
    ),
    "docstrings say arguments, units and errors": "fd6eb42 493d9ec ad63ee4 96169ca 64d8730 a3d2483",
    "shape rules, axes, equal operators and compounds once; dead names": "05c175c 282f971 71ab54c b31991f 0398f26 bcb9818",
}
"""Steps of the rebuild, and their commits."""


def steps(start: str) -> str:
    """The table of what the steps added to the product and took from it, and of all other work since ``start``."""
    known = {step: _sum(_change(f"{each}~1", each) for each in commits.split()) for step, commits in STEPS.items()}
    whole, together = _change(start, "HEAD"), _sum(known.values())
    known |= {"all steps": together, "all other work": _sum((whole, -together))}
    return table(
        ("step", *COLUMNS), [(step, *(f"{change[name]:+,}" for name in COLUMNS)) for step, change in known.items()]
    )


def rooms(before: str, after: str = "HEAD") -> str:
    """The table of what rooms grew by at least 400 lines between two commits; a file that moved counts where it lies now."""
    moved = _git("diff", "-M30%", "-l9999", "--numstat", "-z", before, after, "--", *PRODUCT).split("\0")
    found: Counter[str] = Counter()
    fields = iter(moved)
    for entry in fields:
        if entry.count("\t") == 2:
            added, removed, path = entry.split("\t")
            path = path or [next(fields), next(fields)][1]
            if path.endswith(".py"):
                found[_room(path)] += int(added) - int(removed)
    large = [(room, lines) for room, lines in found.most_common() if lines >= 400]
    others = sum(found.values()) - sum(lines for _, lines in large)
    return table(
        ("room", "lines"), [(f"`{room}`", f"{lines:+,}") for room, lines in large] + [("others", f"{others:+,}")]
    )


def kinds(commits: Iterable[str]) -> str:
    """The table of what the product's lines are at each commit."""
    rows = [(f"`{commit}`", *(f"{_kinds(commit)[name]:,}" for name in COLUMNS)) for commit in commits]
    return table(("commit", *COLUMNS), rows)


def _sum(changes: Iterable[Lines]) -> Lines:
    return Lines(
        {name: sum(each) for name, each in zip(COLUMNS, zip(*map(_figures, changes), strict=True), strict=True)}
    )


def _change(before: str, after: str) -> Lines:
    return _sum((_kinds(after), -_kinds(before)))


def _figures(lines: Lines) -> list[int]:
    return [lines[name] for name in COLUMNS]


@cache
def _kinds(commit: str) -> Lines:
    listed = (entry.split() for entry in _git("ls-tree", "-r", commit, "--", *PRODUCT).splitlines())
    return _sum(_kinds_of(blob) for _, _, blob, path in listed if path.endswith(".py"))


@cache
def _kinds_of(blob: str) -> Lines:
    text = _git("cat-file", "blob", blob)
    tree, rows = ast.parse(text), text.splitlines()
    prose = {k for node in ast.walk(tree) if _is_prose(node) for k in _span(node)}
    imports = {k for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for k in _span(node)}
    blank = sum(not row.strip() for number, row in enumerate(rows, 1) if number not in prose)
    code = len(rows) - len(prose) - len(imports) - blank
    return Lines(zip(COLUMNS, (1, len(rows), code, len(prose), len(imports), blank), strict=True))


def _is_prose(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _span(node: ast.AST) -> range:
    assert isinstance(node, ast.stmt), "the caller looks at statements"
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _room(path: str) -> str:
    """The folder, of targets the machine's."""
    parts = PurePosixPath(path).parts[:-1]
    return "/".join(parts[: 3 if parts[1:2] == ("targets",) else 2])


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, check=True, text=True).stdout


if __name__ == "__main__":
    print(kinds((START, "3ca1f76~1", "HEAD")), steps(START), rooms(START), sep="\n\n")
