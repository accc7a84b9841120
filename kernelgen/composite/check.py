"""Is a description sound? Operand counts, shapes and data types; how names link is :mod:`kernelgen.composite.link`'s."""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.document import Operation
from kernelgen.composite.scalar_rules import ELEMENTWISE, PREDICATES, REDUCTIONS
from kernelgen.composite.shape_rules import expected_shapes, same_up_to_ones
from kernelgen.composite.slice_shapes import SizeDependentError
from kernelgen.composite.vocabulary import SELECT_GE, SELECT_GT, SELECT_LE, SELECT_LT, WORDS, by_operator, is_declared
from kernelgen.errors import DescError
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, DType
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.types import TensorType

ARITIES = {word: word.arity for word in WORDS if word.arity is not None and word is not basic.CONV2D}
"""Operator -> how many operands it has; a convolution of AKG's may have a bias."""

CONVERSIONS = frozenset({basic.CAST, basic.ROUND})
"""Element-wise operators whose result may have any data type (AKG's Round gives int32)."""


NOT_VALUES = by_operator({basic.SELECT: 1, (SELECT_GT, SELECT_LT, SELECT_GE, SELECT_LE): 2})
"""Operator -> how many of its first operands only decide."""


def check(desc: KernelDesc) -> KernelDesc:
    """The description itself when it is sound; otherwise DescError with the path of the first fault."""
    for position, node in enumerate(desc.operators):
        require_sound(node, f"$.op_desc[{position}]")
    return desc


def require_sound(node: Node | Operation, path: str) -> None:
    """Raises DescError, with the path, for an operator whose operands and results do not fit."""
    _check_arity(node, path)
    _check_shapes(node, path)
    _check_dtypes(node, path)


def _check_arity(node: Node | Operation, path: str) -> None:
    arity = node.op.arity if is_declared(node.op) else ARITIES.get(node.op)
    if not node.args and (arity or node.op in ELEMENTWISE):
        raise DescError(f"{node.op.name} has no operands", f"{path}.input_desc")
    if arity is not None and len(node.args) != arity:
        raise DescError(f"{node.op.name} takes {arity} operands, found {len(node.args)}", f"{path}.input_desc")


def _check_shapes(node: Node | Operation, path: str) -> None:
    try:
        expected = expected_shapes(node)
    except SizeDependentError:
        return  # sound, but no shape is known to compare with: the stages refuse it with a code
    except (ValueError, KeyError, TypeError) as fault:
        message = str(fault.args[0])
        named = message if message.startswith(f"{node.op.name}(") else f"{node.op.name}: {message}"
        raise DescError(named, path) from fault
    for place, (result, shape) in enumerate(zip(node.outs, expected or (), strict=bool(expected))):
        if not same_up_to_ones(result.shape, shape):
            message = f"{node.op.name} gives shape {list(shape)}, found {list(result.shape)}"
            raise DescError(message, f"{path}.output_desc[{place}].shape")


def _check_dtypes(node: Node | Operation, path: str) -> None:
    if is_declared(node.op):
        _check_declared(node, path)
    if node.op not in ELEMENTWISE and node.op not in REDUCTIONS:
        return
    result = node.outs[0].dtype
    if node.op in PREDICATES:
        if result != BOOL and not result.is_float:  # AKG's Ascend writer gives predicates of float16 a float16 result
            raise DescError(f"{node.op.name} gives bool, found {result.name}", f"{path}.output_desc[0].data_type")
        return
    if node.op in CONVERSIONS:
        return
    for operand in node.args[NOT_VALUES.get(node.op, 0) :]:
        if not _is_constant(operand) and not _is_or_joins(operand.dtype, result):
            message = (
                f"{node.op.name} of {operand.dtype.name} {operand.name!r} cannot give {result.name} without a Cast"
            )
            raise DescError(message, f"{path}.output_desc[0].data_type")


def _check_declared(node: Node | Operation, path: str) -> None:
    types = node.op.infer(tuple(TensorType(t.shape, t.dtype) for t in node.args), node.attrs)
    for place, (result, type_) in enumerate(zip(node.outs, types, strict=True)):
        if result.dtype != type_.dtype:
            message = f"{node.op.name} gives {type_.dtype.name}, found {result.dtype.name}"
            raise DescError(message, f"{path}.output_desc[{place}].data_type")


def _is_or_joins(given: DType, result: DType) -> bool:
    """Whether it is the result's data type, or that of the parts of a complex result."""
    return given == result or (given, result) in ((FLOAT32, COMPLEX64), (FLOAT64, COMPLEX128))


def _is_constant(operand: Value | Tensor) -> bool:
    return (operand.constant if isinstance(operand, Value) else operand.value) is not None
