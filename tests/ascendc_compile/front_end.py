"""A process that is clang: JSON texts in, JSON out. Its LLVM must not meet that of llvmlite.

``errors`` gives a list of diagnostics for each text. A warning counts: it says that a constant does not fit where it goes,
or that an expression does not mean what it looks like. ``declarations`` gives the functions and constructors that a text
declares, those of its headers too: [name, [type of each parameter]], without const and references.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from clang.cindex import Cursor, Diagnostic, Index, TranslationUnit

NAME = "kernel.cpp"
CALLED = ("FUNCTION_DECL", "FUNCTION_TEMPLATE", "CONSTRUCTOR")
OPTIONS = ("-x", "c++", "-std=c++17", "-target", "x86_64-linux-gnu", "-nostdinc", "-ferror-limit=20")


def parsed(index: Index, folder: str, text: str) -> TranslationUnit:
    """A text as C++17, whatever is wrong with it."""
    return TranslationUnit.from_source(NAME, [*OPTIONS, "-I", folder], unsaved_files=[(NAME, text)], index=index)


def diagnostics(index: Index, folder: str, text: str) -> list[str]:
    """``line:column: message`` of everything that clang has to say about a text."""
    return [_line(found) for found in parsed(index, folder, text).diagnostics if found.severity >= Diagnostic.Warning]


def _line(found: Diagnostic) -> str:
    place = found.location
    where = f"{place.line}:{place.column}" if not place.file or place.file.name == NAME else str(place.file)
    return f"{where}: {found.spelling}"


def declarations(index: Index, folder: str, text: str) -> list[tuple[str, list[str]]]:
    """Name and parameter types of all functions, function templates and constructors."""
    unit = parsed(index, folder, text)
    return [
        (cursor.spelling.partition("<")[0], [_plain(one.type.spelling) for one in _parameters(cursor)])
        for cursor in unit.cursor.walk_preorder()
        if cursor.kind.name in CALLED
    ]


def _parameters(cursor: Cursor) -> Iterator[Cursor]:
    yield from (child for child in cursor.get_children() if child.kind.name == "PARM_DECL")


def _plain(spelling: str) -> str:
    return spelling.removeprefix("const ").removesuffix("&").strip()


def main(task: str, folder: str) -> None:
    """Does the task for each text of the standard input; the folder is that of kernel_operator.h."""
    work = {"errors": diagnostics, "declarations": declarations}[task]
    index = Index.create()
    json.dump([work(index, folder, text) for text in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
