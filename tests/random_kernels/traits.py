"""What a kernel has in it, for the record of a run: data types, kinds of extents, numbers of operators."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.scalar_rules import REDUCTIONS
from kernelgen.tensor.dims import Sym

LENGTHS = (0, 1, 5, 10, 20, 40, 60)
"""Ends of the ranges in which operators are counted."""


def traits(desc: KernelDesc) -> Counter[str]:
    """Each trait once."""
    tensors = [*desc.inputs, *(v for node in desc.operators for v in (*node.args, *node.outs))]
    extents = {dim for tensor in tensors for dim in tensor.shape}
    static = {dim for dim in extents if isinstance(dim, int)}
    found = {tensor.dtype.name for tensor in tensors} | {_length(len(desc.operators))}
    reductions = sum(node.op in REDUCTIONS for node in desc.operators)
    named = {
        "symbolic dims": any(isinstance(dim, Sym) for dim in extents), "extents of 0": 0 in static, "extents of 1": 1 in static,
        "odd extents from 3 on": any(dim > 2 and dim % 2 for dim in static), "in-place": bool(desc.updated_inputs),
        "several reductions": reductions > 1, "large tensors": max(static, default=0) > 400,
        "several outputs": len(desc.outputs) > 1,
    }  # fmt: skip
    return Counter(found | {name for name, holds in named.items() if holds})


def _length(count: int) -> str:
    """The range that a number of operators is in."""
    for before, end in pairwise((-1, *LENGTHS)):
        if count <= end:
            return f"{end} operators" if before + 1 == end else f"{before + 1} to {end} operators"
    return f"more than {LENGTHS[-1]} operators"
