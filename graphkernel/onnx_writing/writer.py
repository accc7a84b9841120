"""What collects the ONNX nodes of a model, what forms say and raise, and nodes that many of them are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from kernelgen.tensor.elements import element_number
from kernelgen.tensor.graph import Node
from kernelgen.tensor.types import DType, Shape, Sym, dtype

DEFAULT_OPSET = 17
OLDEST_OPSET = 13  # that the rules below can write
AXES_OPERAND_OPSET = 18  # from which on the axes of all reductions are an operand


class Unwritable(Exception):
    """The operator, with these types and attributes, has no ONNX form; the message says why."""


@dataclass
class Writer:
    """Collects the ONNX nodes and constants of one model. Names are made unique by a number.

    ``is_whole_model`` tells a model that goes out, where a form has to be found, from a region, which may leave operators.
    """

    is_whole_model: ClassVar[bool] = False
    opset: int
    nodes: list[Any] = field(default_factory=list[Any])
    constants: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    _names: dict[int, str] = field(default_factory=dict[int, str])

    def constant(self, array: np.ndarray) -> str:
        """The name of a constant; an array that came before keeps its name."""
        name = self._names.get(id(array)) or self.fresh("k")
        self._names[id(array)] = name
        self.constants[name] = array
        return name

    def fresh(self, kind: str) -> str:
        """A name that is still free: of a constant (``k``) or of the result of the next node (``n``)."""
        return f"{kind}{len(self.constants) if kind == 'k' else len(self.nodes)}"

    def extent(self, dim: Sym) -> str:
        """The name of a vector that holds one symbolic extent. Here nothing tells it: raises :class:`Unwritable`."""
        raise Unwritable(f"the symbolic extent {dim}")

    def extents(self, dims: Shape) -> str:
        """The name of a vector that holds the extents: a constant when all are numbers."""
        if not any(isinstance(dim, Sym) for dim in dims):
            return self.ints(tuple(dim for dim in dims if isinstance(dim, int)))
        parts: list[str] = []
        for dim in dims:
            parts.append(self.extent(dim) if isinstance(dim, Sym) else self.ints((dim,)))
        return parts[0] if len(parts) == 1 else self.emit("Concat", *parts, axis=0)

    def ints(self, values: tuple[int, ...]) -> str:
        """The name of a new int64 vector."""
        return self.constant(np.asarray(values, np.int64))

    def emit(self, op_type: str, *operands: str, result: str = "", **attributes: Any) -> str:  # as onnx takes them
        """Appends a node with one result and gives the result's name."""
        name = result or self.fresh("n")
        self.append(op_type, operands, [name], **attributes)
        return name

    def append(self, op_type: str, operands: Sequence[str], results: Sequence[str], **attributes: Any) -> None:
        """Appends a node with any number of results. A list without elements is one of integers, such as no axes."""
        from onnx import AttributeProto, helper  # the extra "onnx" is needed only when a region is built

        node = helper.make_node(op_type, operands, results)
        for name, value in sorted((name, value) for name, value in attributes.items() if value is not None):
            kind = AttributeProto.INTS if isinstance(value, tuple | list) and not value else None
            node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
        self.nodes.append(node)


def element_type(of: DType) -> int:
    """ONNX's number of a data type of tensors."""
    return element_number(of) or 0


def result_names(result: str, count: int) -> tuple[str, ...]:
    """The names of a node's results when the first is called ``result``."""
    return (result, *(f"{result}_{index}" for index in range(1, count)))


Write = Callable[[Writer, Node, tuple[str, ...], str], object]
"""(writer, node, operand names, result name): appends nodes, the last of which makes the result."""


def scalar(writer: Writer, of: DType, value: float) -> str:
    """The name of ``value`` in the data type ``of``, as a constant of the ``writer``."""
    return writer.constant(np.asarray(value).astype(of.numpy))


def cast(writer: Writer, x: str, of: DType | str, result: str = "") -> str:
    """Appends to the ``writer`` the elements of ``x`` in the data type ``of``, called ``result`` where one is given."""
    return writer.emit("Cast", x, to=element_type(dtype(of) if isinstance(of, str) else of), result=result)


def where(writer: Writer, of: DType, condition: str, x: str, y: str, result: str = "") -> str:
    """Appends to the ``writer`` elements of ``x`` where ``condition`` holds, else of ``y``, as ``result``.

    ``of`` is their data type: onnxruntime selects no truth values.
    """
    if of.name != "bool":
        return writer.emit("Where", condition, x, y, result=result)
    otherwise = writer.emit("And", writer.emit("Not", condition), y)
    return writer.emit("Or", writer.emit("And", condition, x), otherwise, result=result)


def reduce(writer: Writer, name: str, x: str, axes: tuple[int, ...], keepdims: int, result: str = "") -> str:
    """Appends to the ``writer`` the reduction ``name`` of ``x`` over ``axes``, as ``result``; ``keepdims`` is 0 or 1.

    Its axes are an operand from ``AXES_OPERAND_OPSET`` on, those of a sum before.
    """
    if writer.opset >= AXES_OPERAND_OPSET or name == "ReduceSum":
        return writer.emit(name, x, writer.ints(axes), result=result, keepdims=keepdims)
    return writer.emit(name, x, result=result, axes=axes, keepdims=keepdims)


def taken(writer: Writer, shape: str, axis: int) -> str:
    """Appends to the ``writer`` the extent of ``shape`` at ``axis``, as a vector."""
    return writer.emit("Gather", shape, writer.ints((axis,)), axis=0)
