"""Tensors and the kernel get names that may be printed: what a file calls them is data, and never reaches a compiler.

Before and after::

    'a\\n}': f32[8] = Exp('x y')       a___5a1c...: f32[8] = Exp(x_y_93b2...)

Names that are identifiers stay as they are. Symbols of shapes are identifiers always (:func:`kernelgen.tensor.dims.sym`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kernelgen.composite.bind_sizes import map_tensors
from kernelgen.composite.description import KernelDesc, ParallelFusion, TensorDesc
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
    named = map_tensors(desc, lambda tensor: replace(tensor, name=found[tensor.name]))
    stitched = tuple(tuple(found[name] for name in group) for group in desc.buffer_stitch)
    parallel = _parallel(desc.parallel_fusion, found)
    return replace(named, name=identifier(desc.name), buffer_stitch=stitched, parallel_fusion=parallel)


def _names(desc: KernelDesc) -> Iterator[str]:
    yield from (tensor.name for tensor in _tensors(desc))
    for group in (*desc.buffer_stitch, *(desc.parallel_fusion.sub_graph if desc.parallel_fusion else ())):
        yield from group


def _tensors(desc: KernelDesc) -> Iterator[TensorDesc]:
    yield from (*desc.inputs, *desc.outputs)
    for op in desc.ops:
        yield from (*op.inputs, *op.outputs)


def _parallel(fusion: ParallelFusion | None, found: Mapping[str, str]) -> ParallelFusion | None:
    if fusion is None:
        return None
    return replace(fusion, sub_graph=tuple(tuple(found[name] for name in group) for group in fusion.sub_graph))
