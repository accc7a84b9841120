"""A kernel, its inputs and its errors from a random generator. The same generator state draws the same kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from kernelgen.composite.description import KernelDesc, ParallelFusion, Tensor
from kernelgen.composite.document import Document
from kernelgen.composite.link import linked
from kernelgen.samples.inputs import draw
from kernelgen.tensor.dims import Dim, Shape, evaluate, sym
from kernelgen.tensor.dtypes import COMPLEX64, COMPLEX128, FLOAT32
from tests.random_kernels import assigns, cuts, indexed, layouts, linear, moves, pointwise, products, reductions, sparse
from tests.random_kernels.values import DTYPES, MOST_ERROR, Sample, mixed_numbers, special_numbers
from tests.random_kernels.writer import Writer

RARE = ("complex", "complex", "csr", "csr")
"""Families that are drawn more often: they have many operators of their own."""

Step = Callable[[Writer], None]

EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33, 64, 65, 127, 257)

COMMON: tuple[Step, ...] = (
    pointwise.unary, pointwise.unary, pointwise.binary, pointwise.binary, pointwise.binary, pointwise.power, pointwise.smooth,
    pointwise.smooth, pointwise.smooth, pointwise.step, pointwise.divide, pointwise.compare, pointwise.compare,
    pointwise.logical, pointwise.select, pointwise.cast, pointwise.add_n, reductions.reduce, reductions.reduce,
    moves.reshape, moves.reshape, moves.transpose, moves.broadcast_to, moves.expand, assigns.assign,
)  # fmt: skip
"""Steps of every kernel."""

FAMILIES: Mapping[str, tuple[Step, ...]] = {
    "tile": (moves.tile,), "concat": (moves.concat,), "split": (moves.split,), "pad": (cuts.pad,),
    "slice": (cuts.strided_slice, cuts.slice_by_axes), "fractal": (layouts.fractal,), "layout": (layouts.spelled,),
    "extreme": (reductions.extreme_position,), "any": (reductions.elem_any,), "scan": (reductions.scan,),
    "gather": (indexed.gather, indexed.gather_nd), "one_hot": (indexed.one_hot,), "normal": (indexed.standard_normal,),
    "scatter": (indexed.tensor_scatter_add, indexed.unsorted_segment_sum), "csr": (sparse.csr,),
    "matmul": (products.matmul,), "fractal_matmul": (products.fractal_matmul,), "pool": (products.pool2d,),
    "conv": (products.conv2d,), "blocked_conv": (products.blocked_conv2d,), "complex": (pointwise.complex_number,),
    "layer": (linear.layer,), "smooth": (pointwise.smooth,), "divide": (pointwise.divide,),
    "bytes": (products.matmul_integer,), "narrow": (products.stored_matmul,),
}  # fmt: skip
"""Further steps. A kernel has some families, so that an operator that a target lacks does not hide all others."""


def kernel(random: Random, elements: int = 400, steps: int = 40, families: Sequence[str] | None = None) -> Sample:
    """A kernel of 1 to ``steps`` drawn steps whose tensors have at most ``elements`` elements.

    ``families`` fixes the families of :data:`FAMILIES` that take part, else up to three are drawn.
    """
    box, sizes = _box(random, elements)
    writer = Writer(random, sizes, elements, special=random.randrange(6) == 0)
    for _ in range(writer.number(1, 4)):
        writer.parameter(_part(writer, box), writer.one((FLOAT32, FLOAT32, *DTYPES)))
    chosen = list(FAMILIES) if families is None else list(families)
    if families is None:
        chosen = list(dict.fromkeys(random.sample([*chosen, *RARE], writer.one((0, 1, 1, 2, 2, 3)))))
    if "complex" in chosen:
        writer.parameter(_part(writer, box), writer.one((COMPLEX64, COMPLEX128)))
    special = [step for name in chosen for step in FAMILIES[name]]
    for _ in range(writer.one((writer.number(1, 6), writer.number(1, 20), writer.number(1, steps)))):
        writer.one(special if special and writer.chance(3) else COMMON)(writer)
    return _sample(writer)


def _box(random: Random, elements: int) -> tuple[Shape, dict[str, int]]:
    """A shape of rank 0 to 6, some of its dims symbolic, and the sizes of the symbols."""
    dims: list[Dim] = []
    sizes: dict[str, int] = {}
    room = elements
    symbolic = random.randrange(3) == 0
    for place in range(random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6))):
        extent = random.choice([e for e in EXTENTS if e <= room])
        if random.randrange(40) == 0:
            extent = 0
        room //= max(extent, 1)
        if symbolic and extent and random.randrange(2):
            sizes[f"s{place}"] = extent
            dims.append(sym(f"s{place}"))
        else:
            dims.append(extent)
    return tuple(dims), sizes


def _part(w: Writer, box: Shape) -> Shape:
    """A shape that broadcasts to the box: the box itself in half of the cases."""
    if w.chance() or not box:
        return box
    kept = [dim if w.number(0, 2) else 1 for dim in box]
    return tuple(kept[w.number(0, len(kept)) :])


def _sample(w: Writer) -> Sample:
    """Some of the values as outputs: results, now and then an input or the same value twice."""
    made = [t for op in w.ops for t in op.outs if t.name not in w.hidden]
    certain = [t for t in made if w.errors[t.name] <= 4 * MOST_ERROR] or made
    outputs = [w.one(certain[-8:] + certain) for _ in range(w.number(1, 4))] if made else []
    if not outputs or w.chance(8):
        outputs.append(w.one(w.inputs))
    desc = linked(Document("random", tuple(w.inputs), tuple(outputs), tuple(w.ops)))
    desc = _with_hints(w, desc, made)
    full = {name: evaluate(sym(name), w.sizes) for name in desc.symbols}
    smaller = [{name: w.number(1, size) for name, size in full.items()} for _ in range(2)] if full else []
    numbers = special_numbers if w.special else mixed_numbers
    inputs, *others = (tuple(draw(desc, w.number(0, 99), sizes, numbers)) for sizes in (full, *smaller))
    return Sample(desc, inputs, w.errors, tuple(others))


def _with_hints(w: Writer, desc: KernelDesc, made: Sequence[Tensor]) -> KernelDesc:
    """Now and then the hints of AKG's writer, which must not change a result."""
    if made and w.chance(12):
        return replace(desc, buffer_stitch=((w.one(made).name,),))
    if len(desc.outputs) > 1 and w.chance(12):
        groups = tuple((t.name,) for t in desc.outputs)
        return replace(desc, parallel_fusion=ParallelFusion("block_fusion", groups, (1,) * len(groups)))
    return desc
