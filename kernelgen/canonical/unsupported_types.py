"""Data types that a target has no arithmetic for: the operator runs in another one between two Casts.

Before and after, for ``gpu``::

                                        a_wide: f32[8] = Cast(x)
    y: f16[8] = Exp(x)            ->    b_wide: f32[8] = Exp(a_wide)
                                        y: f16[8] = Cast(b_wide)

A rule stands in the table only where the detour gives the same bits as :func:`kernelgen.reference`: floats of half
precision round once after each scalar function anyway, and integers of 8 and 16 bits wrap around alike. So AKG's integer
comparisons in float32 are missing: they are wrong from 2**24 on. A data type that no rule helps (float64 on Ascend)
is the target's to refuse. Source: AKG's type casts for Ascend, akg-mlir's type legalisation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelgen.composite.description import KernelDesc, constant, number_of
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.scalar_rules import ELEMENTWISE, PREDICATES
from kernelgen.composite.vocabulary import ZEROS_LIKE
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT8, INT16, INT32, INT64, UINT8, UINT16, DType
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic

CASTS = frozenset({basic.CAST, basic.ROUND, basic.TENSOR_MOVE, ZEROS_LIKE})
LOGICAL = frozenset({basic.LOGICAL_AND, basic.LOGICAL_OR, basic.LOGICAL_NOT})
ARITHMETIC = frozenset(ELEMENTWISE) - CASTS - LOGICAL
RING = frozenset(
    {
        basic.ADD,
        basic.SUB,
        basic.MUL,
        basic.NEG,
        basic.ABS,
        basic.MAXIMUM,
        basic.MINIMUM,
        basic.SELECT,
        basic.REDUCE_MAX,
        basic.REDUCE_MIN,
        basic.REDUCE_SUM,
        basic.REDUCE_PROD,
    }
)
PLACES = frozenset({basic.ARGMAX, basic.ARGMIN})
COMPARISONS = PREDICATES - LOGICAL
TRANSCENDENTAL = (
    ARITHMETIC
    - RING
    - COMPARISONS
    - frozenset({basic.REAL_DIV, basic.DIV, basic.SQRT, basic.FLOOR, basic.CEIL, basic.TRUNC, basic.SIGN})
)


@dataclass(frozen=True)
class TypeRule:
    """Operators on operands of some data types run in another data type."""

    operators: frozenset[Operator]
    given: frozenset[DType]
    computed: DType
    why: str


TYPE_RULES: Mapping[str, tuple[TypeRule, ...]] = {
    "cpu": (),  # scalars of half precision are computed in float32 registers when the nest is printed
    "gpu": (
        TypeRule(
            TRANSCENDENTAL, frozenset({FLOAT16}), FLOAT32, "the functions for half precision do not round correctly"
        ),
        TypeRule(
            ARITHMETIC,
            frozenset({BFLOAT16}),
            FLOAT32,
            "devices before compute capability 8.0 have no arithmetic for it",
        ),
    ),
    "ascend": (
        TypeRule(ARITHMETIC, frozenset({BFLOAT16}), FLOAT32, "the vector unit has float16 and float32"),
        TypeRule(
            RING | COMPARISONS | PLACES,
            frozenset({INT8, UINT8, INT16, UINT16}),
            INT32,
            "the vector unit has int32 alone",
        ),
        TypeRule(
            frozenset({basic.SELECT, basic.EQUAL, basic.NOT_EQUAL}),
            frozenset({BOOL}),
            FLOAT16,
            "masks are no operands: 0.0 and 1.0 are",
        ),
    ),
}
"""Target -> rules; the first that fits counts."""


WORDS_ALONE = frozenset({"ascend"})
"""Targets that compute with whole numbers of 32 bits alone: others divide in float64, and count in 64 bits."""


def legal_types(target: str) -> Callable[[KernelDesc], KernelDesc]:
    """The pass for a target; targets without rules have all data types."""
    rules = TYPE_RULES.get(target, ())

    def legalize_types(desc: KernelDesc) -> KernelDesc:
        if target in WORDS_ALONE:
            desc = _in_words(desc)
        walk = Rewriting(desc, "wide")
        for node in desc.operators:
            _legalize(walk, node, rules)
        return walk.done()

    return legalize_types


def _legalize(walk: Rewriting, node: Node, rules: tuple[TypeRule, ...]) -> None:
    values = _values(node)
    rule = next((r for r in rules if node.op in r.operators and any(v.dtype in r.given for v in values)), None)
    if rule is None or any(0 in v.shape for v in values):
        walk.keep(node)  # the neutral element of an empty reduction is of its data type
        return

    def widened(value: Value) -> Value:
        if value.dtype not in rule.given:
            return walk.now(value)
        wide = value.type.of_dtype(rule.computed)
        number = number_of(value)
        if number is None:
            return walk.make(basic.CAST, (walk.now(value),), wide)
        return constant(number, wide, walk.fresh())

    untouched = len(node.args) - len(values)
    args = (*map(walk.now, node.args[:untouched]), *map(widened, values))
    if node.out.dtype not in rule.given or node.op in PREDICATES:
        walk.keep(node, args)
        return
    wide = walk.make(node.op, args, node.out.type.of_dtype(rule.computed), node.attrs)
    walk.becomes(node.out, walk.make(basic.CAST, (wide,), node.out.type, name=node.name))


def _in_words(desc: KernelDesc) -> KernelDesc:
    """Quotients of whole numbers towards zero: by the divisor what is left without the remainder, whichever way that rounds.
    Places along an axis: numbers of 32 bits, widened when they are found.
    """
    walk = Rewriting(desc, "wide")
    for node in desc.operators:
        args = walk.args(node)
        if node.op is basic.DIV and node.out.dtype.is_integer:
            rest = walk.make(basic.MOD, args, node.out.type)
            multiple = walk.make(basic.SUB, (args[0], rest), node.out.type)
            walk.becomes(node.out, walk.make(basic.FLOOR_DIV, (multiple, args[1]), node.out.type, name=node.name))
        elif node.op in PLACES and node.out.dtype == INT64:
            place = walk.make(node.op, args, node.out.type.of_dtype(INT32), node.attrs)
            walk.becomes(node.out, walk.make(basic.CAST, (place,), node.out.type, name=node.name))
        else:
            walk.keep(node)
    return walk.done()


def _values(node: Node) -> tuple[Value, ...]:
    """The operands that are computed with: not the condition of a Select."""
    return node.args[1:] if node.op is basic.SELECT else node.args
