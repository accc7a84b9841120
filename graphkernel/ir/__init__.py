"""The tensor IR, as programs and plugins import it. Its files are those of :mod:`kernelgen.tensor`."""

from kernelgen.tensor.graph import Alias, Builder, Graph, Node, Value
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.types import Attrs, DType, Sym, TensorType

__all__ = ["Alias", "Attrs", "Builder", "DType", "Graph", "Kind", "Node", "Operator", "Sym", "TensorType", "Value"]
