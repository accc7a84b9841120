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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from kernelgen.canonical.rewrite import fresh_names, with_ops
from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.scalar_rules import ELEMENTWISE, PREDICATES, constant
from kernelgen.composite.vocabulary import ZEROS_LIKE, names_of
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT8, INT16, INT32, UINT8, UINT16, DType
from kernelgen.tensor.operators import catalogue as basic

CASTS = names_of(basic.CAST, basic.ROUND, basic.TENSOR_MOVE, ZEROS_LIKE)
LOGICAL = names_of(basic.LOGICAL_AND, basic.LOGICAL_OR, basic.LOGICAL_NOT)
ARITHMETIC = frozenset(ELEMENTWISE) - CASTS - LOGICAL
RING = names_of(
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
)
COMPARISONS = PREDICATES - LOGICAL
TRANSCENDENTAL = (
    ARITHMETIC
    - RING
    - COMPARISONS
    - names_of(basic.REAL_DIV, basic.DIV, basic.SQRT, basic.FLOOR, basic.CEIL, basic.TRUNC, basic.SIGN)
)


@dataclass(frozen=True)
class TypeRule:
    """Operators on operands of some data types run in another data type."""

    operators: frozenset[str]
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
            RING | COMPARISONS, frozenset({INT8, UINT8, INT16, UINT16}), INT32, "the vector unit computes in int32 only"
        ),
        TypeRule(
            names_of(basic.SELECT, basic.EQUAL, basic.NOT_EQUAL),
            frozenset({BOOL}),
            FLOAT16,
            "masks are no operands: 0.0 and 1.0 are",
        ),
    ),
}
"""Target -> rules; the first that fits counts."""


EXACT_QUOTIENTS = frozenset({"ascend"})
"""Targets without float64, in which others divide whole numbers."""


def legal_types(target: str) -> Callable[[KernelDesc], KernelDesc]:
    """The pass for a target; targets without rules have all data types."""
    rules = TYPE_RULES.get(target, ())

    def legalize_types(desc: KernelDesc) -> KernelDesc:
        names = fresh_names(desc, "wide")
        ops = [part for op in desc.ops for part in _divided(op, names)] if target in EXACT_QUOTIENTS else desc.ops
        return with_ops(desc, [part for op in ops for part in _legal(op, rules, names)])

    return legalize_types


def _legal(op: OpDesc, rules: tuple[TypeRule, ...], names: Iterator[str]) -> tuple[OpDesc, ...]:
    values = _values(op)
    rule = next((r for r in rules if op.name in r.operators and any(t.dtype in r.given for t in values)), None)
    if rule is None or any(
        0 in t.shape for t in values
    ):  # the neutral element of an empty reduction is of its data type
        return (op,)
    before: list[OpDesc] = []

    def widened(tensor: TensorDesc) -> TensorDesc:
        if tensor.dtype not in rule.given:
            return tensor
        wide = replace(tensor, name=next(names), dtype=rule.computed)
        if tensor.value is not None:
            return replace(wide, value=constant(tensor.value, rule.computed))
        before.append(OpDesc(basic.CAST.name, (tensor,), (wide,), Attrs()))
        return wide

    untouched = len(op.inputs) - len(values)
    inputs = (*op.inputs[:untouched], *map(widened, values))
    if op.output.dtype not in rule.given or op.name in PREDICATES:
        return (*before, replace(op, inputs=inputs))
    wide = replace(op.output, name=next(names), dtype=rule.computed)
    return (*before, replace(op, inputs=inputs, outputs=(wide,)), OpDesc(basic.CAST.name, (wide,), op.outputs, Attrs()))


def _divided(op: OpDesc, names: Iterator[str]) -> tuple[OpDesc, ...]:
    """Quotients of whole numbers towards zero: by the divisor what is left without the remainder, whichever way that rounds."""
    if op.name != basic.DIV.name or not op.output.dtype.is_integer:
        return (op,)
    rest, multiple = (replace(op.output, name=next(names)) for _ in range(2))
    return (
        OpDesc(basic.MOD.name, op.inputs, (rest,), Attrs()),
        OpDesc(basic.SUB.name, (op.inputs[0], rest), (multiple,), Attrs()),
        OpDesc(basic.FLOOR_DIV.name, (multiple, op.inputs[1]), op.outputs, Attrs()),
    )


def _values(op: OpDesc) -> tuple[TensorDesc, ...]:
    """The operands that are computed with: not the condition of a Select."""
    return op.inputs[1:] if op.name == basic.SELECT.name else op.inputs
