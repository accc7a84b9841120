"""A process that is clang: JSON texts in, JSON lists of diagnostics out. Its LLVM must not meet that of llvmlite.

A warning counts: it says that a constant does not fit where it goes, or that an expression does not mean what it looks like.
"""

from __future__ import annotations

import json
import sys

from clang.cindex import Diagnostic, Index, TranslationUnit

NAME = "kernel.cpp"
OPTIONS = ("-x", "c++", "-std=c++17", "-target", "x86_64-linux-gnu", "-nostdinc", "-ferror-limit=20")


def diagnostics(index: Index, folder: str, text: str) -> list[str]:
    """``line:column: message`` of everything that clang has to say about a text."""
    unit = TranslationUnit.from_source(
        NAME, [*OPTIONS, "-I", folder], unsaved_files=[(NAME, text)], index=index, options=TranslationUnit.PARSE_NONE
    )
    return [_line(found) for found in unit.diagnostics if found.severity >= Diagnostic.Warning]


def _line(found: Diagnostic) -> str:
    place = found.location
    where = f"{place.line}:{place.column}" if not place.file or place.file.name == NAME else str(place.file)
    return f"{where}: {found.spelling}"


def main() -> None:
    """The first argument is the folder of kernel_operator.h."""
    index = Index.create()
    texts: list[str] = json.load(sys.stdin)
    json.dump([diagnostics(index, sys.argv[1], text) for text in texts], sys.stdout)


if __name__ == "__main__":
    main()
