"""A description as text, one operator a line."""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.tensor.attrs import AttrValue


def show_desc(desc: KernelDesc) -> str:
    """Inputs with their types, the operators with the types of their results, the names of the outputs."""
    inputs = ", ".join(f"{t.name}: {_kind(t)}" for t in desc.inputs)
    outputs = ", ".join(t.name for t in desc.outputs)
    return "\n".join([f"desc {desc.name}({inputs}) -> ({outputs})", *(f"  {_op(op)}" for op in desc.ops)])


def _op(op: OpDesc) -> str:
    results = ", ".join(f"{t.name}: {_kind(t)}" for t in op.outputs)
    attrs = ", ".join(f"{name}={_value(value)}" for name, value in op.attrs.items())
    operands = ", ".join(map(_operand, op.inputs))
    return f"{results} = {op.name}({operands})" + (f" {{{attrs}}}" if attrs else "")


def _operand(tensor: TensorDesc) -> str:
    return tensor.name if tensor.value is None else f"{tensor.value}: {tensor.dtype}"


def _kind(tensor: TensorDesc) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"


def _value(value: AttrValue) -> str:
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, tuple) else str(value)
