"""What the passes share: the operators of a description in order, with operands replaced and results renamed.

Operands are named, and a name stands for one value, except the name of an input that an operator assigns to: what it
stands for depends on when it is read. No pass moves an operator, and none puts a read of such an input in another place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc


def with_ops(desc: KernelDesc, ops: Sequence[OpDesc]) -> KernelDesc:
    """The description with these operators; the same object when they are the same objects."""
    if len(ops) == len(desc.ops) and all(new is old for new, old in zip(ops, desc.ops, strict=True)):
        return desc
    return replace(desc, ops=tuple(ops))


def kept_names(desc: KernelDesc) -> frozenset[str]:
    """The tensors that callers or hints know by name: outputs, and members of stitched or parallel groups."""
    groups = (*desc.buffer_stitch, *(desc.parallel_fusion.sub_graph if desc.parallel_fusion else ()))
    return frozenset({t.name for t in desc.outputs}.union(*groups))


def updated_names(desc: KernelDesc) -> frozenset[str]:
    """The inputs that an operator assigns to."""
    return frozenset(op.inputs[0].name for op in desc.ops if op.name in IN_PLACE_OPS)


def operands_replaced(op: OpDesc, found: Mapping[str, TensorDesc]) -> OpDesc:
    """The operator with other operands in the place of those named; the same object when it names none of them."""
    if not any(t.value is None and t.name in found for t in op.inputs):
        return op
    return replace(op, inputs=tuple(found.get(t.name, t) if t.value is None else t for t in op.inputs))


def readers(ops: Iterable[OpDesc]) -> dict[str, list[OpDesc]]:
    """Tensor name -> the operators that read it, in order."""
    found: dict[str, list[OpDesc]] = {}
    for op in ops:
        for name in dict.fromkeys(t.name for t in op.inputs if t.value is None):
            found.setdefault(name, []).append(op)
    return found


def fresh_names(desc: KernelDesc, stem: str) -> Iterator[str]:
    """``stem_0, stem_1, ...`` without the names that are in use."""
    taken = {t.name for t in desc.inputs}
    taken |= {t.name for op in desc.ops for t in (*op.inputs, *op.outputs)}
    number = 0
    while True:
        name = f"{stem}_{number}"
        number += 1
        if name not in taken:
            yield name
