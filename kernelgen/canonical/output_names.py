"""A value that only an output copies takes the output's name.

Before and after::

    a: f32[8] = Exp(x)
    b: f32[8] = Neg(a)                      y: f32[8] = Exp(x)
    y: f32[8] = TensorMove(a)       ->      b: f32[8] = Neg(y)

An input, another output and the result of an in-place operator have a name outside: a copy of them stays a copy.
Source: copy propagation, backward.
"""

from __future__ import annotations

from kernelgen.canonical.copy_propagation import copied
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting, kept_values
from kernelgen.tensor.graph import Value
from kernelgen.tensor.operators.effects import ASSIGN


def name_outputs(desc: KernelDesc) -> KernelDesc:
    """The description in which an output copies a value only when that value has a name outside too."""
    kept = kept_values(desc)
    free = {value for node in desc.operators if node.op is not ASSIGN for value in node.outs} - kept
    renamed: dict[Value, Value] = {}
    dropped: set[Value] = set()
    for node in reversed(desc.operators):  # a copy of a copy is met after the name that its result takes
        source = copied(node) if node.op is not ASSIGN else None
        result = renamed.get(node.outs[0], node.outs[0])
        if source is not None and source in free and source not in renamed and result in kept:
            renamed[source] = result
            dropped.add(node.out)
    walk = Rewriting(desc)
    for node in desc.operators:
        if node.outs[0] in dropped:
            walk.becomes(node.out, walk.now(node.args[0]))
        else:
            walk.keep(node, name=renamed[node.outs[0]].name if node.outs[0] in renamed else "")
    return walk.done()
