"""AscendC text as tokens, each with its line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelgen.ascendc.errors import AscendError
from kernelgen.system.token_cursor import TokenCursor, read_tokens

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


class Cursor(TokenCursor[Token]):
    """Reads the tokens of a text one after the other; one of kind ``end`` comes after the last."""

    def __init__(self, text: str) -> None:
        """Raises AscendError at a character that begins no token."""
        tokens = tuple(read_tokens(TOKEN, text, Token, AscendError))
        super().__init__(tokens, Token("end", "", tokens[-1].line if tokens else 0))

    def name(self) -> str:
        """Steps over a name. Raises AscendError for anything else."""
        if self.token.kind != "name":
            raise self.error(f"expected a name, found {self.text!r}")
        return self.take()

    def error(self, message: str) -> AscendError:
        """The error to raise at this place."""
        return AscendError(message, self.token.line)
