"""Rows of a product that are computed, computed once for all of its columns.

S[b, i, j, k]: s[i, j] += f(q[i, k]) * x[j, k]      ->      C[b, i, k]: t[i, k] = f(q[i, k])
                                                            S[b, i, j, k]: s[i, j] += t[i, k] * x[j, k]
"""

from __future__ import annotations

from collections.abc import Iterator as Iterable
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgen.nest.index import variables_in
from kernelgen.nest.nodes import Buffer, Call, Expr, Let, Load, Ref, Space, Store, Var
from kernelgen.poly.model.scop import Iterator, Statement


@dataclass(frozen=True)
class ComputedRows:
    """A product that reads a temporary, and the statement that fills it."""

    product: Statement
    maker: Statement
    buffer: Buffer


def computed_rows(product: Statement, column: str, rows: frozenset[str]) -> ComputedRows | None:
    """The product with what moves along ``rows`` and not along ``column`` in a temporary; None where nothing is computed."""
    lets = [part for part in product.body if isinstance(part, Let)]
    moving: dict[str, frozenset[str]] = {}
    for let in lets:
        moving[let.name] = variables_in(let.value).union(*(moving[name] for name in _names(let.value)))
    inside = [let for let in lets if column not in moving[let.name] and moving[let.name] & rows]
    names = {let.name for let in inside}
    used = {
        name for part in product.body for name in _names(part.value) if not isinstance(part, Let) or part not in inside
    }
    final = [let for let in inside if let.name in used]
    needed = {name for let in inside for name in _names(let.value)}
    if len(final) != 1 or not isinstance(final[0].value, Call) or not needed <= names:
        return None
    return _made(product, column, inside, final[0])


def _made(product: Statement, column: str, inside: Sequence[Let], final: Let) -> ComputedRows:
    iterators: tuple[Iterator, ...] = tuple(it for it in product.iterators if it.name != column)
    dims = [it for it in iterators if it.blocks is None]
    (part,) = product.accumulations
    buffer = Buffer(f"{part.buffer.name}_rows", final.value.dtype, tuple(it.extent for it in dims), Space.WORKSPACE)
    place = tuple(Var(it.name) for it in dims)
    before = (let for let in inside if let is not final)
    maker = Statement(f"{product.name}_rows", iterators, (*before, Store(buffer, place, final.value)))
    kept = (part for part in product.body if part not in inside)
    body = (Let(final.name, Load(buffer, place)), *kept)
    return ComputedRows(replace(product, body=body), maker, buffer)


def _names(value: Expr) -> Iterable[str]:
    """The bindings that an expression refers to."""
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, Call):
        for arg in value.args:
            yield from _names(arg)
