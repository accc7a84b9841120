"""Index expressions: exact integers in int64 that say where an access goes and how far loops run.

Each knows its ``variables``, but for those in scalars that decide it, and whether a scalar does (``is_by_data``): both are
asked again and again, so that an operation keeps them, with its hash. Fields are final for the type checker alone: to make one
of a frozen class takes four times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from kernelgen.system.cached_property import cached_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelgen.nest.nodes import Expr


@dataclass(unsafe_hash=True)
class Num:
    """An integer literal."""

    value: Final[int]
    variables: ClassVar[frozenset[str]] = frozenset()
    is_by_data: ClassVar[bool] = False


@dataclass(unsafe_hash=True)
class Var:
    """A loop variable or a size symbol, by name."""

    name: Final[str]
    is_by_data: ClassVar[bool] = False

    @property
    def variables(self) -> frozenset[str]:
        """Its own name."""
        return frozenset((self.name,))


class IndexOp(Enum):
    """Operators on indices. DIV and MOD round towards minus infinity; their right side is positive."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    MOD = "%"
    MIN = "min"
    MAX = "max"


@dataclass
class IndexBinary:
    """A binary operation on indices. Build with :mod:`kernelgen.nest.index`, which simplifies."""

    op: Final[IndexOp]
    left: Final[Index]
    right: Final[Index]

    @cached_property
    def _hash(self) -> int:
        return hash((self.op.value, self.left, self.right))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[IndexBinary], tuple[IndexOp, Index, Index]]:
        return IndexBinary, (self.op, self.left, self.right)  # hashes of texts are another process's own

    @cached_property
    def is_by_data(self) -> bool:
        """Whether a scalar decides it."""
        return self.left.is_by_data or self.right.is_by_data

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names of its variables, but for those in scalars that decide it."""
        return self.left.variables | self.right.variables


@dataclass(unsafe_hash=True)
class ValueIndex:
    """An integer scalar as an index: data decides where an access goes.

    It stands in accesses only, and whoever makes it clamps it into the buffer. In a nest the value is a :class:`Ref`.
    """

    value: Final[Expr]
    variables: ClassVar[frozenset[str]] = frozenset()
    is_by_data: ClassVar[bool] = True


Index = Num | Var | IndexBinary | ValueIndex


def values(index: Index) -> Sequence[Expr]:
    """The scalars that decide the index, from left to right."""
    if isinstance(index, ValueIndex):
        return (index.value,)
    return (*values(index.left), *values(index.right)) if isinstance(index, IndexBinary) and index.is_by_data else ()
