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
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import written_out
from kernelgen.nest.walk import accesses, calls, loads, map_expressions, statements, stored_buffers, subexpressions
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
    value: n.Expr

    def at(self, load: n.Load) -> n.Expr:
        """The value of the element that is loaded."""
        return ix.substitute_in(self.value, dict(zip(self.variables, load.index, strict=True)))


def join_heads(nest: n.Nest) -> n.Nest:
    """The nest, before it is cut into grids, without temporaries that are operands of one product."""
    parts = list(nest.body.statements)
    gone: set[str] = set()
    for place, part in enumerate(nest.body.statements):
        head = _head(part)
        reader = _reader(head, place, parts) if head is not None else None
        if head is None or reader is None:
            continue
        parts[reader] = _with_value(parts[reader], head)
        parts[place] = n.Block()
        gone.add(head.name)
    kept = tuple(buffer for buffer in nest.buffers if buffer.name not in gone)
    return replace(nest, buffers=kept, body=n.Block(tuple(part for part in parts if part != n.Block())))


def _head(part: n.Statement) -> _Head | None:
    """The temporary that a nest makes and nothing else, element by element, at little cost."""
    loops, body = block_loops(n.Block((part,)))
    *before, last = body.statements or (part,)
    if not isinstance(last, n.Store) or last.buffer.space is not n.Space.WORKSPACE:
        return None
    names = tuple(place.name for place in last.index if isinstance(place, n.Var))
    whole = all(loop.lower == n.Num(0) and loop.step == 1 for loop in loops)
    if sorted(names) != sorted(loop.var for loop in loops) or len(names) != len(last.index) or not whole:
        return None
    bindings = {binding.name: binding.value for binding in before if isinstance(binding, n.Let)}
    value = written_out(last.value, bindings)
    return _Head(last.buffer.name, names, value) if len(bindings) == len(before) and _may_repeat(value) else None


def is_cheap(value: n.Expr) -> bool:
    """Whether it calls functions of a few cycles alone."""
    return all(call.function in CHEAP for call in calls(value))


def _may_repeat(value: n.Expr) -> bool:
    """Whether every reader may compute it: cheap, of a few loads at known places, and of nothing else."""
    found = list(loads(value))
    by_data = any(ix.is_by_data(*load.index) for load in found)
    is_closed = not any(isinstance(each, n.Ref | n.IndexValue) for each in subexpressions(value))
    return not by_data and 0 < len(found) <= MAX_LOADS and is_closed and is_cheap(value)


def _reader(head: _Head, place: int, parts: Sequence[n.Statement]) -> int | None:
    """The product that alone reads the temporary, if nothing that it is made of changes before its end."""
    users = [k for k, part in enumerate(parts) if k != place and any(True for _ in accesses(part, head.name))]
    if len(users) != 1 or users[0] < place or not _is_product(parts[users[0]]):
        return None
    (user,) = users
    sources = {load.buffer.name for load in loads(head.value)}
    written = frozenset[str]().union(*(stored_buffers(part) for part in parts[place + 1 : user + 1]))
    return None if written & (sources | {head.name}) else user


def _is_product(part: n.Statement) -> bool:
    """Whether results of a thread are sums of products."""
    loops = [each for each in statements(part) if isinstance(each, n.For)]
    sums = [each for each in statements(part) if isinstance(each, n.Accumulate)]
    serial = any(loop.kind is n.LoopKind.SERIAL for loop in loops)
    threads = any(loop.kind is n.LoopKind.THREAD for loop in loops)
    return serial and not threads and bool(sums) and all(
        isinstance(each.value, n.Call) and each.value.function == "mul" for each in sums
    )  # fmt: skip


def _with_value(part: n.Statement, head: _Head) -> n.Statement:
    return map_expressions(part, lambda e: head.at(e) if isinstance(e, n.Load) and e.buffer.name == head.name else e)
