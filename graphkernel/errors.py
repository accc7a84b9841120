"""Every exception that graphkernel raises, under the base class of both packages.

What the user did wrong: says what, where, and what to do. What we did wrong: says which invariant broke.
"Does not apply" is a value with a reason, never an exception.
"""

from __future__ import annotations

from kernelgen.errors import (
    GraphKernelError,
    InputError,
    ParseError,
    RuntimeFailure,
    TypeRuleError,
    VerifyError,
    nearest,
    said_by,
)

__all__ = [
    "CatalogueError", "FrontendError", "GradientError", "GraphKernelError", "InputError", "OptionError", "PackageError",
    "ParseError", "PassError", "RuntimeFailure", "TypeRuleError", "VerifyError", "nearest", "said_by",
]  # fmt: skip


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
