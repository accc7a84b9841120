"""A nest and what is run once before all of its calls, as one nest: what both mean together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelgen.nest import nodes as n
from kernelgen.nest.walk import replace_buffers


def with_preparation(nest: n.Nest, inputs: Sequence[str]) -> n.Nest:
    """The nest that computes first what its preparation gives, into workspaces; the nest itself where it has none.

    ``inputs`` are the names of the inputs of the whole, in order.
    """
    before = nest.preparation
    if before is None:
        return nest
    known = {
        b.name: (b, shape)
        for part in (before, nest)
        for b, shape in zip(part.buffers, part.argument_shapes, strict=False)
    }
    own = {b.name for b in nest.buffers} - {b.name for b in before.buffers}
    made = [b for b in before.buffers if b.space is n.Space.OUTPUT]
    outputs = [b for b in nest.buffers if b.space is n.Space.OUTPUT]
    arguments = [known[name] for name in (*inputs, *(b.name for b in outputs))]
    workspaces = [*(b for b in nest.buffers if b.space is n.Space.WORKSPACE and b.name in own), *made]
    whole = {b.name: replace(b, space=n.Space.WORKSPACE) for b in workspaces}
    body = n.Block((*before.body.statements, *nest.body.statements))
    return replace(
        nest,
        buffers=(*(b for b, _ in arguments), *whole.values()),
        argument_shapes=tuple(shape for _, shape in arguments),
        body=replace_buffers(body, whole),
        preparation=None,
    )
