"""A scop as isl sets and relations, and its dependences.

Size symbols become isl parameters, each at least 1, and extents are affine expressions over them; an extent that is a
product of symbols is a parameter of its own. Every access relation is restricted to the domain of its statement here, in
one place: an unrestricted access lets instances that do not exist overwrite real data, and true dependences vanish
silently. The domain is read once: with each access its bounds took three quarters of the time of reading accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import islpy as isl

from kernelgen.nest.index import substitute, values, variables
from kernelgen.nest.nodes import Accumulate, Expr, Index, IndexBinary, IndexOp, Num, Store, ValueIndex, Var
from kernelgen.nest.walk import loads_of
from kernelgen.poly.model.scop import Scop, Statement
from kernelgen.poly.model.statement_pairs import Pairs, pairs_of, sets_by_tuple
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.dims import Dim, Sym, evaluate, sym


@dataclass(frozen=True)
class Relations:
    """The isl view of a scop; all maps go from statement instances.

    ``domain`` = { S[i] : 0 <= i < extent };
    ``reads``, ``writes`` = { S[i] -> buffer[index] : i in domain };
    ``flow`` = { A[i] -> B[j] : A before B in program order, or A is B, ordered, and i lexicographically before j;
    same element, at least one of them writes };
    ``reduction`` = { A[i] -> A[j] : i lexicographically before j, both accumulate into one element }.
    """

    context: isl.Context
    parameters: Mapping[Dim, str]
    domain: isl.UnionSet
    reads: isl.UnionMap
    writes: isl.UnionMap
    flow: isl.UnionMap
    reduction: isl.UnionMap

    @cached_property
    def domains(self) -> Mapping[str, isl.Set]:
        """``domain`` by statement."""
        return sets_by_tuple(self.domain)

    @cached_property
    def flow_pairs(self) -> Pairs:
        """``flow`` by pairs of statements."""
        return pairs_of(self.flow)

    @cached_property
    def reduction_pairs(self) -> Pairs:
        """``reduction`` by pairs of statements."""
        return pairs_of(self.reduction)


def relations(scop: Scop, sizes: Mapping[str, int] | None = None, context: isl.Context | None = None) -> Relations:
    """The relations of a scop; with ``sizes``, at those values of its symbols (for a parameter-free schedule)."""
    context = context or isl.Context()
    names = _parameters(scop)
    extents = {dim for shape in scop.argument_shapes for dim in shape if isinstance(dim, Sym)}
    differences = {dim for dim in extents if _subtracts(dim) and names.keys() >= set(map(sym, dim.symbols))}
    fixed = {names[d]: value for d, value in _at(names, sizes).items()} if sizes else {}
    writer = _Writer(context, names, fixed, frozenset() if sizes else frozenset(differences))
    domain = writer.set_of(scop)
    reads = writer.map_of(
        domain, ((s, load.buffer.name, load.index) for s in scop.statements for p in s.body for load in loads_of(p))
    )
    stores = ((s, p) for s in scop.statements for p in s.body if isinstance(p, Store | Accumulate))
    writes = writer.map_of(domain, ((s, p.buffer.name, p.index) for s, p in stores))
    flow, reduction = _flow(writer, scop, reads, writes), _reduction(writer, scop, domain)
    return Relations(context, names, domain, reads, writes, flow, reduction)


def _flow(writer: _Writer, scop: Scop, reads: isl.UnionMap, writes: isl.UnionMap) -> isl.UnionMap:
    order = [*writer.program_order(scop), *writer.later_instances(s for s in scop.statements if s.ordered)]
    if not order:
        return writer.union(())
    one_element = writes.apply_range(writes.union(reads).reverse()).union(reads.apply_range(writes.reverse()))
    return one_element.intersect(writer.union(order))


def _reduction(writer: _Writer, scop: Scop, domain: isl.UnionSet) -> isl.UnionMap:
    reducing = [s for s in scop.statements if s.accumulations]
    if not reducing:
        return writer.union(())
    accumulations = writer.map_of(domain, ((s, p.buffer.name, p.index) for s in reducing for p in s.accumulations))
    same_element = accumulations.apply_range(accumulations.reverse())
    return same_element.intersect(writer.union(writer.later_instances(reducing)))


def _conflicts(scop: Scop) -> Iterable[tuple[Statement, Statement]]:
    """The pairs of statements, the first one before the other, that touch one buffer which one of them writes."""
    readers: dict[str, list[Statement]] = {}
    writers: dict[str, list[Statement]] = {}
    pairs: dict[tuple[str, str], tuple[Statement, Statement]] = {}
    for statement in scop.statements:
        read, written = ({a.buffer.name: None for a in found} for found in (statement.reads, statement.writes))
        for others, names in ((writers, read), (writers, written), (readers, written)):
            pairs |= {(s.name, statement.name): (s, statement) for name in names for s in others.get(name, ())}
        for known, names in ((readers, read), (writers, written)):
            for name in names:
                known.setdefault(name, []).append(statement)
    return pairs.values()


def _parameters(scop: Scop) -> dict[Dim, str]:
    """The parameter of every symbol and of every extent that is not affine in the symbols."""
    symbolic = sorted({it.extent for s in scop.statements for it in s.iterators if isinstance(it.extent, Sym)}, key=str)
    symbolic += [d for b in scop.buffers for d in b.shape if isinstance(d, Sym)]
    used = {name for s in scop.statements for x in (*s.reads, *s.writes) for i in x.index for name in variables(i)}
    symbols = {name for dim in symbolic if _is_affine(dim) for name in dim.symbols} | used.intersection(scop.symbols)
    names: dict[Dim, str] = {sym(name): f"n_{name}" for name in sorted(symbols)}
    products = dict.fromkeys(dim for dim in symbolic if not _is_affine(dim))
    return names | {dim: f"n{k}" for k, dim in enumerate(products)}


def _is_affine(dim: Sym) -> bool:
    return all(len(symbols) <= 1 for symbols, _ in dim.terms)


def extent_text(dim: Dim, parameters: Mapping[Dim, str]) -> str:
    """An extent in isl's notation, over the parameters."""
    if not isinstance(dim, Sym):
        return str(dim)
    if dim in parameters:
        return parameters[dim]
    terms = ((parameters[sym(symbols[0])] if symbols else "1", factor) for symbols, factor in dim.terms)
    return "(" + " + ".join(f"{factor}*{name}" for name, factor in terms) + ")"


