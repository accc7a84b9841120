"""Functions whose operand is known to be within bounds by what it was computed from: shorter code, no less accurate.

That is so in ``log1p(exp(-abs(x)))``, of which softplus, Mish and cross entropies of logits are made.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelgen.nest.nodes import Call, Expr
from kernelgen.targets.cpu.math import exponentials, logarithms
from kernelgen.targets.cpu.text.formats import register_kind
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value


def shorter(frame: Frame, call: Call) -> Callable[[Value], Value] | None:
    """What computes the ``call`` where ``frame`` tells the bounds of its operand; None where nothing is known."""
    if register_kind(call.dtype) != "float":
        return None
    match call.function:
        case "exp" if _is_at_most_zero(frame, call.args[0]):
            return exponentials.exp_of_at_most_zero
        case "log1p" if _is_up_to_one(frame, call.args[0]):
            return logarithms.log1p_up_to_one
        case _:
            return None


def _is_at_most_zero(frame: Frame, expr: Expr) -> bool:
    return (negated := _operand(frame, "neg", expr)) is not None and _operand(frame, "abs", negated) is not None


def _is_up_to_one(frame: Frame, expr: Expr) -> bool:
    return (exponent := _operand(frame, "exp", expr)) is not None and _is_at_most_zero(frame, exponent)


def _operand(frame: Frame, function: str, expr: Expr) -> Expr | None:
    """What the ``function`` was called with to compute ``expr``. NaN is within all bounds here."""
    call = frame.call_of(expr)
    return call.args[0] if call is not None and call.function == function else None
