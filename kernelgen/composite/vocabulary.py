"""AKG's vocabulary: the basic operators, what else it calls them, and operators that it alone has.

Tables of this and later rooms are keyed by these records; :func:`by_name` makes them answer to the names in a description.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from kernelgen.tensor.operator import PLAIN, Kind, Operator, Traits
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.operators.catalogue import OPERATORS

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class AkgOperator:
    """An operator that graphs do not have; ``arity`` is None for any number of operands."""

    name: str
    arity: int | None
    traits: Traits = PLAIN


Word = Operator | AkgOperator

ADD_N = AkgOperator("AddN", None, Traits(parts_alike=True))
ADD_MIN_VALUE = AkgOperator("AddMinValue", 1)
SQUARE = AkgOperator("Square", 1)
FAST_GELU = AkgOperator("FastGeLU", 1)
ZEROS_LIKE = AkgOperator("ZerosLike", 1, Traits(parts_alike=True))
SELECT_GT = AkgOperator("SelectGT", 4)
SELECT_LT = AkgOperator("SelectLT", 4)
SELECT_GE = AkgOperator("SelectGE", 4)
SELECT_LE = AkgOperator("SelectLE", 4)
STRIDED_SLICE_V2 = AkgOperator(
    "StridedSliceV2", 1, Traits(moves=True, attribute_operands={1: "begin", 2: "end", 3: "axes", 4: "strides"})
)
ELEM_ALL = AkgOperator("ElemAll", 1)
INPLACE_ASSIGN = AkgOperator("InplaceAssign", 3)
STANDARD_NORMAL = AkgOperator("StandardNormal", 0)
CUSTOM = AkgOperator("Custom", None)
USER_DEFINED = AkgOperator("UserDefined", None)

SYNONYMS: Mapping[str, Operator] = {
    "TensorAdd": basic.ADD,
    "ReducePrd": basic.REDUCE_PROD,
    "Acos": basic.ACOS,
    "EquivFormat": basic.RESHAPE,
}
"""AKG's other names of basic operators."""

WORDS: tuple[Word, ...] = (
    *OPERATORS, ADD_N, ADD_MIN_VALUE, SQUARE, FAST_GELU, ZEROS_LIKE, SELECT_GT, SELECT_LT, SELECT_GE, SELECT_LE,
    STRIDED_SLICE_V2, ELEM_ALL, INPLACE_ASSIGN, STANDARD_NORMAL, CUSTOM, USER_DEFINED,
)  # fmt: skip


def by_name(table: Mapping[Word | tuple[Word, ...], T]) -> Mapping[str, T]:
    """The table under the operators' names, AKG's other names included; a tuple of operators shares a value."""
    named: dict[str, T] = {}
    for key, value in table.items():
        named |= {word.name: value for word in (key if isinstance(key, tuple) else (key,))}
    other = {name: named[word.name] for name, word in SYNONYMS.items() if word.name in named}
    return MappingProxyType(named | other)


def names_of(*words: Word) -> frozenset[str]:
    """All names of some operators."""
    return frozenset(by_name({words: None}))


def facts(fact: Callable[[Word], T | None]) -> Mapping[str, T]:
    """Name -> what a function says of the operator, where that is something: ``facts(lambda op: op.traits.factors)``."""
    return by_name({word: found for word in WORDS if (found := fact(word))})


VIEWS = tuple(op for op in OPERATORS if op.kind is Kind.RESHAPE)
"""Operators that keep all elements in row-major order."""
