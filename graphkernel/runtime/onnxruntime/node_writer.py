"""What collects the ONNX nodes of a region, and what its rules say and raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelgen.tensor.elements import element_number
from kernelgen.tensor.graph import Node
from kernelgen.tensor.types import DType, Shape, Sym, dtype

DEFAULT_OPSET = 17
OLDEST_OPSET = 13  # that the rules below can write
SMALL_BYTES = (
    1 << 10
)  # of constants that the model itself holds: onnxruntime looks at shapes and scalars while it loads


class Unwritable(Exception):
    """The operator, with these types and attributes, has no ONNX form; the message says why."""


@dataclass
class Writer:
    """Collects the ONNX nodes and constants of one model. Names are made unique by a number."""

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


def lies_beside(array: np.ndarray) -> bool:
    """Whether a constant stays out of the model: onnxruntime then reads it where it is."""
    return array.nbytes > SMALL_BYTES and array.flags.c_contiguous and not dtype(array.dtype).is_opaque


def initializer(array: np.ndarray, name: str) -> Any:  # an onnx message
    """A constant in a model; what :func:`lies_beside` is only named there."""
    from onnx import TensorProto, helper, numpy_helper

    if not lies_beside(array):
        return numpy_helper.from_array(array, name)
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    beside = TensorProto(name=name, data_type=kind, dims=array.shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", name), ("offset", "0"), ("length", str(array.nbytes))):
        beside.external_data.add(key=key, value=value)
    return beside


def element_type(of: DType) -> int:
    """ONNX's number of a data type of tensors."""
    return element_number(of) or 0


def result_names(result: str, count: int) -> tuple[str, ...]:
    """The names of a node's results when the first is called ``result``."""
    return (result, *(f"{result}_{index}" for index in range(1, count)))


Write = Callable[[Writer, Node, tuple[str, ...], str], object]
"""(writer, node, operand names, result name): appends nodes, the last of which makes the result."""
