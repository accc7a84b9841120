"""AscendC text as tokens, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelgen.ascendc.errors import AscendError

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
      | (?P<string>"[^"\n]*")
      | (?P<number>0[xX][0-9A-Fa-f]+ | (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?f? | \d+[eE][+-]?\d+f? | \d+f?)
      | (?P<name>\#?[A-Za-z_]\w*(?:::\w+)*)
      | (?P<mark>\|\||&&|<=|>=|==|!=|\+=|<<|>>|[{}()\[\]<>;,.=+\-*/%!?:])""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """One token: ``kind`` is string, number, name, mark or end."""

    kind: str
    text: str
    line: int


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text. Raises AscendError at a character that begins none."""
    position, line = 0, 1
    while position < len(text):
        found = TOKEN.match(text, position)
        if found is None:
            raise AscendError(f"no token begins at {text[position : position + 10]!r}", line)
        if found.lastgroup and found.lastgroup != "space":
            yield Token(found.lastgroup, found[0], line)
        line += found[0].count("\n")
        position = found.end()


class Cursor:
    """Reads tokens one after the other."""

    def __init__(self, text: str) -> None:
        self._tokens: Sequence[Token] = tuple(tokens(text))
        self._position = 0

    @property
    def token(self) -> Token:
        """The next token; of kind ``end`` after the last."""
        if self._position < len(self._tokens):
            return self._tokens[self._position]
        return Token("end", "", self._tokens[-1].line if self._tokens else 0)

    @property
    def text(self) -> str:
        """The next token's text."""
        return self.token.text

    def ahead(self, steps: int) -> str:
        """The text of the token that many steps after the next."""
        at = self._position + steps
        return self._tokens[at].text if at < len(self._tokens) else ""

    def take(self) -> str:
        """Steps over the next token and gives its text."""
        text = self.text
        self._position += 1
        return text

    def name(self) -> str:
        """Steps over a name. Raises AscendError for anything else."""
        if self.token.kind != "name":
            raise self.error(f"expected a name, found {self.text!r}")
        return self.take()

    def accept(self, text: str) -> bool:
        """Steps over the next token if it is this one."""
        if self.text != text:
            return False
        self._position += 1
        return True

    def expect(self, *texts: str) -> None:
        """Steps over these tokens. Raises AscendError for another one."""
        for text in texts:
            if not self.accept(text):
                raise self.error(f"expected {text!r}, found {self.text!r}")

    def error(self, message: str) -> AscendError:
        """The error to raise at this place."""
        return AscendError(message, self.token.line)
