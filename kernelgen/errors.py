"""Every exception that kernelgen raises, under one base class, and those of the tensor IR that both packages share.

User errors say what, where and what to do; internal errors say which invariant broke.
"Does not apply" is never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelgen.system.escape import lines

LEAST_WORD = 4  # letters by which a name is recognised


class GraphKernelError(Exception):
    """Base class of every error of both packages. Its text may be printed, whatever names are in it."""

    def __str__(self) -> str:
        return lines(super().__str__())


class KernelgenError(GraphKernelError):
    """Base class of what only kernelgen raises."""


class VerifyError(GraphKernelError):
    """A graph breaks a numbered invariant of :mod:`kernelgen.tensor.verify`, or a plan one of ``runtime.verify_plan``."""

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


class RuntimeFailure(GraphKernelError):
    """An executable failed on its inputs, or ``strict=True`` met a fallback."""


class DescError(KernelgenError):
    """The composite description is malformed. ``path`` is the JSON path of the culprit."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(f"{path}: {message}")
        self.path = path


class UnsupportedError(KernelgenError):
    """The description is well formed, but this target cannot compile it.

    ``code`` is one of the closed list :data:`REASONS`; reports and ``verify`` records carry it.
    """

    def __init__(self, code: str, message: str) -> None:
        if code not in REASONS:
            raise ValueError(f"reason code {code!r} is not declared in kernelgen.errors.REASONS")
        super().__init__(f"[{code}] {message}")
        self.code = code


class ProofError(KernelgenError):
    """A proof obligation failed. ``check`` names it, ``witness`` is a violating point or pair."""

    def __init__(self, check: str, message: str, witness: str = "") -> None:
        super().__init__(f"proof of {check} failed: {message}" + (f" (witness {witness})" if witness else ""))
        self.check = check
        self.witness = witness


class NestError(KernelgenError):
    """A loop nest breaks one of its invariants."""


class CodegenError(KernelgenError):
    """The target rejected code that we printed. The source is attached as ``source``."""

    def __init__(self, message: str, source: str = "") -> None:
        super().__init__(message)
        self.source = source


class BackendUnavailable(KernelgenError):
    """The target needs something this machine lacks; the message says what to install."""


class ArgumentError(KernelgenError, TypeError):
    """A kernel was called with arrays that do not fit its description."""


REASONS: dict[str, str] = {
    "unsupported-op": "no meaning of this operator is known to the polyhedral builder",
    "unsupported-dtype": "the target has no arithmetic for this data type",
    "unsupported-layout": "the tensor layout cannot be expressed as an affine access",
    "unsupported-attr": "an attribute value of the operator is outside of what is implemented",
    "budget": "the polyhedral analysis did not finish within its budget of operations",
    "too-large": "the tensors do not fit the memory budget of this run",
    "device": "the device at hand refuses the kernel",
    "defective-input": "the description contradicts itself",
}


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


def said_by(error: Exception) -> str:
    """What went wrong: of onnxruntime's message the part behind the places and names of its own, else the whole error."""
    _, _, said = str(error).partition("Status Message: ")
    return re.sub(r"^\S*\.(?:cc|h):\d+ (\S+ )?", "", said).strip() or f"{type(error).__name__}: {error}"
