"""Small descriptions for the normalisation passes: what each changes and must leave, with in-place operators and without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kernel_examples import Writer, constant, tensor

from kernelgen.canonical.argument_shapes import reshape_arguments
from kernelgen.canonical.axes import normal_axes
from kernelgen.canonical.broadcasts import write_out_broadcasts
from kernelgen.canonical.common_subexpressions import share_subexpressions
from kernelgen.canonical.constant_folding import fold_constants
from kernelgen.canonical.copy_propagation import propagate_copies
from kernelgen.canonical.dead_code import drop_dead
from kernelgen.canonical.implied_broadcasts import imply_broadcasts
from kernelgen.canonical.output_names import name_outputs
from kernelgen.canonical.reshapes import drop_reshapes
from kernelgen.canonical.synonyms import canonical_names
from kernelgen.canonical.three_address import three_address
from kernelgen.canonical.unsupported_types import legal_types
from kernelgen.composite.description import KernelDesc
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT8, INT32

Pass = Callable[[KernelDesc], KernelDesc]
N = sym("N")


@dataclass(frozen=True)
class Case:
    """A description and the pass that it is for."""

    run: Pass
    desc: KernelDesc


def dead() -> KernelDesc:
    """A chain that nobody reads, and an assignment whose result nobody reads."""
    w, x, p = Writer(), tensor("x", 8), tensor("p", 8)
    w.op("Exp", w.op("Neg", x, shape=(8,)), shape=(8,))
    w.op("Assign", p, w.op("Abs", x, shape=(8,)), shape=(8,))
    return w.desc("dead", (x, p), w.op("Sqrt", x, shape=(8,)))


def names() -> KernelDesc:
    w, x, p = Writer(), tensor("x", N), tensor("p", 1, 3)
    a = w.op("Div", w.op("ExpandDims", x, shape=(N, 1), axis=1), p, shape=(N, 3))
    b = w.op("Tile", w.op("ExpandDims", a, shape=(N, 1, 3), axis=1), shape=(N, 4, 3), multiples=(1, 4, 1))
    c = w.op("Tile", w.op("BroadcastTo", p, shape=(1, 1, 3)), shape=(1, 2, 6), multiples=(1, 2, 2))
    return w.desc("names", (x, p), w.op("Cast", b, shape=(N, 4, 3), dtype=INT32, dst_type="int32"), c)


def names_of_integers() -> KernelDesc:
    """Div of integers rounds towards zero, which RealDiv does not."""
    w, x, y = Writer(), tensor("x", 6, dtype=INT32), tensor("y", 6, dtype=INT32)
    return w.desc(
        "names_of_integers", (x, y), w.op("Div", x, w.op("TensorAdd", y, constant(9, INT32), shape=(6,)), shape=(6,))
    )


def names_in_place() -> KernelDesc:
    w, x, p = Writer(), tensor("x", 4, 2), tensor("p", 8)
    old = w.op("Flatten", p, shape=(8, 1))
    w.op("Assign", p, w.op("Flatten", x, shape=(8,)), shape=(8,))
    return w.desc("names_in_place", (x, p), w.op("Squeeze", old, shape=(8,)), w.op("Flatten", p, shape=(1, 8)))


def axes() -> KernelDesc:
    w, x, p = Writer(), tensor("x", 8, 4), tensor("p", N, 1)
    results = [
        w.op("ReduceSum", x, shape=(8,), axis=-1),
        w.op("ReduceMax", x, shape=(1, 1), axis=(), keep_dims=True),
        w.op("ReduceMin", x, shape=()),
        w.op("ReduceSum", p, shape=(N,), axis=1),
        w.op("ReduceSum", x, shape=(8, 1), axis=(-1, 1), keep_dims=1),
        w.op("Transpose", x, shape=(4, 8), perm=(-1, 0)),
        w.op("Transpose", p, shape=(1, N)),
        w.op("Concat", x, x, shape=(8, 8), axis=-1),
        w.op("CumSum", x, shape=(8, 4), axis=-2),
    ]
    return w.desc("axes", (x, p), *results)


def axes_in_place() -> KernelDesc:
    """The sum of the old content, and of the new one."""
    w, x, p = Writer(), tensor("x", 8, 4), tensor("p", 8)
    old = w.op("ReduceSum", p, shape=(1,), axis=-1, keep_dims=True)
    w.op("Assign", p, w.op("ReduceSum", x, shape=(8,), axis=-1), shape=(8,))
    return w.desc("axes_in_place", (x, p), old, w.op("ReduceSum", p, shape=(), axis=()))


def compounds() -> KernelDesc:
    w, x, y, z = Writer(), tensor("x", N, 4), tensor("y", 4), tensor("z", N, 1)
    full = (N, 4)
    total = w.op("AddN", x, y, z, shape=full)
    chosen = w.op("SelectGE", total, y, w.op("Square", x, shape=full), z, shape=full)
    gelu = w.op("FastGeLU", chosen, shape=full)
    return w.desc("compounds", (x, y, z), w.op("AddMinValue", gelu, shape=full), w.op("AddN", x, shape=full))


def compounds_of_halves() -> KernelDesc:
    w, x = Writer(), tensor("x", 9, dtype=FLOAT16)
    gelu = w.op("FastGeLU", w.op("AddN", x, x, x, shape=(9,)), shape=(9,))
    return w.desc("compounds_of_halves", (x,), w.op("AddMinValue", gelu, shape=(9,)))


def compounds_in_place() -> KernelDesc:
    w, x, p = Writer(), tensor("x", 8), tensor("p", 8)
    w.op("Assign", p, w.op("AddN", p, x, x, shape=(8,)), shape=(8,))
    return w.desc("compounds_in_place", (x, p), w.op("AddN", p, x, p, shape=(8,)))


def constants() -> KernelDesc:
    """The scale is an operand; the bias is not, for it gives the result its rows."""
    w, x, row = Writer(), tensor("x", N, 4), tensor("row", 4)
    full = (N, 4)
    scale = w.op("Sqrt", w.op("BroadcastTo", constant(2.0), shape=full), shape=full)
    zeros = w.op("ZerosLike", x, shape=full)
    scaled = w.op("Mul", x, scale, shape=full)
    top = w.op("ReduceMax", w.op("Exp", zeros, shape=full), shape=(), axis=())
    repeated = w.op("Add", row, w.op("BroadcastTo", top, shape=full), shape=full)
    return w.desc("constants", (x, row), w.op("Maximum", scaled, zeros, shape=full), repeated, scale)


def constants_left() -> KernelDesc:
    """Infinity is left to the kernel; a sum of equal numbers is no constant of the vocabulary."""
    w, x = Writer(), tensor("x", 3)
    endless = w.op("RealDiv", constant(1.0), constant(0.0), shape=(1,))
    ones = w.op("BroadcastTo", constant(1.0), shape=(3,))
    return w.desc(
        "constants_left", (x,), w.op("Add", x, endless, shape=(3,)), w.op("ReduceSum", ones, shape=(), axis=(0,))
    )


def constants_in_place() -> KernelDesc:
    w, x, p = Writer(), tensor("x", 8), tensor("p", 8)
    old = w.op("Mul", p, w.op("BroadcastTo", constant(3.0), shape=(8,)), shape=(8,))
    zeros = w.op("ZerosLike", p, shape=(8,))
    w.op("Assign", p, zeros, shape=(8,))
    return w.desc("constants_in_place", (x, p), old, w.op("Add", x, p, shape=(8,)))


def broadcasts() -> KernelDesc:
    w, x, row = Writer(), tensor("x", 8, 4), tensor("row", 4)
    a = w.op("Exp", row, shape=(8, 4))
    return w.desc("broadcasts", (x, row), w.op("Mul", x, a, shape=(8, 4)), w.op("Add", row, row, shape=(1, 4)))


def broadcasts_in_place() -> KernelDesc:
    w, x, p = Writer(), tensor("x", 8, 4), tensor("p", 4)
    old = w.op("Neg", p, shape=(8, 4))
    w.op("Assign", p, w.op("Neg", p, shape=(4,)), shape=(4,))
    return w.desc("broadcasts_in_place", (x, p), old, w.op("Neg", p, shape=(2, 4)))


def implied() -> KernelDesc:
    """Of two broadcasts in one operator the second must stay: together they make the shape."""
    w, x, row, column = Writer(), tensor("x", N, 4), tensor("row", 4), tensor("column", N, 1)
    full = (N, 4)
    a, b = w.op("BroadcastTo", row, shape=full), w.op("BroadcastTo", column, shape=full)
    lifted = w.op("Reshape", row, shape=(1, 4))
    first = w.op("Sub", x, a, shape=full)
    return w.desc("implied", (x, row, column), w.op("Mul", first, lifted, shape=full), w.op("Add", a, b, shape=full), b)


def implied_both() -> KernelDesc:
    w, row, other = Writer(), tensor("row", 4), tensor("other", 4)
    a, b = w.op("BroadcastTo", row, shape=(3, 4)), w.op("BroadcastTo", other, shape=(3, 4))
    wide = w.op("BroadcastTo", w.op("Mul", a, b, shape=(3, 4)), shape=(2, 3, 4))
    return w.desc("implied_both", (row, other), w.op("Abs", wide, shape=(2, 3, 4)))


def implied_in_place() -> KernelDesc:
    """The broadcast holds the old content of an input that changes before it is read."""
    w, x, p = Writer(), tensor("x", 8, 4), tensor("p", 4)
    old = w.op("BroadcastTo", p, shape=(8, 4))
    w.op("Assign", p, w.op("Neg", p, shape=(4,)), shape=(4,))
    return w.desc("implied_in_place", (x, p), w.op("Mul", x, old, shape=(8, 4)))


def reshapes() -> KernelDesc:
    w, x = Writer(), tensor("x", 4, N)
    flat = (N * 4,)
    b = w.op("Exp", w.op("Reshape", x, shape=flat), shape=flat)
    c = w.op("Mul", w.op("Reshape", b, shape=(4, N, 1)), constant(2.0), shape=(4, N, 1))
    total = w.op("ReduceSum", w.op("Reshape", c, shape=(4, N)), shape=(4,), axis=(1,))
    return w.desc("reshapes", (x,), total)


def reshapes_of_outputs() -> KernelDesc:
    """Both ends are flat, so what is between is: nothing is left to reshape."""
    w, x, y = Writer(), tensor("x", 24), tensor("y", 24)
    e = w.op("Add", w.op("Reshape", x, shape=(4, 6)), w.op("Reshape", y, shape=(4, 6)), shape=(4, 6))
    d = w.op("Cast", w.op("Neg", e, shape=(4, 6)), shape=(4, 6), dtype=FLOAT16)
    return w.desc("reshapes_of_outputs", (x, y), w.op("Reshape", d, shape=(24,)), w.op("Reshape", e, shape=(24,)))


def reshapes_that_stay() -> KernelDesc:
    """Row and column broadcasts need both shapes."""
    w, x, p, q = Writer(), tensor("x", 4, 6), tensor("p", 1, 6), tensor("q", 6, 1)
    turned = w.op("Reshape", w.op("Add", x, p, shape=(4, 6)), shape=(6, 4))
    return w.desc("reshapes_that_stay", (x, p, q), w.op("Mul", turned, q, shape=(6, 4)))


def reshapes_pinned_twice() -> KernelDesc:
    """Three readers in one shape, one in another: one Reshape is left of three."""
    w, x = Writer(), tensor("x", 2, 12)
    a = w.op("Reshape", w.op("Exp", x, shape=(2, 12)), shape=(4, 6))
    rows = w.op("ReduceSum", a, shape=(4,), axis=(1,))
    columns = w.op("ReduceMax", w.op("Neg", a, shape=(4, 6)), shape=(6,), axis=(0,))
    turned = w.op(
        "Transpose", w.op("Reshape", w.op("Reshape", a, shape=(24,)), shape=(4, 6)), shape=(6, 4), perm=(1, 0)
    )
    return w.desc("reshapes_pinned_twice", (x,), rows, columns, turned)


def reshapes_in_place() -> KernelDesc:
    w, x, p = Writer(), tensor("x", 4, 6), tensor("p", 24)
    old = w.op("Reshape", p, shape=(4, 6))
    fresh = w.op("Exp", w.op("Reshape", x, shape=(24,)), shape=(24,))
    first = w.op("Assign", p, fresh, shape=(24,))
    moved = w.op("Neg", w.op("Reshape", first, shape=(4, 6)), shape=(4, 6))
    late = w.op("Neg", w.op("Reshape", p, shape=(4, 6)), shape=(4, 6))
    return w.desc("reshapes_in_place", (x, p), w.op("Neg", old, shape=(4, 6)), moved, late)


def copies() -> KernelDesc:
    w, x = Writer(), tensor("x", 8, N)
    a = w.op("Reshape", w.op("TensorMove", x, shape=(8, N)), shape=(8, N))
    b = w.op("Cast", w.op("BroadcastTo", a, shape=(8, N)), shape=(8, N), dtype=FLOAT32)
    flat = w.op("Reshape", w.op("Reshape", b, shape=(2, 4, N)), shape=(N * 8,))
    e = w.op("Exp", b, shape=(8, N))
    return w.desc("copies", (x,), w.op("TensorMove", e, shape=(8, N)), w.op("Neg", flat, shape=(N * 8,)), a)


def copies_in_place() -> KernelDesc:
    """The copy of p is its old content; the result of the assignment is the new one."""
    w, x, p = Writer(), tensor("x", 8), tensor("p", 8)
    old = w.op("TensorMove", p, shape=(8,))
    first = w.op("Assign", p, w.op("TensorMove", x, shape=(8,)), shape=(8,))
    return w.desc("copies_in_place", (x, p), w.op("Sub", first, old, shape=(8,)), w.op("TensorMove", p, shape=(8,)))


def copies_of_another_operand() -> KernelDesc:
    """The result of an InplaceAssign equals its third operand."""
    w, x, p, q = Writer(), tensor("x", 8), tensor("p", 8), tensor("q", 3)
    result = w.op(
        "InplaceAssign", p, w.op("Neg", x, shape=(8,)), w.op("Exp", q, shape=(3,)), shape=(3,), fake_output=False
    )
    return w.desc("copies_of_another_operand", (x, p, q), w.op("Abs", result, shape=(3,)))


def boundary() -> KernelDesc:
    """x and z are read in one shape, y in two; the reshape to the output does not line up."""
    w, x, y, z = Writer(), tensor("x", 4, N), tensor("y", 4, N), tensor("z", N, 4)
    full = (2, N * 2)
    a, b, c = (w.op("Reshape", t, shape=full) for t in (x, y, z))
    total = w.op("Add", w.op("Mul", a, b, shape=full), w.op("ReduceSum", y, shape=(), axis=()), shape=full)
    last = w.op("Reshape", w.op("Sub", total, c, shape=full), shape=(N, 4))
    return w.desc("boundary", (x, y, z), last, w.op("Reshape", x, shape=full))


def boundary_in_place() -> KernelDesc:
    w, x, p = Writer(), tensor("x", 4, 6), tensor("p", 24)
    old = w.op("Exp", w.op("Reshape", p, shape=(6, 4)), shape=(6, 4))
    w.op("Assign", p, w.op("Reshape", x, shape=(24,)), shape=(24,))
    return w.desc("boundary_in_place", (x, p), w.op("Reshape", old, shape=(24,)), w.op("Reshape", p, shape=(4, 6)))


def outputs() -> KernelDesc:
    """Of two outputs that copy one value, one has it."""
    w, x = Writer(), tensor("x", N)
    a = w.op("Exp", x, shape=(N,))
    copies_ = [w.op("TensorMove", a, shape=(N,)) for _ in range(2)]
    return w.desc("outputs", (x,), *copies_, w.op("Neg", a, shape=(N,)), w.op("TensorMove", x, shape=(N,)))


def outputs_in_place() -> KernelDesc:
    """The updated input has its own name; the result of the assignment is no value of its own."""
    w, x, p = Writer(), tensor("x", 8), tensor("p", 8)
    a = w.op("Exp", x, shape=(8,))
    first = w.op("Assign", p, a, shape=(8,))
    results = [w.op("TensorMove", t, shape=(8,)) for t in (p, first, a)]
    return w.desc("outputs_in_place", (x, p), *results)


def subexpressions() -> KernelDesc:
    w, x, y = Writer(), tensor("x", N), tensor("y", N)
    a, b = w.op("Add", x, y, shape=(N,)), w.op("Add", y, x, shape=(N,))
    c, d = w.op("Exp", a, shape=(N,)), w.op("Exp", b, shape=(N,))
    e, f = w.op("Sub", c, constant(1.0), shape=(N,)), w.op("Sub", d, constant(-1.0), shape=(N,))
    return w.desc("subexpressions", (x, y), d, c, w.op("Mul", e, f, shape=(N,)))


def subexpressions_in_place() -> KernelDesc:
    """Equal before and after an update are not equal."""
    w, x, p = Writer(), tensor("x", 8), tensor("p", 8)
    before = [w.op("Exp", p, shape=(8,)) for _ in range(2)]
    w.op("Assign", p, w.op("Add", *before, shape=(8,)), shape=(8,))
    after = [w.op("Exp", p, shape=(8,)) for _ in range(2)]
    return w.desc("subexpressions_in_place", (x, p), w.op("Sub", *after, shape=(8,)), after[1], before[0])


def types_of_gpu() -> KernelDesc:
    w, x, y = Writer(), tensor("x", N, dtype=FLOAT16), tensor("y", N, dtype=BFLOAT16)
    e = w.op("Exp", w.op("Mul", x, constant(2.0, FLOAT16), shape=(N,)), shape=(N,))
    c = w.op("Less", w.op("Mul", y, constant(2.0, BFLOAT16), shape=(N,)), y, shape=(N,), dtype=BOOL)
    return w.desc("types_of_gpu", (x, y), e, w.op("Select", c, y, constant(1.0, BFLOAT16), shape=(N,), dtype=BFLOAT16))


def types_of_ascend() -> KernelDesc:
    w, x, m = Writer(), tensor("x", 6, dtype=INT8), tensor("m", 6, dtype=BOOL)
    total = w.op("Mul", w.op("Add", x, constant(100, INT8), shape=(6,)), x, shape=(6,))
    same = w.op("Equal", m, w.op("Greater", total, x, shape=(6,), dtype=BOOL), shape=(6,))
    top = w.op("ReduceMax", total, shape=(1,), axis=(0,), keep_dims=True)
    return w.desc("types_of_ascend", (x, m), w.op("Select", same, m, same, shape=(6,)), top)


def types_in_place() -> KernelDesc:
    w, x, p = Writer(), tensor("x", 6, dtype=BFLOAT16), tensor("p", 6, dtype=BFLOAT16)
    first = w.op("Assign", p, w.op("Add", p, x, shape=(6,)), shape=(6,))
    return w.desc("types_in_place", (x, p), w.op("Add", p, first, shape=(6,)))


def stitched(desc: KernelDesc) -> KernelDesc:
    """The description in which a hint names every value: nothing may lose its name."""
    return replace(desc, buffer_stitch=(tuple(value.name for node in desc.operators for value in node.outs),))


GPU, ASCEND = legal_types("gpu"), legal_types("ascend")

CASES: dict[str, Case] = {
    case.desc.name: case
    for case in (
        *(Case(drop_dead, d) for d in (dead(),)),
        *(Case(canonical_names, d) for d in (names(), names_of_integers(), names_in_place())),
        *(Case(normal_axes, d) for d in (axes(), axes_in_place())),
        *(Case(three_address, d) for d in (compounds(), compounds_of_halves(), compounds_in_place())),
        *(Case(fold_constants, d) for d in (constants(), constants_left(), constants_in_place())),
        *(Case(write_out_broadcasts, d) for d in (broadcasts(), broadcasts_in_place())),
        *(Case(imply_broadcasts, d) for d in (implied(), implied_both(), implied_in_place())),
        *(
            Case(drop_reshapes, d)
            for d in (
                reshapes(), reshapes_of_outputs(), reshapes_that_stay(), reshapes_pinned_twice(), reshapes_in_place(),
            )
        ),
        *(Case(propagate_copies, d) for d in (copies(), copies_in_place(), copies_of_another_operand())),
        *(Case(reshape_arguments, d) for d in (boundary(), boundary_in_place())),
        *(Case(name_outputs, d) for d in (outputs(), outputs_in_place())),
        *(Case(share_subexpressions, d) for d in (subexpressions(), subexpressions_in_place())),
        Case(GPU, types_of_gpu()), Case(ASCEND, types_of_ascend()), Case(GPU, types_in_place()),
    )
}  # fmt: skip
