"""PTX text as tokens; directives that end with their line (``.loc``, ``.file``) become the places of the tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.language.nodes import Place
from kernelgen.system.token_cursor import read_tokens

TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<string>"[^"]*")
      | (?P<number>0[fF][0-9A-Fa-f]{8} | 0[dD][0-9A-Fa-f]{16} | 0[xX][0-9A-Fa-f]+U? | 0[bB][01]+U? | \d+\.\d+ | \d+U?)
      | (?P<name>[%$._A-Za-z][\w$.]*(?:::[\w.]+)*)
      | (?P<mark>[{}\[\](),;:|+\-!@<>=~])""",
    re.VERBOSE,
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
LOCATION = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(?:.*inlined_at\s+(\d+)\s+(\d+)\s+\d+)?")
LINE_DIRECTIVES = (".loc", ".file", ".version", ".address_size")


@dataclass(frozen=True)
class Token:
    """One token: ``kind`` is string, number, name or mark."""

    kind: str
    text: str
    place: Place


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a module. Raises PtxError at a character that begins none."""
    source_line = 0
    for number, line in enumerate(_without_comments(text).splitlines(), 1):
        stripped = line.strip()
        if stripped.partition("\t")[0].partition(" ")[0] in LINE_DIRECTIVES:
            found = LOCATION.match(stripped)
            source_line = _main_file_line(found) if found else source_line
        else:
            yield from _line_tokens(line, Place(number, source_line))


def _main_file_line(found: re.Match[str]) -> int:
    """The line in file 1, the kernel's own text; code of a header counts for the line that it was inlined at."""
    file, line, outer_file, outer_line = (int(group or 0) for group in found.groups())
    return line if file == 1 else outer_line if outer_file == 1 else 0


def _without_comments(text: str) -> str:
    """The text without comments, on the same lines."""
    return COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)


def _line_tokens(line: str, place: Place) -> Iterator[Token]:
    return read_tokens(TOKEN, line, lambda kind, text, _: Token(kind, text, place), PtxError, place.line)
