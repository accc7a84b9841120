"""The reference target: the nest as plain Python over numpy scalars. Slow, obvious, and independent of every compiler.

Loops are Python loops in nest order; vector and parallel loops run serially. Scalar functions come from
:data:`kernelgen.nest.scalars.SCALARS`; float16 and bfloat16 compute in float32 and round, as the table says.
"""

from __future__ import annotations

import builtins
import keyword
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelgen.errors import CodegenError
from kernelgen.nest import nodes as n
from kernelgen.nest.index import from_dim
from kernelgen.nest.scalars import SCALARS, Result
from kernelgen.system.identifiers import beside, comment
from kernelgen.targets.base import Entry, Target
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, DType, dtype

_TAKEN = frozenset({*keyword.kwlist, *dir(builtins), "np", "call", "dtypes", "inf", "nan", "kernel"})
_INDEX_OPERATORS = {n.IndexOp.ADD: "+", n.IndexOp.SUB: "-", n.IndexOp.MUL: "*", n.IndexOp.DIV: "//", n.IndexOp.MOD: "%"}


def emit(nest: n.Nest) -> str:
    """A Python function ``kernel(buffers..., symbols...)``."""
    arguments = [_name(name) for name in (*(buffer.name for buffer in nest.buffers), *nest.symbols)]
    lines = [f"def kernel({', '.join(arguments)}):", *(_indent(line) for line in _block(nest.body))]
    return "\n".join(lines) + "\n"


def load(source: str, nest: n.Nest) -> Entry:
    """Executes the source that :func:`emit` printed and wraps the function."""
    scope: dict[str, Any] = {"np": np, "call": _call, "dtypes": _DTYPES, "inf": math.inf, "nan": math.nan}
    exec(compile(source, f"<kernel {comment(nest.name)}>", "exec"), scope)  # our own text, never the user's

    def entry(arrays: tuple[Any, ...], symbols: tuple[int, ...]) -> None:
        sizes = dict(zip(nest.symbols, symbols, strict=True))
        views = [
            array.reshape([_extent(dim, sizes) for dim in buffer.shape])
            for array, buffer in zip(arrays, nest.buffers, strict=True)
        ]
        with np.errstate(all="ignore"):
            scope["kernel"](*views, *symbols)

    return entry


def _extent(dim: Any, sizes: dict[str, int]) -> int:
    return int(eval_index(from_dim(dim), sizes))


def eval_index(index: n.Index, values: dict[str, int]) -> int:
    """The value of an index expression. Raises ValueError for a place that data decides."""
    match index:
        case n.Num(value):
            return value
        case n.Var(name):
            return values[name]
        case n.ValueIndex():
            raise ValueError("data decides this index")
        case n.IndexBinary(op, left, right):
            a, b = eval_index(left, values), eval_index(right, values)
            return {
                n.IndexOp.ADD: lambda: a + b,
                n.IndexOp.SUB: lambda: a - b,
                n.IndexOp.MUL: lambda: a * b,
                n.IndexOp.DIV: lambda: a // b,
                n.IndexOp.MOD: lambda: a % b,
                n.IndexOp.MIN: lambda: min(a, b),
                n.IndexOp.MAX: lambda: max(a, b),
            }[op]()


def _indent(line: str) -> str:
    return f"    {line}"


def _block(block: n.Block) -> Iterator[str]:
    if not block.statements:
        yield "pass"
    for statement in block.statements:
        yield from _statement(statement)


def _statement(statement: n.Statement) -> Iterator[str]:
    match statement:
        case n.Block():
            yield from _block(statement)
        case n.For(var, lower, upper, body, _, step):
            yield f"for {_name(var)} in range({_index(lower)}, {_index(upper)}, {step}):"
            yield from map(_indent, _block(body))
        case n.If(conditions, body):
            tests = " and ".join(f"{_index(c.left)} {c.op} {_index(c.right)}" for c in conditions)
            yield f"if {tests}:"
            yield from map(_indent, _block(body))
        case n.Let(name, value):
            yield f"{_name(name)} = {_expr(value)}"
        case n.Alloc(buffer):
            shape = ", ".join(_index(from_dim(dim)) for dim in buffer.shape)
            yield f"{_name(buffer.name)} = np.empty([{shape}], dtypes[{buffer.dtype.name!r}])"
        case n.Store(buffer, index, value):
            yield f"{_name(buffer.name)}[{_subscript(index)}] = {_expr(value)}"
        case n.Accumulate(buffer, index, function, value):
            place = f"{_name(buffer.name)}[{_subscript(index)}]"
            yield f"{place} = call({function!r}, {buffer.dtype.name!r}, {place}, {_expr(value)})"
        case n.Prefetch():
            yield "pass"
        case _:
            raise CodegenError(f"{type(statement).__name__} belongs to grids of a GPU")


def _name(name: str) -> str:
    return beside(name, _TAKEN)


def _subscript(index: tuple[n.Index, ...]) -> str:
    return ", ".join(map(_index, index)) or "()"


def _index(index: n.Index) -> str:
    match index:
        case n.Num(value):
            return str(value)
        case n.Var(name):
            return _name(name)
        case n.ValueIndex(value):
            return f"int({_expr(value)})"
        case n.IndexBinary(n.IndexOp.MIN | n.IndexOp.MAX as op, left, right):
            return f"{op.value}({_index(left)}, {_index(right)})"
        case n.IndexBinary(op, left, right):
            return f"({_index(left)} {_INDEX_OPERATORS[op]} {_index(right)})"


def _expr(expr: n.Expr) -> str:
    match expr:
        case n.Literal(value, kind):
            return f"dtypes[{kind.name!r}].type({value!r})"
        case n.Ref(name):
            return _name(name)
        case n.Load(buffer, index):
            return f"{_name(buffer.name)}[{_subscript(index)}]"
        case n.IndexValue(index, kind):
            return f"dtypes[{kind.name!r}].type({_index(index)})"
        case n.Call(function, args, kind):
            return f"call({function!r}, {kind.name!r}, {', '.join(map(_expr, args))})"


_DTYPES = {d.name: d.numpy for d in map(dtype, ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
           "uint64", "float16", "bfloat16", "float32", "float64"))}  # fmt: skip


def _call(function: str, kind: str, *args: Any) -> Any:
    """One scalar function on numpy scalars, in the precision that the table of scalars promises."""
    result: DType = dtype(kind)
    if any(arg.dtype in (FLOAT16.numpy, BFLOAT16.numpy) for arg in args):
        args = tuple(np.float32(a) if a.dtype in (FLOAT16.numpy, BFLOAT16.numpy) else a for a in args)
    entry = SCALARS[function]
    if function == "cast" and result.name == "bool":
        return np.bool_(args[0] != 0)
    value = entry.numpy(*args)
    return np.asarray(value).astype(bool if entry.result is Result.BOOL else result.numpy)[()]


TARGET = Target("python", emit, load)
