"""AKG's vocabulary: the basic operators, what else it calls them, and operators that it alone has.

Tables of this and later rooms are keyed by these records; :func:`operator_named` finds them by the names in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.operator import PLAIN, Kind, Operator, Traits
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.operators.catalogue import OPERATORS
from kernelgen.tensor.types import TensorType

T = TypeVar("T")


def _untyped(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    raise TypeRuleError("AKG's JSON says what types its operators give")


def _unmeant(*arrays: object, attrs: Attrs) -> object:
    raise TypeRuleError("operators of AKG's JSON have their meaning in kernelgen.semantics")


def _of_akg(name: str, arity: int | None, traits: Traits = PLAIN) -> Operator:
    """An operator that no graph of a network has; its ``arity`` is None for any number of operands."""
    return Operator(name, Kind.OPAQUE, arity, _untyped, _unmeant, traits=traits)


ADD_N = _of_akg("AddN", None, Traits(parts_alike=True))
ADD_MIN_VALUE = _of_akg("AddMinValue", 1)
SQUARE = _of_akg("Square", 1)
FAST_GELU = _of_akg("FastGeLU", 1)
ZEROS_LIKE = _of_akg("ZerosLike", 1, Traits(parts_alike=True))
SELECT_GT = _of_akg("SelectGT", 4)
SELECT_LT = _of_akg("SelectLT", 4)
SELECT_GE = _of_akg("SelectGE", 4)
SELECT_LE = _of_akg("SelectLE", 4)
STRIDED_SLICE_V2 = _of_akg(
    "StridedSliceV2", 1, Traits(moves=True, attribute_operands={1: "begin", 2: "end", 3: "axes", 4: "strides"})
)
ELEM_ALL = _of_akg("ElemAll", 1)
INPLACE_ASSIGN = _of_akg("InplaceAssign", 3)
STANDARD_NORMAL = _of_akg("StandardNormal", 0)
CUSTOM = _of_akg("Custom", None)
USER_DEFINED = _of_akg("UserDefined", None)

SYNONYMS: Mapping[str, Operator] = {
    "TensorAdd": basic.ADD,
    "ReducePrd": basic.REDUCE_PROD,
    "Acos": basic.ACOS,
    "EquivFormat": basic.RESHAPE,
}
"""AKG's other names of basic operators."""

WORDS: tuple[Operator, ...] = (
    *OPERATORS, ADD_N, ADD_MIN_VALUE, SQUARE, FAST_GELU, ZEROS_LIKE, SELECT_GT, SELECT_LT, SELECT_GE, SELECT_LE,
    STRIDED_SLICE_V2, ELEM_ALL, INPLACE_ASSIGN, STANDARD_NORMAL, CUSTOM, USER_DEFINED,
)  # fmt: skip


_NAMED: Mapping[str, Operator] = MappingProxyType({**{word.name: word for word in WORDS}, **SYNONYMS})

_KNOWN = frozenset(WORDS)


@lru_cache(maxsize=1 << 10)
def operator_named(name: str) -> Operator:
    """The operator that AKG's JSON calls so; of a name that is not known one that no table holds."""
    return _NAMED.get(name) or _of_akg(name, None)


def is_declared(op: Operator) -> bool:
    """Whether an operator is declared outside of the vocabulary, by a user's package: then it says itself what it is."""
    return op not in _KNOWN and op.infer is not _untyped


def by_operator(table: Mapping[Operator | tuple[Operator, ...], T]) -> Mapping[Operator, T]:
    """The table in which the operators of a tuple share a value."""
    found: dict[Operator, T] = {}
    for key, value in table.items():
        found |= dict.fromkeys(key if isinstance(key, tuple) else (key,), value)
    return MappingProxyType(found)


def facts(fact: Callable[[Operator], T | None]) -> Mapping[Operator, T]:
    """Operator -> what a function says of it, where that is something: ``facts(lambda word: word.traits.factors)``."""
    return MappingProxyType({word: found for word in WORDS if (found := fact(word))})


VIEWS = tuple(op for op in OPERATORS if op.kind is Kind.RESHAPE)
"""Operators that keep all elements in row-major order."""
