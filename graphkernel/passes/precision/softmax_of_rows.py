"""What a softmax of rows is in basic operators: ``e / l`` with ``e = Exp(s - ReduceMax(s))`` and ``l = ReduceSum(e)``.

The greatest ``e`` of a row is 1, so that ``l`` lies between 1 and the row's length, or is NaN.
"""

from __future__ import annotations

from kernelgen.tensor.graph import Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.elemwise import EXP, REAL_DIV, SUB
from kernelgen.tensor.operators.reduce import REDUCE_MAX, REDUCE_SUM
from kernelgen.tensor.operators.type_rules import axes_of


def is_softmax_of_rows(value: Value) -> bool:
    """Whether a value is such a quotient; its operands are ``e`` and ``l``."""
    if value.op is not REAL_DIV:
        return False
    powers, total = value.node.args
    return powers.op is EXP and _reduces(total, REDUCE_SUM, powers) and _is_shifted(powers.node.args[0])


def _is_shifted(scores: Value) -> bool:
    """Whether the greatest of each row is subtracted."""
    return scores.op is SUB and _reduces(scores.node.args[1], REDUCE_MAX, scores.node.args[0])


def _reduces(value: Value, op: Operator, of: Value) -> bool:
    """Whether a value is one number for each row of another one."""
    if value.op is not op or value.node.args[0] != of or value.type.shape != (*of.type.shape[:-1], 1):
        return False
    rank = of.type.rank
    return axes_of(value.node.attrs.ints("axis", ()), rank) == (rank - 1,)
