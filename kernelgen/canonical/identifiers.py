"""Tensors and the kernel get names that may be printed: what a file calls them is data, and never reaches a compiler.

Before and after::

    'a\\n}': f32[8] = Exp('x y')       a___5a1c...: f32[8] = Exp(x_y_93b2...)

Names that are identifiers stay as they are. Symbols of shapes are identifiers always (:func:`kernelgen.tensor.dims.sym`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kernelgen.composite.description import KernelDesc, ParallelFusion
from kernelgen.composite.rewriting import Rewriting
from kernelgen.errors import UnsupportedError
from kernelgen.system.identifiers import identifier, identifiers


def plain_names(desc: KernelDesc) -> KernelDesc:
    """The description whose names are identifiers; the same object where they are.

    Raises UnsupportedError("defective-input") where two names would become one.
    """
    try:
        found = identifiers(_names(desc))
    except ValueError as clash:
        raise UnsupportedError("defective-input", str(clash)) from clash
    if all(name == plain for name, plain in found.items()) and identifier(desc.name) == desc.name:
        return desc
    walk = Rewriting(desc)
    for value in desc.graph.inputs:
        walk.becomes(value, replace(value.node, name=found[value.node.name]).out)
    for node in desc.operators:
        walk.keep(node, name=found[node.name])
    named = walk.done(tuple(map(walk.now, desc.graph.inputs)))
    results = tuple(found[name] for name in desc.graph.output_names)
    stitched = tuple(tuple(found[name] for name in group) for group in desc.buffer_stitch)
    parallel = _parallel(desc.parallel_fusion, found)
    graph = replace(named.graph, name=identifier(desc.name), results=results)
    return replace(named, graph=graph, buffer_stitch=stitched, parallel_fusion=parallel)


def _names(desc: KernelDesc) -> Iterator[str]:
    yield from desc.graph.input_names
    yield from desc.graph.output_names
    yield from (node.name for node in desc.operators)
    yield from desc.hinted


def _parallel(fusion: ParallelFusion | None, found: Mapping[str, str]) -> ParallelFusion | None:
    if fusion is None:
        return None
    return replace(fusion, sub_graph=tuple(tuple(found[name] for name in group) for group in fusion.sub_graph))