def _subtracts(dim: Sym) -> bool:
    """Whether it is affine and some value of its symbols would make it negative."""
    return _is_affine(dim) and any(factor < 0 for _, factor in dim.terms)


def _at(names: Mapping[Dim, str], sizes: Mapping[str, int] | None) -> dict[Dim, int]:
    return {dim: evaluate(dim, sizes or {}) for dim in names}


@dataclass(frozen=True)
class _Writer:
    """Prints isl notation. ``fixed`` gives values to parameters that shall be constants; ``differences`` are extents of
    arrays that are there, so that they are not negative: { S[i] : N - M >= 0 }."""

    context: isl.Context
    names: Mapping[Dim, str]
    fixed: Mapping[str, int]
    differences: frozenset[Sym] = frozenset()

    @property
    def header(self) -> str:
        free = [name for name in self.names.values() if name not in self.fixed]
        return f"[{', '.join(free)}] -> "

    def extent(self, dim: Dim) -> str:
        return extent_text(dim, {each: str(self.fixed.get(name, name)) for each, name in self.names.items()})

    def instance(self, statement: Statement, suffix: str = "") -> str:
        return f"{statement.name}[{', '.join(it.name + suffix for it in statement.iterators)}]"

    def bounds(self, statement: Statement) -> str:
        sizes = [f"{name} >= 1" for name in self.names.values() if name not in self.fixed]
        sizes += sorted(f"{self.extent(dim)} >= 0" for dim in self.differences)
        boxes = [f"0 <= {it.name} < {self.extent(it.extent)}" for it in statement.iterators]
        return " and ".join([*sizes, *boxes, *self.block_numbers(statement)]) or "true"

    def block_numbers(self, statement: Statement) -> Iterable[str]:
        """The values of iterators that count blocks."""
        for it in statement.iterators:
            blocks = it.blocks
            if blocks is None:
                continue
            if blocks.overlapping is not None:
                step, start = blocks.overlapping
                yield f"{step}*{it.name} + {start} <= {blocks.of} < {step}*{it.name} + {start + blocks.length}"
            elif blocks.of:
                turn = f" mod {it.extent}" if isinstance(blocks.extent, Sym) else ""
                yield f"{it.name} = (floor({blocks.of}/{blocks.length})){turn}"
            elif not self.fixed:  # at representative sizes there are all blocks
                yield f"{blocks.length}*{it.name} < {self.extent(blocks.extent)}"

    def union(self, parts: Iterable[str]) -> isl.UnionMap:
        return isl.UnionMap.read_from_str(self.context, f"{self.header}{{ {'; '.join(parts)} }}")

    def set_of(self, scop: Scop) -> isl.UnionSet:
        parts = "; ".join(f"{self.instance(s)} : {self.bounds(s)}" for s in scop.statements)
        return isl.UnionSet.read_from_str(self.context, f"{self.header}{{ {parts} }}")

    def map_of(
        self, domain: isl.UnionSet, accesses: Iterable[tuple[Statement, str, tuple[Index, ...]]]
    ) -> isl.UnionMap:
        symbols = [dim for dim in self.names if isinstance(dim, Sym) and _is_affine(dim)]
        sizes: dict[str, Index] = {dim.symbols[0]: Var(self.extent(dim)) for dim in symbols}
        places = ((s, _place(name, tuple(substitute(i, sizes) for i in x))) for s, name, x in accesses)
        return self.union(dict.fromkeys(self.access(s, place) for s, place in places)).intersect_domain(domain)

    def access(self, statement: Statement, place: tuple[str, ...]) -> str:
        return f"{self.instance(statement)} -> {' : '.join(place)}"

    def program_order(self, scop: Scop) -> Iterator[str]:
        """{ A[i] -> B[j] : A stands before B, both touch one buffer, at least one of them writes it }."""
        return (f"{self.instance(a)} -> {self.instance(b, 'p')}" for a, b in _conflicts(scop))

    def later_instances(self, statements: Iterable[Statement]) -> Iterator[str]:
        """{ A[i] -> A[j] : i lexicographically before j }."""
        for s in statements:
            left, right = ([f"{it.name}{suffix}" for it in s.iterators] for suffix in ("", "p"))
            less = " or ".join(
                " and ".join(
                    [*(f"{a} = {b}" for a, b in zip(left[:k], right[:k], strict=True)), f"{left[k]} < {right[k]}"]
                )
                for k in range(len(left))
            )
            if less:
                yield f"{self.instance(s)} -> {self.instance(s, 'p')} : {less}"


