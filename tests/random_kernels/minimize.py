"""Makes a failing kernel small: fewer outputs, operators replaced by the values they had, sizes in place of symbols."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from kernelgen.composite.bind_sizes import bind
from kernelgen.composite.description import Tensor
from kernelgen.composite.document import IN_PLACE, Document, Operation, map_tensors
from kernelgen.composite.link import linked, unlinked
from kernelgen.composite.specialize import specialize
from tests.random_kernels.check import references
from tests.random_kernels.values import Array, Sample

Fails = Callable[[Sample], bool]


def minimize(sample: Sample, fails: Fails, seconds: float = 60.0) -> Sample:
    """The smallest kernel found that still fails; stops after some seconds."""
    end = time.monotonic() + seconds
    alone = (replace(sample, inputs=inputs, others=()) for inputs in (sample.inputs, *sample.others))
    sample = next((candidate for candidate in alone if fails(candidate)), sample)
    changed = True
    while changed:
        changed = False
        for candidate in _smaller(sample):
            if time.monotonic() > end:
                return sample
            if _cost(candidate) < _cost(sample) and fails(candidate):
                sample, changed = candidate, True
                break
    return sample


def _cost(sample: Sample) -> tuple[int, int, int, int]:
    desc = sample.desc
    hints = bool(desc.buffer_stitch) + bool(desc.parallel_fusion)
    return len(desc.operators), len(desc.outputs), len(desc.symbols) + hints, len(desc.inputs)


def _smaller(sample: Sample) -> Iterator[Sample]:
    """Candidates, the boldest first."""
    desc = unlinked(sample.desc)
    for tensor in desc.outputs:
        if len(desc.outputs) > 1:
            yield _cleaned(sample, replace(desc, outputs=(tensor,), buffer_stitch=(), parallel_fusion=None))
    yield _cleaned(sample, replace(desc, buffer_stitch=(), parallel_fusion=None))
    if sample.desc.symbols:
        sizes = bind(sample.desc, [array.shape for array in sample.inputs])
        yield _cleaned(sample, unlinked(specialize(sample.desc, sizes)))
    half = len(desc.ops) // 2
    if half > 2:
        yield from _cut(sample, range(half))
    for position in reversed(range(len(desc.ops))):
        yield from _cut(sample, [position])
        yield from _bypassed(sample, position)


def _cut(sample: Sample, positions: range | list[int]) -> Iterator[Sample]:
    """The kernel in which the results of some operators are inputs; assignments are left out."""
    desc = unlinked(sample.desc)
    gone = [desc.ops[position] for position in positions]
    names = [t.name for op in gone for t in op.outs]
    made = [t for op in gone for t in op.outs]
    try:
        values = references(sample.desc, sample.inputs, names)
    except Exception:  # the reference itself may be what fails
        return
    ops = tuple(op for k, op in enumerate(desc.ops) if k not in set(positions))
    inputs = (*desc.inputs, *made)
    yield _cleaned(replace(sample, inputs=(*sample.inputs, *values)), replace(desc, inputs=inputs, ops=ops))


def _bypassed(sample: Sample, position: int) -> Iterator[Sample]:
    """The kernel in which an operand stands for the result of an operator."""
    document = unlinked(sample.desc)
    op = document.ops[position]
    for operand in op.args if len(op.outs) == 1 else ():
        if operand.value is None and (operand.shape, operand.dtype) == (op.out.shape, op.out.dtype):
            result = op.out.name

            def change(tensor: Tensor, result: str = result, operand: Tensor = operand) -> Tensor:
                return operand if tensor.name == result else tensor

            ops = tuple(o for k, o in enumerate(document.ops) if k != position)
            yield _cleaned(sample, map_tensors(replace(document, ops=ops), change))


def _cleaned(sample: Sample, desc: Document) -> Sample:
    """Without operators and inputs that nothing needs."""
    needed = {t.name for t in desc.outputs}
    ops: list[Operation] = []
    for op in reversed(desc.ops):
        if op.op in IN_PLACE or any(t.name in needed for t in op.outs):
            ops.append(op)
            needed |= {t.name for t in op.args}
    kept: list[tuple[Tensor, Array]] = [
        (t, array) for t, array in zip(desc.inputs, sample.inputs, strict=True) if t.name in needed
    ]
    small = replace(desc, inputs=tuple(t for t, _ in kept), ops=tuple(reversed(ops)))
    if small.buffer_stitch or small.parallel_fusion:
        names = {t.name for op in small.ops for t in op.outs}
        groups = (*small.buffer_stitch, *(small.parallel_fusion.sub_graph if small.parallel_fusion else ()))
        if any(name not in names for group in groups for name in group):
            small = replace(small, buffer_stitch=(), parallel_fusion=None)
    return Sample(
        linked(small), tuple(array for _, array in kept), sample.errors
    )  # others would lack the values of what was cut
