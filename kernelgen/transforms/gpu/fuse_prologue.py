"""Computes the operand of a product where it is loaded, instead of storing it first: a scale, a cast, a sum of two arrays.

    block i: block k: t[i, k] = f16(a[i, k] * s[k])         block i: block j:
    block i: block j:                                 ->      for k: c[i, j] += f16(a[i, k] * s[k]) * b[k, j]
      for k: c[i, j] += t[i, k] * b[k, j]

An element is then computed once for every tile that needs it: worth it where it costs a few cycles, next to a launch and to
writing and reading the whole array.

Legality. The temporary is stored once, at its loops' variables, each of which names one dim: so iteration ``(i, k)`` alone
makes element ``[i, k]``, and what is loaded there is that value of the variables. Nothing that it is made of is written
between the two nests, or by the second one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Block,
    Call,
    Expr,
    For,
    IndexValue,
    Let,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.walk import accesses, loads, map_expression, map_expressions, statements, stored_buffers
from kernelgen.transforms.gpu.delinearise import block_loops

CHEAP = frozenset(
    {"add", "sub", "mul", "neg", "abs", "maximum", "minimum", "cast", "select", "less", "less_equal", "greater",
     "greater_equal", "equal", "not_equal"}
)  # fmt: skip
"""Functions of a few cycles."""

MAX_LOADS = 3
"""Of an element, in place of the one of the stored temporary."""


@dataclass(frozen=True)
class _Head:
    """``name[variables] = value``."""

    name: str
    variables: tuple[str, ...]
    value: Expr

    def at(self, load: Load) -> Expr:
        """The value of the element that is loaded."""
        return ix.substitute_in(self.value, dict(zip(self.variables, load.index, strict=True)))


def join_heads(nest: Nest) -> Nest:
    """The nest, before it is cut into grids, without temporaries that are operands of one product."""
    parts = list(nest.body.statements)
    gone: set[str] = set()
    for place, part in enumerate(nest.body.statements):
        head = _head(part)
        reader = _reader(head, place, parts) if head is not None else None
        if head is None or reader is None:
            continue
        parts[reader] = _with_value(parts[reader], head)
        parts[place] = Block()
        gone.add(head.name)
    kept = tuple(buffer for buffer in nest.buffers if buffer.name not in gone)
    return replace(nest, buffers=kept, body=Block(tuple(part for part in parts if part != Block())))


def _head(part: Statement) -> _Head | None:
    """The temporary that a nest makes and nothing else, element by element, at little cost."""
    loops, body = block_loops(Block((part,)))
    *before, last = body.statements or (part,)
    if not isinstance(last, Store) or last.buffer.space is not Space.WORKSPACE:
        return None
    names = tuple(place.name for place in last.index if isinstance(place, Var))
    whole = all(loop.lower == Num(0) and loop.step == 1 for loop in loops)
    if sorted(names) != sorted(loop.var for loop in loops) or len(names) != len(last.index) or not whole:
        return None
    values: dict[str, Expr] = {}
    for binding in before:
        if not isinstance(binding, Let):
            return None
        values[binding.name] = _written_out(binding.value, values)
    value = _written_out(last.value, values)
    return _Head(last.buffer.name, names, value) if _is_cheap(value) else None


def _written_out(expr: Expr, values: dict[str, Expr]) -> Expr:
    return map_expression(expr, lambda e: values.get(e.name, e) if isinstance(e, Ref) else e)


def _is_cheap(value: Expr) -> bool:
    found = list(loads(value))
    by_data = any(True for load in found for place in load.index for _ in ix.values(place))
    return not by_data and 0 < len(found) <= MAX_LOADS and _has_cheap_functions(value)


def _has_cheap_functions(value: Expr) -> bool:
    if isinstance(value, Call):
        return value.function in CHEAP and all(map(_has_cheap_functions, value.args))
    return not isinstance(value, Ref | IndexValue)


def _reader(head: _Head, place: int, parts: Sequence[Statement]) -> int | None:
    """The product that alone reads the temporary, if nothing that it is made of changes before its end."""
    users = [k for k, part in enumerate(parts) if k != place and any(True for _ in accesses(part, head.name))]
    if len(users) != 1 or users[0] < place or not _is_product(parts[users[0]]):
        return None
    (user,) = users
    sources = {load.buffer.name for load in loads(head.value)}
    written = frozenset[str]().union(*(stored_buffers(part) for part in parts[place + 1 : user + 1]))
    return None if written & (sources | {head.name}) else user


def _is_product(part: Statement) -> bool:
    """Whether results of a thread are sums of products."""
    loops = [each for each in statements(part) if isinstance(each, For)]
    sums = [each for each in statements(part) if isinstance(each, Accumulate)]
    serial = any(loop.kind is LoopKind.SERIAL for loop in loops)
    threads = any(loop.kind is LoopKind.THREAD for loop in loops)
    return serial and not threads and bool(sums) and all(
        isinstance(each.value, Call) and each.value.function == "mul" for each in sums
    )  # fmt: skip


def _with_value(part: Statement, head: _Head) -> Statement:
    return map_expressions(part, lambda e: head.at(e) if isinstance(e, Load) and e.buffer.name == head.name else e)
