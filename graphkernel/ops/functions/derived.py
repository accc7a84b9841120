"""The Python function of an operator, made from its record.

Its parameters are the operands, which its meaning names, and then the attributes with their defaults; what is written
loosely becomes what the operator holds. Tensors give Tensors (recorded), arrays give arrays (computed at once). One result
is given as it stands, several as a tuple. Results that are written into inputs of the graph are noted there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature, signature, unwrap
from typing import Any

import numpy as np

from graphkernel.errors import FrontendError, TypeRuleError, nearest
from graphkernel.ops.tensor.apply import apply_all
from graphkernel.ops.tensor.in_turn import apply_in_turn
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.operator import REQUIRED, Attribute, Operator
from kernelgen.tensor.types import TensorType, dtype

OPERANDS = ("x", "y", "z")
"""What operands are called where the meaning is a function of numpy."""
NOTHING = TensorType((), dtype("float32"))


def function_of(op: Operator, name: str) -> Callable[..., Any]:
    """The function, called ``name``, with a signature and a docstring that ``help`` shows.

    It raises TypeRuleError for operands and attributes that do not fit, and FrontendError where what it writes into is no
    input of the graph.
    """
    own = Signature(_parameters(op))
    attributes = {attribute.parameter or attribute.name: attribute for attribute in op.attributes}

    def function(*args: Any, **named: Any) -> Any:
        if not named and not attributes and len(args) == op.arity:
            return _applied(op, args, {})
        try:
            bound = own.bind(*args, **named)
        except TypeError as error:
            raise TypeRuleError(f"{name}: {error}{_hint(named, own)}; it is called as {name}{own}") from error
        bound.apply_defaults()
        operands = tuple(_operands(own, bound.arguments, attributes))
        first = _type_of(operands[0]) if operands else NOTHING
        held = {each.name: each.hold(bound.arguments[given], first) for given, each in attributes.items()}
        return _applied(op, operands, {key: value for key, value in held.items() if value is not None})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = op.doc or f"The operator {op.name}."
    function.__signature__ = own  # type: ignore[attr-defined]  # what inspect and help read
    return function


def _parameters(op: Operator) -> list[Parameter]:
    """Operands, then attributes, those without a default first; behind any number of operands, and behind what the record
    says the call begins with, only by name."""
    operands = _named_operands(op)
    attributes = sorted(map(_parameter, op.attributes), key=lambda each: each.default is not REQUIRED)
    loose = [each for each in operands if each.kind is Parameter.VAR_POSITIONAL]
    every = {each.name: each for each in (*operands, *attributes) if each not in loose}
    count = len(operands) - len(loose) if loose else len(every)
    first = op.traits.call or tuple(every)[:count]
    rest = [each.replace(kind=Parameter.KEYWORD_ONLY) for name, each in every.items() if name not in first]
    return [*(every[name] for name in first), *loose, *rest]


def _parameter(attribute: Attribute) -> Parameter:
    name, default, written = attribute.parameter or attribute.name, attribute.default, attribute.annotation
    if default is None and not written.endswith(("Any", "None")):
        written = f"{written} | None"
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=written)


def _named_operands(op: Operator) -> list[Parameter]:
    """The operands as the meaning names them, or the formula in it; one with a default may be left out."""
    meaning = unwrap(op.meaning)
    if not isinstance(meaning, np.ufunc) and not getattr(meaning, "__module__", "").startswith("numpy"):
        others = {"attrs", *op.attribute_names}
        named = [each for each in signature(meaning).parameters.values() if each.name not in others]
        if op.arity in (None, len(named)):
            return [each.replace(annotation=Parameter.empty) for each in named]
    return [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in OPERANDS[: op.arity]]


def _hint(named: Mapping[str, Any], own: Signature) -> str:
    return "".join(nearest(name, own.parameters) for name in named if name not in own.parameters)


def _operands(own: Signature, given: Mapping[str, Any], attributes: Mapping[str, Attribute]) -> Iterator[Any]:
    """Those that were given, in the order of the operator, which the order of the call may differ from."""
    for name, parameter in own.parameters.items():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            yield from given[name]
        elif name not in attributes and given[name] is not None:
            yield given[name]


def _type_of(operand: Any) -> TensorType:
    own = np.asarray(operand) if not hasattr(operand, "dtype") else operand
    return TensorType(tuple(own.shape), dtype(own.dtype))


def _applied(op: Operator, operands: Sequence[Any], attrs: Mapping[str, object]) -> Any:
    results = apply_in_turn(op, operands, attrs) if op.traits.ordered else apply_all(op, *operands, **attrs)
    for result, place in op.traits.writes:
        if isinstance(results[result], Tensor):
            _note(op, place, operands[place], results[result])
    return results[0] if len(results) == 1 else results


def _note(op: Operator, place: int, target: Any, result: Tensor) -> None:
    if not isinstance(target, Tensor) or not target.value.is_parameter:
        kind = f"the result of {target.value.op.name}" if isinstance(target, Tensor) else type(target).__name__
        raise FrontendError(
            f"{op.name}: operand {place} is written into, so only an input of the graph can stand there, this is {kind}"
        )
    result.builder.effects.append((target.value, result.value))
