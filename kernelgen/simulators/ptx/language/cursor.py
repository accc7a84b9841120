"""A position in a list of tokens, with the small steps that a parser takes."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.language.nodes import Place
from kernelgen.simulators.ptx.language.tokens import Token

END = Token("end", "", Place(0))


class Cursor:
    """Reads tokens one after the other."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._position = 0

    @property
    def token(self) -> Token:
        """The next token, :data:`END` after the last."""
        return self._tokens[self._position] if self._position < len(self._tokens) else END

    @property
    def text(self) -> str:
        """The next token's text."""
        return self.token.text

    def following(self) -> str:
        """The text after the next token."""
        return self._tokens[self._position + 1].text if self._position + 1 < len(self._tokens) else ""

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

    def expect(self, text: str) -> None:
        """Steps over this token. Raises PtxError for another one."""
        if not self.accept(text):
            raise self.error(f"expected {text!r}, found {self.text!r}")

    def integer(self) -> int:
        """An integer with signs before it."""
        sign = 1
        while self.text in ("-", "+"):
            sign *= -1 if self.take() == "-" else 1
        try:
            return sign * int(self.take().rstrip("U"), 0)
        except ValueError as error:
            raise self.error("expected an integer") from error

    def constant(self) -> int:
        """An integer, or the bits of a float written as 0f or 0d."""
        if self.text[:2].lower() in ("0f", "0d"):
            return int(self.take()[2:], 16)
        return self.integer()

    def skip_statement(self) -> None:
        """Steps over everything to the next semicolon."""
        while self.token is not END and self.take() != ";":
            pass

    def skip_braces(self) -> None:
        """Steps over a block in braces."""
        self.expect("{")
        depth = 1
        while depth and self.token is not END:
            text = self.take()
            depth += (text == "{") - (text == "}")

    def error(self, message: str) -> PtxError:
        """The error to raise at this place."""
        return PtxError(message, self.token.place.line)
