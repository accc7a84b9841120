"""Drops operators whose results nobody reads.

Before and after::

    e: f32[8] = Exp(x)
    y: f32[8] = Neg(x)      ->      y: f32[8] = Neg(x)

An operator that assigns to an input is always needed. Source: dead code elimination.
"""

from __future__ import annotations

from kernelgen.canonical.rewrite import kept_names, with_ops
from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc


def drop_dead(desc: KernelDesc) -> KernelDesc:
    """The description without operators that neither an output nor an update of an input hangs on."""
    needed = set(kept_names(desc))
    ops: list[OpDesc] = []
    for op in reversed(desc.ops):
        if op.name in IN_PLACE_OPS or any(t.name in needed for t in op.outputs):
            ops.append(op)
            needed.update(t.name for t in op.inputs if t.value is None)
    return with_ops(desc, ops[::-1])
