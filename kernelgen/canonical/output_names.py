"""A value that only an output copies takes the output's name.

Before and after::

    a: f32[8] = Exp(x)
    b: f32[8] = Neg(a)                      y: f32[8] = Exp(x)
    y: f32[8] = TensorMove(a)       ->      b: f32[8] = Neg(y)

An input, another output and the result of an in-place operator have a name outside: a copy of them stays a copy.
Source: copy propagation, backward.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.canonical.copy_propagation import copied
from kernelgen.canonical.rewrite import kept_names, operands_replaced, with_ops
from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc


def name_outputs(desc: KernelDesc) -> KernelDesc:
    """The description in which an output copies a value only when that value has a name outside too."""
    kept = kept_names(desc)
    free = {t.name for op in desc.ops if op.name not in IN_PLACE_OPS for t in op.outputs} - kept
    renamed: dict[str, TensorDesc] = {}
    dropped: set[str] = set()
    for op in reversed(desc.ops):  # a copy of a copy is met after the name that its result takes
        source = copied(op) if op.name not in IN_PLACE_OPS else None
        result = renamed.get(op.outputs[0].name, op.outputs[0])
        if source is not None and source.name in free and source.name not in renamed and result.name in kept:
            renamed[source.name] = result
            dropped.add(op.outputs[0].name)
    if not renamed:
        return desc
    ops = [operands_replaced(op, renamed) for op in desc.ops if op.outputs[0].name not in dropped]
    return with_ops(desc, [_results_renamed(op, renamed) for op in ops])


def _results_renamed(op: OpDesc, names: dict[str, TensorDesc]) -> OpDesc:
    if not any(t.name in names for t in op.outputs):
        return op
    return replace(op, outputs=tuple(names.get(t.name, t) for t in op.outputs))
