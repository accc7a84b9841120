"""Drops operators whose results nobody reads.

Before and after::

    e: f32[8] = Exp(x)
    y: f32[8] = Neg(x)      ->      y: f32[8] = Neg(x)

An operator that assigns to an input is always needed. Source: dead code elimination.
"""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting


def drop_dead(desc: KernelDesc) -> KernelDesc:
    """The description without operators that neither an output nor an update of an input hangs on."""
    walk = Rewriting(desc)
    for node in desc.operators:
        walk.keep(node)
    return walk.done()
