"""Columns of a product that lie across memory, turned once for all blocks of its rows.

S[b, i, j, k]: s[i, j] += q[i, k] * f(x[j, k])      ->      T[k, j]: t[k, j] = f(x[j, k])
                                                            S[b, i, j, k]: s[i, j] += q[i, k] * t[k, j]
"""

from __future__ import annotations

from collections.abc import Iterator as Iterable
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgen.nest.index import stride, variables_in
from kernelgen.nest.nodes import Buffer, Call, Expr, Let, Load, Ref, Space, Store, Var
from kernelgen.nest.walk import loads
from kernelgen.poly.model.scop import Iterator, Statement


@dataclass(frozen=True)
class Turned:
    """A product that reads a temporary, and the statement that fills it."""

    product: Statement
    maker: Statement
    buffer: Buffer


def turned(product: Statement, column: str, rows: frozenset[str]) -> Turned | None:
    """The product with what moves along ``column`` and not along ``rows`` in a temporary; None where it lies well."""
    lets = [part for part in product.body if isinstance(part, Let)]
    moving: dict[str, frozenset[str]] = {}
    for let in lets:
        moving[let.name] = variables_in(let.value).union(*(moving[name] for name in _names(let.value)))
    inside = [let for let in lets if column in moving[let.name] and not moving[let.name] & rows]
    names = {let.name for let in inside}
    used = {
        name for part in product.body for name in _names(part.value) if not isinstance(part, Let) or part not in inside
    }
    final = [let for let in inside if let.name in used]
    if len(final) != 1 or not any(_lies_across(load, column) for let in inside for load in loads(let.value)):
        return None
    needed = {name for let in inside for name in _names(let.value)}
    return _made(product, column, rows, inside, final[0]) if needed <= names else None


def _made(product: Statement, column: str, rows: frozenset[str], inside: Sequence[Let], final: Let) -> Turned:
    others = [it for it in product.iterators if it.name not in rows and it.name != column and it.blocks is None]
    (last,) = [it for it in product.iterators if it.name == column]
    iterators: tuple[Iterator, ...] = (*others, last)
    (part,) = product.accumulations
    shape = tuple(it.extent for it in iterators)
    buffer = Buffer(f"{part.buffer.name}_turned", final.value.dtype, shape, Space.WORKSPACE)
    place = tuple(Var(it.name) for it in iterators)
    before = (let for let in inside if let is not final)
    maker = Statement(f"{product.name}_turned", iterators, (*before, Store(buffer, place, final.value)))
    kept = (part for part in product.body if part not in inside)
    body = (Let(final.name, Load(buffer, place)), *kept)
    return Turned(replace(product, body=body), maker, buffer)


def _names(value: Expr) -> Iterable[str]:
    """The bindings that an expression refers to."""
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, Call):
        for arg in value.args:
            yield from _names(arg)


def _lies_across(load: Load, name: str) -> bool:
    """Whether neighbours along an iterator are far apart in memory."""
    steps = [stride(i, name) for i in load.index]
    return any(step != 0 for step in steps[:-1])
