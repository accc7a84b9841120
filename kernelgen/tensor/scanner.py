"""Splits text IR into tokens that know their place. Line breaks and comments (``#`` to the end of the line) are spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, NoReturn

from kernelgen.errors import ParseError
from kernelgen.tensor.literals import NAME
from kernelgen.tensor.types import TYPE_PATTERN


class Kind(Enum):
    """What a token is; the value is how error messages call it."""

    DIGEST = "a digest (sha256:...)"
    TYPE = "a type such as f32[N, 4]"
    NUMBER = "a number"
    NAME = "a name"
    STRING = "a text in double quotes"
    SIGN = "a sign"
    END = "the end of the text"


class Token(NamedTuple):
    """A token at ``line`` and ``column``, counted from 1."""

    kind: Kind
    text: str
    line: int
    column: int

    def error(self, message: str) -> ParseError:
        """What is wrong at this token."""
        return ParseError(message, self.line, self.column)

    def fail(self, message: str) -> NoReturn:
        """Raises :class:`ParseError` at this token."""
        raise self.error(message)

    def __str__(self) -> str:
        return self.kind.value if self.kind is Kind.END else repr(self.text)


_PATTERN = re.compile(
    rf"(?P<space>(?:\s+|\#[^\n]*)+)|(?P<DIGEST>sha256:[0-9a-f]+)|(?P<TYPE>{TYPE_PATTERN})"
    r"|(?P<NUMBER>-?(?:inf\b(?!\.)|nan\(0x[0-9a-f]+\)|nan\b(?!\.)|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))"
    rf'|(?P<NAME>{NAME})|(?P<STRING>"(?:[^"\\\n]++|\\.)*+")|(?P<SIGN>->|[-+*(){{}}\[\],:=])'
)


def tokens(text: str) -> Iterator[Token]:
    """All tokens, the end included. Raises ``ParseError`` at a character that starts none."""
    position, line, line_start = 0, 1, 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            raise ParseError(f"unexpected character {text[position]!r}", line, position - line_start + 1)
        if match.lastgroup != "space":
            assert match.lastgroup is not None
            yield Token(Kind[match.lastgroup], match.group(), line, position - line_start + 1)
        breaks = match.group().count("\n")
        if breaks:
            line, line_start = line + breaks, match.start() + match.group().rindex("\n") + 1
        position = match.end()
    yield Token(Kind.END, "", line, position - line_start + 1)


class Scanner:
    """A cursor over the tokens, which are made as they are asked for: a text may hold millions."""

    def __init__(self, text: str) -> None:
        self._rest = tokens(text)
        self.here = next(self._rest)
        """The next token."""
        self.ahead = next(self._rest, self.here)
        """The token after the next one."""

    def take(self) -> Token:
        """Consumes the next token."""
        token, self.here = self.here, self.ahead
        self.ahead = next(self._rest, self.here)
        return token

    def at(self, text: str) -> bool:
        """Whether the next token is this sign or word."""
        return self.here.text == text and self.here.kind in (Kind.SIGN, Kind.NAME)

    def skip(self, text: str) -> bool:
        """Consumes the sign or word if it is next."""
        return self.at(text) and bool(self.take())

    def expect(self, text: str) -> Token:
        """Consumes this sign or word, or fails."""
        return self.take() if self.at(text) else self.here.fail(f"expected {text!r}, found {self.here}")

    def expect_kind(self, *kinds: Kind) -> Token:
        """Consumes a token of one of these kinds, or fails."""
        if self.here.kind in kinds:
            return self.take()
        self.here.fail(f"expected {' or '.join(kind.value for kind in kinds)}, found {self.here}")
