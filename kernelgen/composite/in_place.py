"""Dummy results of in-place operators: MindSpore gives an Assign a result of one element that stands for the updated input.

y: f32[1] = Assign(p: f32[16, 16], new)  ->  outputs (y)          y: f32[16, 16] = Assign(p, new)  ->  outputs ()
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc
from kernelgen.tensor.dims import product


def drop_dummy_results(desc: KernelDesc) -> KernelDesc:
    """The description whose in-place results have their full shape and whose dummies are no outputs.

    AKG's kernels do not return dummies either (its ``fake_output``). The same object when there are none.
    """
    dummies = {op.output.name for op in desc.ops if _is_dummy(op)}
    if not dummies:
        return desc
    ops = tuple(_whole(op) if op.output.name in dummies else op for op in desc.ops)
    return replace(desc, ops=ops, outputs=tuple(t for t in desc.outputs if t.name not in dummies))


def _is_dummy(op: OpDesc) -> bool:
    return op.name in IN_PLACE_OPS and product(op.output.shape) == 1 != product(op.inputs[-1].shape)


def _whole(op: OpDesc) -> OpDesc:
    return replace(op, outputs=(replace(op.output, shape=op.inputs[-1].shape),))
