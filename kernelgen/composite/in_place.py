"""Dummy results of in-place operators: MindSpore gives an Assign a result of one element that stands for the updated input.

y: f32[1] = Assign(p: f32[16, 16], new)  ->  outputs (y)          y: f32[16, 16] = Assign(p, new)  ->  outputs ()
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.composite.document import IN_PLACE, Document, Operation
from kernelgen.tensor.dims import product


def drop_dummy_results(desc: Document) -> Document:
    """The description whose in-place results have their full shape and whose dummies are no outputs.

    AKG's kernels do not return dummies either (its ``fake_output``). The same object when there are none.
    """
    dummies = {op.out.name for op in desc.ops if _is_dummy(op)}
    if not dummies:
        return desc
    ops = tuple(_whole(op) if op.out.name in dummies else op for op in desc.ops)
    return replace(desc, ops=ops, outputs=tuple(t for t in desc.outputs if t.name not in dummies))


def _is_dummy(op: Operation) -> bool:
    return op.op in IN_PLACE and product(op.out.shape) == 1 != product(op.args[-1].shape)


def _whole(op: Operation) -> Operation:
    return replace(op, outs=(replace(op.out, shape=op.args[-1].shape),))
