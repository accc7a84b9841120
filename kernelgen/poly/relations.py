"""A scop as isl sets and relations, and its dependences.

Sizes that are not constant become isl parameters, one per distinct extent (equal polynomials are one parameter), each
at least 1. Every access relation is intersected with the domain of its statement here, in one place: an unrestricted
access lets instances that do not exist overwrite real data, and true dependences vanish silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import islpy as isl

from kernelgen.dims import Dim, Sym, evaluate
from kernelgen.nest.nodes import Accumulate, Index, IndexBinary, IndexOp, Num, Store, Var
from kernelgen.nest.walk import loads
from kernelgen.poly.scop import Scop, Statement


@dataclass(frozen=True)
class Relations:
    """The isl view of a scop; all maps go from statement instances.

    ``domain`` = { S[i] : 0 <= i < extent };
    ``reads``, ``stores``, ``accumulations`` = { S[i] -> buffer[index] : i in domain };
    ``flow`` = { A[i] -> B[j] : A before B in program order, same element, at least one of them writes };
    ``reduction`` = { A[i] -> A[j] : i lexicographically before j, both accumulate into one element }.
    """

    context: isl.Context
    parameters: Mapping[Dim, str]
    domain: isl.UnionSet
    reads: isl.UnionMap
    stores: isl.UnionMap
    accumulations: isl.UnionMap
    flow: isl.UnionMap
    reduction: isl.UnionMap


def relations(scop: Scop, sizes: Mapping[str, int] | None = None, context: isl.Context | None = None) -> Relations:
    """The relations of a scop; with ``sizes``, at those values of its symbols (for a parameter-free schedule)."""
    context = context or isl.Context()
    symbolic = sorted({it.extent for s in scop.statements for it in s.iterators if isinstance(it.extent, Sym)}, key=str)
    symbolic += [d for b in scop.buffers for d in b.shape if isinstance(d, Sym) and d not in symbolic]
    names: dict[Dim, str] = {dim: f"n{k}" for k, dim in enumerate(dict.fromkeys(symbolic))}
    writer = _Writer(context, names, {names[d]: value for d, value in _at(names, sizes).items()} if sizes else {})
    domain = writer.set_of(scop)
    reads = writer.map_of(
        (s, load.buffer.name, load.index) for s in scop.statements for p in s.body for load in loads(p.value)
    )
    stores = writer.map_of((s, p.buffer.name, p.index) for s in scop.statements for p in s.body if isinstance(p, Store))
    accumulations = writer.map_of(
        (s, p.buffer.name, p.index) for s in scop.statements for p in s.body if isinstance(p, Accumulate)
    )
    reads, stores, accumulations = (m.intersect_domain(domain) for m in (reads, stores, accumulations))
    before = writer.program_order(scop)
    writes = stores.union(accumulations)
    touches = writes.union(reads)
    flow = writes.apply_range(touches.reverse()).union(reads.apply_range(writes.reverse())).intersect(before)
    same = accumulations.apply_range(accumulations.reverse())
    reduction = same.intersect(writer.later_instances(scop))
    return Relations(context, names, domain, reads, stores, accumulations, flow, reduction)


def _at(names: Mapping[Dim, str], sizes: Mapping[str, int] | None) -> dict[Dim, int]:
    return {dim: evaluate(dim, sizes or {}) for dim in names}


@dataclass(frozen=True)
class _Writer:
    """Prints isl notation. ``fixed`` gives values to parameters that shall be constants."""

    context: isl.Context
    names: Mapping[Dim, str]
    fixed: Mapping[str, int]

    @property
    def header(self) -> str:
        free = [name for name in self.names.values() if name not in self.fixed]
        return f"[{', '.join(free)}] -> "

    def extent(self, dim: Dim) -> str:
        if not isinstance(dim, Sym):
            return str(dim)
        name = self.names[dim]
        return str(self.fixed.get(name, name))

    def instance(self, statement: Statement, suffix: str = "") -> str:
        return f"{statement.name}[{', '.join(it.name + suffix for it in statement.iterators)}]"

    def bounds(self, statement: Statement) -> str:
        return " and ".join(f"0 <= {it.name} < {self.extent(it.extent)}" for it in statement.iterators) or "true"

    def set_of(self, scop: Scop) -> isl.UnionSet:
        parts = "; ".join(f"{self.instance(s)} : {self.bounds(s)}" for s in scop.statements)
        domain = isl.UnionSet.read_from_str(self.context, f"{self.header}{{ {parts} }}")
        return domain.intersect_params(self.parameter_bounds())

    def parameter_bounds(self) -> isl.Set:
        free = [name for name in self.names.values() if name not in self.fixed]
        return isl.Set.read_from_str(
            self.context, f"{self.header}{{ : {' and '.join(f'{n} >= 1' for n in free) or 'true'} }}"
        )

    def map_of(self, accesses: Iterable[tuple[Statement, str, tuple[Index, ...]]]) -> isl.UnionMap:
        parts = "; ".join(
            f"{self.instance(s)} -> {buffer}[{', '.join(map(index_text, index))}]"
            for s, buffer, index in dict.fromkeys(accesses)
        )
        return isl.UnionMap.read_from_str(self.context, f"{self.header}{{ {parts} }}")

    def program_order(self, scop: Scop) -> isl.UnionMap:
        """{ A[i] -> B[j] : A stands before B }."""
        order = "; ".join(f"{self.instance(s)} -> [{k}]" for k, s in enumerate(scop.statements))
        position = isl.UnionMap.read_from_str(self.context, f"{self.header}{{ {order} }}")
        return position.lex_lt_union_map(position)

    def later_instances(self, scop: Scop) -> isl.UnionMap:
        """{ A[i] -> A[j] : i lexicographically before j }."""
        parts = []
        for s in scop.statements:
            left, right = ([f"{it.name}{suffix}" for it in s.iterators] for suffix in ("", "p"))
            less = " or ".join(
                " and ".join(
                    [*(f"{a} = {b}" for a, b in zip(left[:k], right[:k], strict=True)), f"{left[k]} < {right[k]}"]
                )
                for k in range(len(left))
            )
            if less and s.accumulations:
                parts.append(f"{self.instance(s)} -> {self.instance(s, 'p')} : {less}")
        return isl.UnionMap.read_from_str(self.context, f"{self.header}{{ {'; '.join(parts)} }}")


_SIGNS = {IndexOp.ADD: "+", IndexOp.SUB: "-", IndexOp.MUL: "*"}


def index_text(index: Index) -> str:
    """An index in isl's notation."""
    match index:
        case Num(value):
            return str(value)
        case Var(name):
            return name
        case IndexBinary(IndexOp.DIV, left, right):
            return f"floor(({index_text(left)})/{index_text(right)})"
        case IndexBinary(IndexOp.MOD, left, right):
            return f"(({index_text(left)}) mod {index_text(right)})"
        case IndexBinary(IndexOp.MIN | IndexOp.MAX as op, left, right):
            return f"{op.value}({index_text(left)}, {index_text(right)})"
        case IndexBinary(op, left, right):
            return f"({index_text(left)} {_SIGNS[op]} {index_text(right)})"
