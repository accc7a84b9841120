"""A position in a list of PTX tokens: constants, and statements and blocks that are passed over."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.language.nodes import Place
from kernelgen.simulators.ptx.language.tokens import Token
from kernelgen.system.token_cursor import TokenCursor

END = Token("end", "", Place(0))


class Cursor(TokenCursor[Token]):
    """Reads tokens one after the other; :data:`END` comes after the last."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        super().__init__(tokens, END)

    def error(self, message: str) -> PtxError:
        """The error to raise at this place."""
        return PtxError(message, self.token.place.line)

    def integer(self) -> int:
        """An integer with signs before it. Raises PtxError for anything else."""
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
