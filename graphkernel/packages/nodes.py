"""Operators in a package that neither a kernel nor a region computes. What declares one is loaded when it is first run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from graphkernel.catalogue import OPERATOR_ROOMS
from graphkernel.errors import PackageError
from kernelgen.tensor.types import Attrs, TensorType

if TYPE_CHECKING:
    from kernelgen.tensor.operator import Operator


class PackedNode(NamedTuple):
    """An operator without its operands: its name, the file that declares it, and what :class:`Node` says of it."""

    operator: str
    file: str
    attrs: Attrs
    types: tuple[TensorType, ...]
    name: str

    @property
    def op(self) -> Operator:
        """The operator itself. Raises PackageError where the file does not declare it."""
        from graphkernel.packages.operators import operator_called  # most packages have kernels and regions alone

        found = operator_called(self.operator, self.file)
        if found is None:
            raise PackageError(f"there is no operator {self.operator}")
        return found


def operator_file(name: str) -> str:
    """The dotted name of a file, if it lies among those of operators: nothing else is imported for a package.

    Raises PackageError for any other.
    """
    if not (
        name.startswith(tuple(f"{room}." for room in OPERATOR_ROOMS)) and all(map(str.isidentifier, name.split(".")))
    ):
        raise PackageError(f"there is no file of operators called {name!r}")
    return name
