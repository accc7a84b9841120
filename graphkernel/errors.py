"""Every exception that graphkernel raises, under one base class.

What the user did wrong: says what, where, and what to do. What we did wrong: says which invariant broke.
"Does not apply" is a value with a reason, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphkernel.escape import lines

LEAST_WORD = 4  # letters by which a name is recognised


class GraphKernelError(Exception):
    """Base class of every error of this package. Its text may be printed, whatever names are in it."""

    def __str__(self) -> str:
        return lines(super().__str__())


class VerifyError(GraphKernelError):
    """A graph breaks a numbered invariant of :mod:`graphkernel.ir.verify`, or a plan one of ``runtime.verify_plan``."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"invariant {invariant}: {message}")
        self.invariant = invariant


class ParseError(GraphKernelError):
    """Text IR that cannot be read; ``line`` and ``column`` count from 1, ``file`` is empty for a text."""

    def __init__(self, message: str, line: int, column: int, file: str = "") -> None:
        super().__init__(f"{file and f'{file}: '}line {line}, column {column}: {message}")
        self.message = message
        self.line = line
        self.column = column


class TypeRuleError(GraphKernelError, TypeError):
    """Operands do not fit an operator's type rule."""


class InputError(GraphKernelError, ValueError):
    """Arrays given to a graph do not fit its inputs: number, name, data type, shape, or a symbol bound to two values."""


class OptionError(GraphKernelError, ValueError):
    """A flag, option or name that does not exist or has a bad value."""


class PassError(GraphKernelError):
    """A pass failed; the cause is chained and the message names pass, graph and dump."""


class CatalogueError(GraphKernelError):
    """Two catalogue entries share a name, or an entry is malformed."""


class FrontendError(GraphKernelError):
    """A model cannot be imported; names the node and what to do."""


class GradientError(GraphKernelError):
    """What is asked for has no gradient: an operator on the way, or the type of an argument or result."""


class PackageError(GraphKernelError):
    """A package that cannot be read, is damaged, or was built for another machine or version; or what cannot be packed."""


class RuntimeFailure(GraphKernelError):
    """An executable failed on its inputs, or ``strict=True`` met a fallback."""


def said_by(error: Exception) -> str:
    """What went wrong: of onnxruntime's message the part behind the places and names of its own, else the whole error."""
    _, _, said = str(error).partition("Status Message: ")
    return re.sub(r"^\S*\.(?:cc|h):\d+ (\S+ )?", "", said).strip() or f"{type(error).__name__}: {error}"


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` with the closest known name, or an empty text.

    Closest is one that differs in case, then one of nearly the same letters, then the shortest that has a word of it;
    of these rather one with a dot where the name has one.
    """
    import difflib  # takes longer to load than most programs need to end well

    names = list(known)
    close = [other for other in names if other.casefold() == name.casefold()]
    close = (
        close
        or difflib.get_close_matches(name, names, 1)
        or sorted(_with_word(name, names), key=lambda other: (("." in other) != ("." in name), len(other)))
    )
    return f" (did you mean {close[0]!r}?)" if close else ""


def _with_word(name: str, names: Iterable[str]) -> list[str]:
    """The names that hold a word of this one."""
    words = [word for word in re.findall(r"[a-z]+", name.casefold()) if len(word) >= LEAST_WORD]
    return [other for other in names if any(word in other.casefold() for word in words)]
