"""Rows of a product that are computed, computed once for all of its columns.

S[b, i, j, k]: s[i, j] += f(q[i, k]) * x[j, k]      ->      C[b, i, k]: t[i, k] = f(q[i, k])
                                                            S[b, i, j, k]: s[i, j] += t[i, k] * x[j, k]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Iterator as Iterable
from dataclasses import dataclass, replace

from kernelgen.nest.index import variables_in
from kernelgen.nest.nodes import Buffer, Call, Expr, Let, Load, Ref, Space, Store, Var
from kernelgen.poly.model.scop import BodyStatement, Iterator, Statement


@dataclass(frozen=True)
class ComputedRows:
    """A product that reads a temporary, and the statement that fills it."""

    product: Statement
    maker: Statement
    buffer: Buffer


def computed_rows(product: Statement, column: str, rows: frozenset[str]) -> ComputedRows | None:
    """The product with what moves along ``rows`` and not along ``column`` in a temporary; None where nothing is computed."""
    lets = {part.name: part for part in product.body if isinstance(part, Let)}
    moving: dict[str, frozenset[str]] = {}
    for name, let in lets.items():
        moving[name] = variables_in(let.value).union(*(moving[one] for one in _names(let.value)))
    inside = {name for name in lets if column not in moving[name] and moving[name] & rows}
    used = {name for part in product.body for name in _names(part.value) if not _is_one_of(part, inside)}
    final = [lets[name] for name in lets if name in inside & used]
    if len(final) != 1 or not isinstance(final[0].value, Call):
        return None
    return _made(product, column, _behind(final[0], lets), final[0])


def _is_one_of(part: BodyStatement, names: Collection[str]) -> bool:
    return isinstance(part, Let) and part.name in names


def _behind(final: Let, lets: Mapping[str, Let]) -> Sequence[Let]:
    """The bindings that the value of one needs, directly or not, and itself, in their order."""
    needed, left = {final.name}, [final]
    while left:
        found = {name for name in _names(left.pop().value) if name not in needed}
        needed |= found
        left += (lets[name] for name in found)
    return [let for name, let in lets.items() if name in needed]


def _made(product: Statement, column: str, inside: Sequence[Let], final: Let) -> ComputedRows:
    iterators: tuple[Iterator, ...] = tuple(it for it in product.iterators if it.name != column)
    dims = [it for it in iterators if it.blocks is None]
    (part,) = product.accumulations
    buffer = Buffer(f"{part.buffer.name}_rows", final.value.dtype, tuple(it.extent for it in dims), Space.WORKSPACE)
    place = tuple(Var(it.name) for it in dims)
    before = (let for let in inside if let is not final)
    maker = Statement(f"{product.name}_rows", iterators, (*before, Store(buffer, place, final.value)))
    body = _needed((Let(final.name, Load(buffer, place)), *(part for part in product.body if part is not final)))
    return ComputedRows(replace(product, body=body), maker, buffer)


def _needed(body: Sequence[BodyStatement]) -> tuple[BodyStatement, ...]:
    """The statements of a body but for bindings that nothing behind them needs."""
    kept: list[BodyStatement] = []
    names: set[str] = set()
    for part in reversed(body):
        if not isinstance(part, Let) or part.name in names:
            kept.append(part)
            names.update(_names(part.value))
    return tuple(reversed(kept))


def _names(value: Expr) -> Iterable[str]:
    """The bindings that an expression refers to."""
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, Call):
        for arg in value.args:
            yield from _names(arg)