def _place(buffer: str, index: tuple[Index, ...]) -> tuple[str, ...]:
    """``x[i, j]``; ``x[d0, j]`` and ``(exists v0 : d0 = min(max(v0, 0), 9))`` where data decides the place.

    What the data may hold is not known, so the element may be any in the range of the index: more dependences than
    there are, never fewer, and bounds that are proved hold for all data.
    """
    unknown: dict[Expr, str] = {value: f"v{k}" for k, value in enumerate(v for i in index for v in values(i))}
    if not unknown:
        return (f"{buffer}[{', '.join(map(index_text, index))}]",)
    texts = [index_text(i, unknown) for i in index]
    places = [f"d{k}" for k in range(len(index))]
    equal = " and ".join(f"{place} = {text}" for place, text in zip(places, texts, strict=True))
    return f"{buffer}[{', '.join(places)}]", f"(exists {', '.join(unknown.values())} : {equal})"


_SIGNS = {IndexOp.ADD: "+", IndexOp.SUB: "-", IndexOp.MUL: "*"}


def index_text(index: Index, unknown: Mapping[Expr, str] | None = None) -> str:
    """An index in isl's notation; ``unknown`` names the values that decide it."""
    match index:
        case ValueIndex(value):
            return (unknown or {})[value]
        case Num(value):
            return str(value)
        case Var(name):
            return name
        case IndexBinary(IndexOp.DIV, left, right):
            return f"floor(({index_text(left, unknown)})/{index_text(right, unknown)})"
        case IndexBinary(IndexOp.MOD, left, right):
            return f"(({index_text(left, unknown)}) mod {index_text(right, unknown)})"
        case IndexBinary(IndexOp.MIN | IndexOp.MAX as op, left, right):
            return f"{op.value}({index_text(left, unknown)}, {index_text(right, unknown)})"
        case IndexBinary(op, left, right):
            return f"({index_text(left, unknown)} {_SIGNS[op]} {index_text(right, unknown)})"
