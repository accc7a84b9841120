"""Small hand-written nests, and a way to run them on the CPU target."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelgen.nest.index import from_dim
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Call,
    Expr,
    For,
    Index,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.scalars import SCALARS, Result
from kernelgen.nest.verify import verify
from kernelgen.targets.cpu import TARGET
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import BOOL, FLOAT32, DType, dtype

I, J = Var("i"), Var("j")  # noqa: E741  # the loops of these nests
ZERO = Num(0)


def block(*statements: Statement) -> Block:
    return Block(statements)


def buffer(name: str, *shape: Dim, dtype: DType = FLOAT32, space: Space = Space.INPUT) -> Buffer:
    return Buffer(name, dtype, shape, space)


def output(name: str, *shape: Dim, dtype: DType = FLOAT32) -> Buffer:
    return Buffer(name, dtype, shape, Space.OUTPUT)


def local(name: str, *shape: Dim, dtype: DType = FLOAT32) -> Buffer:
    return Buffer(name, dtype, shape, Space.LOCAL)


def loop(var: Var, extent: Dim, *body: Statement, kind: LoopKind = LoopKind.VECTOR, lower: Index = ZERO) -> For:
    return For(var.name, lower, from_dim(extent), Block(body), kind)


def call(function: str, *args: Expr) -> Call:
    table = SCALARS[function].result
    return Call(function, args, BOOL if table is Result.BOOL else args[-1].dtype)


def map_nest(functions: Callable[..., Expr], extent: Dim, *types: DType, symbols: tuple[str, ...] = ()) -> Nest:
    """``out[i] = functions(in0[i], in1[i], ...)`` in one vector loop."""
    inputs = [buffer(f"x{k}", extent, dtype=type_) for k, type_ in enumerate(types)]
    value = functions(*(Load(x, (I,)) for x in inputs))
    result = output("y", extent, dtype=value.dtype)
    body = block(loop(I, extent, Store(result, (I,), value)))
    return Nest("map", symbols, (*inputs, result), body)


def reduce_nest(function: str, rows: Dim, columns: Dim, type_: DType = FLOAT32, symbols: tuple[str, ...] = ()) -> Nest:
    """``out[i] = function over j of x[i, j]``, rows in parallel, columns in a vector loop."""
    x, y = buffer("x", rows, columns, dtype=type_), output("y", rows, dtype=type_)
    start = Literal({"add": 0, "mul": 1, "logical_and": True, "logical_or": False}.get(function, 0), type_)
    if function in ("maximum", "minimum"):
        start = neutral_element(function, type_)
    row = loop(J, columns, Accumulate(y, (I,), function, Load(x, (I, J))))
    body = block(loop(I, rows, Store(y, (I,), start), row, kind=LoopKind.PARALLEL))
    return Nest(f"reduce_{function}", symbols, (x, y), body)


def softmax_nest(rows: Dim, columns: Dim, symbols: tuple[str, ...] = ()) -> Nest:
    """Row softmax with the row of exponentials in a local buffer."""
    x, y = buffer("x", rows, columns), output("y", rows, columns)
    top, total, row = local("top"), local("total"), local("row", columns)
    e = call("exp", call("sub", Load(x, (I, J)), Load(top, ())))
    body = (
        Alloc(top),
        Alloc(total),
        Alloc(row),
        Store(top, (), Literal(float("-inf"), FLOAT32)),
        Store(total, (), Literal(0.0, FLOAT32)),
        loop(J, columns, Accumulate(top, (), "maximum", Load(x, (I, J)))),
        loop(J, columns, Store(row, (J,), e), Accumulate(total, (), "add", Load(row, (J,)))),
        loop(J, columns, Store(y, (I, J), call("div", Load(row, (J,)), Load(total, ())))),
    )
    return Nest("softmax", symbols, (x, y), block(loop(I, rows, *body, kind=LoopKind.PARALLEL)))


def run(nest: Nest, *arrays: np.ndarray, symbols: tuple[int, ...] = ()) -> None:
    """Verifies, compiles and runs a nest on arrays for all its buffers."""
    verify(nest)
    TARGET.load(TARGET.emit(nest), nest)(arrays, symbols)


def run_map(functions: Callable[..., Expr], *arrays: np.ndarray) -> np.ndarray:
    """The output of :func:`map_nest` on one-dimensional arrays."""
    nest = map_nest(functions, len(arrays[0]), *(dtype(array.dtype) for array in arrays))
    result = np.zeros(len(arrays[0]), nest.buffers[-1].dtype.numpy)
    run(nest, *arrays, result)
    return result
