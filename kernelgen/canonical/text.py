"""A description as text, one operator a line."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.composite.description import KernelDesc, Tensor, number_of
from kernelgen.composite.link import tensor_names
from kernelgen.tensor.attrs import AttrValue
from kernelgen.tensor.graph import Node, Value


def show_desc(desc: KernelDesc) -> str:
    """Inputs with their types, the operators with the types of their results, the names of the outputs."""
    names = tensor_names(desc)
    inputs = ", ".join(f"{t.name}: {_kind(t)}" for t in desc.inputs)
    outputs = ", ".join(names.get(value, tensor.name) for value, tensor in zip(desc.results, desc.outputs, strict=True))
    return "\n".join(
        [f"desc {desc.name}({inputs}) -> ({outputs})", *(f"  {_op(node, names)}" for node in desc.operators)]
    )


def _op(node: Node, names: Mapping[Value, str]) -> str:
    results = ", ".join(f"{names[value]}: {_kind(value)}" for value in node.outs)
    attrs = ", ".join(f"{name}={_value(value)}" for name, value in node.attrs.items())
    operands = ", ".join(_operand(value, names) for value in node.args)
    return f"{results} = {node.op.name}({operands})" + (f" {{{attrs}}}" if attrs else "")


def _operand(value: Value, names: Mapping[Value, str]) -> str:
    number = number_of(value)
    return names[value] if number is None else f"{number}: {value.dtype}"


def _kind(tensor: Value | Tensor) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"


def _value(value: AttrValue) -> str:
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, tuple) else str(value)
