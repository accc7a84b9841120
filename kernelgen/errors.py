"""Every exception that kernelgen raises, under one base class.

User errors say what, where and what to do; internal errors say which invariant broke.
"Does not apply" is never an exception.
"""

from __future__ import annotations

from kernelgen.escape import lines


class KernelgenError(Exception):
    """Base class of every error of this package. Its text may be printed, whatever names are in it."""

    def __str__(self) -> str:
        return lines(super().__str__())


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
