"""The largest files and functions of the packages: about 200 lines a file and 30 a function is the guide."""

from __future__ import annotations

from tests.support.sources import sources

SHOWN = 8


def size_report() -> str:
    """A table of the largest files and functions, largest first."""
    files = sorted(((len(source.lines), source.path) for source in sources()), reverse=True)
    functions = sorted(
        (
            ((node.end_lineno or node.lineno) - node.lineno + 1, f"{source.path}:{node.name}")
            for source in sources()
            for node in source.functions()
        ),
        reverse=True,
    )
    total = f"{len(files)} files, {sum(size for size, _ in files)} lines, {len(functions)} functions"
    rows = zip(files[:SHOWN], functions[:SHOWN], strict=False)
    return "\n".join([total, *(f"{size:5d} {path:44s}{length:5d} {name}" for (size, path), (length, name) in rows)])
