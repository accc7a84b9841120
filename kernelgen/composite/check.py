"""Is a description sound? Names, order of definition, operand counts, shapes, data types, in-place rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.scalar_rules import ELEMENTWISE, PREDICATES, REDUCTIONS
from kernelgen.composite.shape_rules import expected_shapes, same_up_to_ones
from kernelgen.composite.slice_shapes import SizeDependentError
from kernelgen.composite.vocabulary import SELECT_GE, SELECT_GT, SELECT_LE, SELECT_LT, WORDS, by_name, names_of
from kernelgen.errors import DescError, TypeRuleError
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, DType
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.types import TensorType

ARITIES = by_name({op: op.arity for op in WORDS if op.arity is not None and op is not basic.CONV2D})
"""Operator -> how many operands it has; a convolution of AKG's may have a bias."""

CONVERSIONS = names_of(basic.CAST, basic.ROUND)
"""Element-wise operators whose result may have any data type (AKG's Round gives int32)."""


NOT_VALUES = by_name({basic.SELECT: 1, (SELECT_GT, SELECT_LT, SELECT_GE, SELECT_LE): 2})
"""Operator -> how many of its first operands only decide."""


def check(desc: KernelDesc) -> KernelDesc:
    """The description itself when it is sound. Raises DescError, with the path of the first fault, when it is not."""
    known = _named(desc.inputs, "$.input_desc")
    for position, op in enumerate(desc.ops):
        path = f"$.op_desc[{position}]"
        _check_operands(op, known, path)
        _check_arity(op, path)
        _check_in_place(op, desc, path)
        _check_shapes(op, path)
        _check_dtypes(op, path)
        for place, result in enumerate(op.outputs):
            if result.name in known:
                raise DescError(f"{op.name}: tensor {result.name!r} is defined twice", f"{path}.output_desc[{place}]")
            known[result.name] = result
    for place, tensor in enumerate(desc.outputs):
        _check_mention(tensor, known, f"$.output_desc[{place}]", "the kernel")
    _check_groups(desc, known)
    return desc


def _named(tensors: Iterable[TensorDesc], path: str) -> dict[str, TensorDesc]:
    named: dict[str, TensorDesc] = {}
    for place, tensor in enumerate(tensors):
        if tensor.value is not None:
            raise DescError(f"input {tensor.name!r} must not be a constant", f"{path}[{place}][0].value")
        if tensor.name in named:
            raise DescError(f"input {tensor.name!r} is listed twice", f"{path}[{place}][0]")
        named[tensor.name] = tensor
    return named


def _check_operands(op: OpDesc, known: Mapping[str, TensorDesc], path: str) -> None:
    for place, operand in enumerate(op.inputs):
        if operand.value is None:
            _check_mention(operand, known, f"{path}.input_desc[{place}][0]", op.name)


def _check_mention(tensor: TensorDesc, known: Mapping[str, TensorDesc], path: str, reader: str) -> None:
    defined = known.get(tensor.name)
    if defined is None:
        raise DescError(f"{reader} uses tensor {tensor.name!r} before it is defined", f"{path}.tensor_name")
    if defined.shape != tensor.shape:
        raise DescError(f"{tensor.name!r} is {list(defined.shape)}, here it is {list(tensor.shape)}", f"{path}.shape")
    if defined.dtype != tensor.dtype:
        raise DescError(f"{tensor.name!r} is {defined.dtype.name}, here it is {tensor.dtype.name}", f"{path}.data_type")


def _check_arity(op: OpDesc, path: str) -> None:
    arity = ARITIES.get(op.name) if op.declared is None else op.declared.arity
    if not op.inputs and (arity or op.name in ELEMENTWISE):
        raise DescError(f"{op.name} has no operands", f"{path}.input_desc")
    if arity is not None and len(op.inputs) != arity:
        raise DescError(f"{op.name} takes {arity} operands, found {len(op.inputs)}", f"{path}.input_desc")


def _check_in_place(op: OpDesc, desc: KernelDesc, path: str) -> None:
    if op.name not in IN_PLACE_OPS:
        return
    destination = op.inputs[0]
    if destination.name not in {tensor.name for tensor in desc.inputs}:
        raise DescError(f"{op.name} writes to {destination.name!r}, which is no input", f"{path}.input_desc[0][0]")


def _check_shapes(op: OpDesc, path: str) -> None:
    try:
        expected = expected_shapes(op)
    except SizeDependentError:
        return  # sound, but no shape is known to compare with: the stages refuse it with a code
    except TypeRuleError as fault:
        raise DescError(str(fault), path) from fault
    except (ValueError, KeyError, TypeError) as fault:
        raise DescError(f"{op.name}: {fault.args[0]}", path) from fault
    for place, (result, shape) in enumerate(zip(op.outputs, expected or (), strict=bool(expected))):
        if not same_up_to_ones(result.shape, shape):
            message = f"{op.name} gives shape {list(shape)}, found {list(result.shape)}"
            raise DescError(message, f"{path}.output_desc[{place}].shape")


def _check_dtypes(op: OpDesc, path: str) -> None:
    if op.declared is not None:
        _check_declared(op, op.declared, path)
    if op.name not in ELEMENTWISE and op.name not in REDUCTIONS:
        return
    result = op.outputs[0].dtype
    if op.name in PREDICATES:
        if result != BOOL and not result.is_float:  # AKG's Ascend writer gives predicates of float16 a float16 result
            raise DescError(f"{op.name} gives bool, found {result.name}", f"{path}.output_desc[0].data_type")
        return
    if op.name in CONVERSIONS:
        return
    for operand in op.inputs[NOT_VALUES.get(op.name, 0) :]:
        if operand.value is None and not _is_or_joins(operand.dtype, result):
            message = f"{op.name} of {operand.dtype.name} {operand.name!r} cannot give {result.name} without a Cast"
            raise DescError(message, f"{path}.output_desc[0].data_type")


def _check_declared(op: OpDesc, operator: Operator, path: str) -> None:
    types = operator.infer(tuple(TensorType(t.shape, t.dtype) for t in op.inputs), op.attrs)
    for place, (result, type_) in enumerate(zip(op.outputs, types, strict=True)):
        if result.dtype != type_.dtype:
            message = f"{op.name} gives {type_.dtype.name}, found {result.dtype.name}"
            raise DescError(message, f"{path}.output_desc[{place}].data_type")


def _is_or_joins(given: DType, result: DType) -> bool:
    """Whether it is the result's data type, or that of the parts of a complex result."""
    return given == result or (given, result) in ((FLOAT32, COMPLEX64), (FLOAT64, COMPLEX128))


def _check_groups(desc: KernelDesc, known: Mapping[str, TensorDesc]) -> None:
    parallel = desc.parallel_fusion.sub_graph if desc.parallel_fusion else ()
    for path, groups in (("$.buffer_stitch.stitch_op", desc.buffer_stitch), ("$.parallel_fusion.sub_graph", parallel)):
        for place, name in ((f"[{i}][{j}]", n) for i, group in enumerate(groups) for j, n in enumerate(group)):
            if name not in known:
                raise DescError(f"no tensor is named {name!r}", f"{path}{place}")
