"""Texts of other languages as tokens, and a position among them with the small steps that a parser takes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

MOST_SHOWN = 20
"""Characters of an unreadable text that an error shows."""


class HasText(Protocol):
    """A token."""

    @property
    def text(self) -> str:
        """What stands in the text."""
        ...


T = TypeVar("T", bound=HasText)


def read_tokens(
    pattern: re.Pattern[str],
    text: str,
    token: Callable[[str, str, int], T],
    error: Callable[[str, int], Exception],
    line: int = 1,
) -> Iterator[T]:
    """``token(kind, text, line)`` for every match that is not of the group ``space``; the kind is the group's name.

    ``line`` is the number of the first line. Raises ``error(message, line)`` at a character that begins no token.
    """
    position = 0
    while position < len(text):
        found = pattern.match(text, position)
        if found is None:
            raise error(f"no token begins at {text[position : position + MOST_SHOWN].strip()!r}", line)
        if found.lastgroup and found.lastgroup != "space":
            yield token(found.lastgroup, found[0], line)
        line += found[0].count("\n")
        position = found.end()


class TokenCursor(ABC, Generic[T]):
    """Reads tokens one after the other; ``end`` is what comes after the last."""

    def __init__(self, tokens: Sequence[T], end: T) -> None:
        self._tokens = tokens
        self._end = end
        self._position = 0

    @abstractmethod
    def error(self, message: str) -> Exception:
        """The error to raise at this place."""

    @property
    def token(self) -> T:
        """The next token."""
        return self._tokens[self._position] if self._position < len(self._tokens) else self._end

    @property
    def text(self) -> str:
        """The next token's text."""
        return self.token.text

    def ahead(self, steps: int) -> str:
        """The text of the token that many steps after the next."""
        at = self._position + steps
        return self._tokens[at].text if at < len(self._tokens) else self._end.text

    def take(self) -> str:
        """Steps over the next token and gives its text."""
        text = self.text
        self._position += 1
        return text

    def accept(self, text: str) -> bool:
        """Steps over the next token if it is this one."""
        if self.text != text:
            return False
        self._position += 1
        return True

    def expect(self, *texts: str) -> None:
        """Steps over these tokens. Raises the language's error for another one."""
        for text in texts:
            if not self.accept(text):
                raise self.error(f"expected {text!r}, found {self.text!r}")
