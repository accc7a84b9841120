"""The ONNX form of every operator that has one.

An operator whose record names ONNX's own (``Operator.onnx``) is that one, unless its attributes, or what ONNX leaves open,
ask for a form here. Regions take only what onnxruntime computes fast and safely and leave the rest to kernels and numpy;
a model that goes out has to hold all of a graph.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphkernel.onnx_writing import (
    arithmetic,
    communication,
    convolution_gradients,
    indexing,
    moves,
    network,
    reductions,
)
from graphkernel.onnx_writing.writer import Unwritable, Write, Writer, result_names
from graphkernel.ops.composite.arithmetic import IDENTITY_MATH, LOGICAL_XOR, STOP_GRADIENT
from graphkernel.ops.library.host import ONNX, onnx_node
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.creation import SHAPE
from kernelgen.tensor.operators.elemwise import ACOS, ACOSH, ASIN, ASINH, ATAN, ATANH, COSH, SINH

ROOMS = (arithmetic, communication, convolution_gradients, indexing, moves, network, reductions)
WHOLE_MODELS: Mapping[Operator, Write] = {op: write for room in ROOMS for op, write in room.WHOLE_MODELS_ONLY.items()}
WRITERS: Mapping[Operator, Write] = WHOLE_MODELS | {op: write for room in ROOMS for op, write in room.WRITERS.items()}
WHOLE_MODELS_ONLY = frozenset({
    *WHOLE_MODELS, ACOS, ACOSH, ASIN, ASINH, ATAN, ATANH, COSH, SINH, LOGICAL_XOR, SHAPE, IDENTITY_MATH, STOP_GRADIENT,
})  # fmt: skip
"""What regions leave to kernels and to numpy."""


def write(writer: Writer, node: Node, operands: tuple[str, ...], result: str) -> None:
    """Appends the ONNX form of a ``node``; its ``operands`` are names in the model, its results are
    :func:`result_names` of ``result``.

    Raises :class:`Unwritable` where the ``writer`` holds none.
    """
    if node.op is ONNX:
        writer.nodes.append(onnx_node(node.attrs, operands, result_names(result, len(node.types))))
    elif node.op in WHOLE_MODELS_ONLY and not writer.is_whole_model:
        raise Unwritable(f"{node.op.name} is left to kernels and numpy")
    elif node.op in WRITERS:
        WRITERS[node.op](writer, node, operands, result)
    elif node.op.onnx:
        writer.emit(node.op.onnx, *operands, result=result)
    else:
        raise Unwritable(f"{node.op.name} has no ONNX form")
