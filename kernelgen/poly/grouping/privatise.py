"""Reductions with partial results of their own for blocks of an axis, so that blocks may run in parallel.

    S[i]: t[] += f(i)            ->    S[b, i]: p[b] += f(i)        b = floor(i / length)
                                       T[b]:    t[] += p[b]

    S[i, j]: r[i] += f(i, j)     ->    S[b, i, j]: r[i] += f(i, j);  p[b, j] += f(i, j)
             c[j] += f(i, j)           T[b, j]:    c[j] += p[b, j]

Legality: ``{ S[i] -> S[floor(i / length), i] }`` is a bijection of the domain, so every term is there once, and the
function of a reduction is associative and commutative: the value is the same but for the order of summing, which a
reduction leaves open. Instances of two blocks touch no common element of ``p``, nor of what is addressed by ``i``.
Where the extent is not known blocks are of a fixed length and dealt out in turn, ``b = floor(i / length) mod count``.
Sizes alone decide, never the machine that runs the kernel: so results are the same on every number of cores.

Other statements over the same axis that share data with a reduction count blocks too: then they can run in its loop. Not
where a launch is soon done and rows are many blocks by themselves: there everything else keeps all its parallel iterations.
Left alone are reductions whose results give enough independent iterations, scans, products (blocks of their results stay
in registers) and those that have too few terms for each partial result.
Source: privatised reductions, as in Pouchet's and Reddy's work on reductions in the polyhedral model.
"""

from __future__ import annotations

from collections.abc import Iterator as Iterable
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from kernelgen.nest.cost import arithmetic_cost
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import Accumulate, Buffer, Index, Load, Space, Store, Var
from kernelgen.plan import Partials
from kernelgen.poly.model.equal_axes import AxisClasses, Place, axis_classes
from kernelgen.poly.model.product_recognition import is_product
from kernelgen.poly.model.scop import Blocks, BodyStatement, Iterator, Scop, Statement
from kernelgen.tensor.dims import Dim, Sym, product

SUM_COST = 0.03  # nanoseconds of a load or an accumulation in a vector loop


@dataclass(frozen=True)
class Target:
    """What a reduction accumulates into: the positions of the iterators that address it, and its size."""

    kept: frozenset[int]
    size: Dim


@dataclass(frozen=True)
class Reduction:
    """The extents of a box, what its instances accumulate into, and the nanoseconds that one takes, roughly."""

    extents: tuple[Dim, ...]
    targets: tuple[Target, ...]
    cost: float


@dataclass(frozen=True)
class Cut:
    """An axis in blocks: its position in the box, the length of a block and how many there are."""

    position: int
    length: int
    count: int


def privatise(scop: Scop, partials: Partials) -> Scop:
    """The scop with partial results where they pay; the same object when nowhere. Expects grouped statements."""
    wanted = {s.name: cut for s in scop.statements if (cut := _cut_of(s, partials)) is not None}
    if not wanted:
        return scop
    cuts = _with_companions(scop, wanted) if partials.shared else wanted
    made: list[Buffer] = []
    statements: list[Statement] = []
    for statement in scop.statements:
        if statement.name not in cuts:
            statements.append(statement)
            continue
        parts, buffers = _blocked(statement, cuts[statement.name])
        statements += parts
        made += buffers
    return replace(scop, buffers=(*scop.buffers, *made), statements=tuple(statements))


def best_cut(reduction: Reduction, partials: Partials) -> Cut | None:
    """The axis to cut: most blocks, then the fewest partial results, then the outermost. None when none pays."""
    extents, work = reduction.extents, product(reduction.extents)
    is_short = not isinstance(work, Sym) and work * reduction.cost < partials.nanoseconds
    kept = frozenset.intersection(*(target.kept for target in reduction.targets))
    independent = _independent(extents, kept, partials)
    terms = prod(partials.unknown if isinstance(d, Sym) else d for d in extents) // independent
    if is_short or independent >= partials.enough or terms <= partials.alone:
        return None
    if partials.parallel is not None:
        partials = replace(partials, count=min(partials.count, partials.parallel // independent))
    found: list[tuple[int, int, int, Cut]] = []
    for position in sorted(frozenset(range(len(extents))) - kept):
        cut = _cut(extents, position, partials)
        private = [target for target in reduction.targets if position not in target.kept]
        if cut is not None and min(_terms_of_a_partial(extents, cut, each) for each in private) >= partials.terms:
            results = sum(each.size for each in private if not isinstance(each.size, Sym))
            found.append((-cut.count, results, position, cut))
    return min(found)[-1] if found else None


def _independent(extents: Sequence[Dim], kept: frozenset[int], partials: Partials) -> int:
    """The independent iterations around a vector loop over the last axis; a symbol of an outer axis counts as many."""
    total = 1
    for position in kept:
        extent = extents[position]
        if position == len(extents) - 1:
            total *= 1 if isinstance(extent, Sym) else max(1, extent // partials.strip)
        else:
            total *= partials.enough if isinstance(extent, Sym) else extent
    return total


def _cut(extents: Sequence[Dim], position: int, partials: Partials) -> Cut | None:
    """Blocks of one axis; an extent that is a symbol gives blocks of the least length, dealt out in turn."""
    extent, row = extents[position], product(d for k, d in enumerate(extents) if k != position)
    if isinstance(extent, Sym):
        known = partials.unknown if isinstance(row, Sym) else row
        return Cut(position, _rounded(max(-(-partials.least // known), partials.terms)), partials.count)
    most = extent if isinstance(row, Sym) else extent * row // partials.least
    length = _rounded(-(-extent // max(min(partials.count, most), 1)))
    count = -(-extent // length)
    return Cut(position, length, count) if count >= partials.fewest else None


def _rounded(length: int) -> int:
    """Up to whole groups of rows that are added up at once; of long blocks, to whole vectors."""
    unit = 64 if length >= 512 else 8
    return -(-length // unit) * unit


def _terms_of_a_partial(extents: Sequence[Dim], cut: Cut, target: Target) -> int:
    """How many terms each partial result has, at least; data decides the place of those that no iterator addresses."""
    reduced = [d for k, d in enumerate(extents) if k not in target.kept and k != cut.position]
    block = cut.length * prod(d for d in reduced if not isinstance(d, Sym))
    results = product(extents[k] for k in sorted(target.kept))
    if results == target.size:
        return block
    return 0 if isinstance(results, Sym) or isinstance(target.size, Sym) else block * results // max(target.size, 1)


def reduces_well(statements: Sequence[Statement], partials: Partials) -> bool:
    """Whether statements of one box that reduce different axes gain from partial results if they become one."""
    can_share = partials.shared and not any(map(is_product, statements))
    return can_share and _best_cut_of(statements, partials) is not None


def _cut_of(statement: Statement, partials: Partials) -> Cut | None:
    if statement.ordered or not statement.accumulations or is_product(statement):
        return None
    found = _best_cut_of((statement,), partials)
    if found is None:
        return None
    name = Var(statement.iterators[found.position].name)
    sums = [each.index for each in statement.accumulations]
    return found if all(name in write.index for write in statement.writes if write.index not in sums) else None


def _best_cut_of(statements: Sequence[Statement], partials: Partials) -> Cut | None:
    extents = tuple(it.extent for it in statements[0].iterators)
    if not extents or 0 in extents:
        return None
    targets = tuple(Target(_kept(s, a.index), product(a.buffer.shape)) for s in statements for a in s.accumulations)
    cost = sum(SUM_COST + arithmetic_cost(part.value) for s in statements for part in s.body)
    return best_cut(Reduction(extents, targets, cost), partials)


def _kept(statement: Statement, index: tuple[Index, ...]) -> frozenset[int]:
    """The positions of the iterators that are an index by themselves."""
    return frozenset(k for k, it in enumerate(statement.iterators) if Var(it.name) in index)


# ---------------------------------------------------------------- who else counts blocks


def _with_companions(scop: Scop, wanted: dict[str, Cut]) -> dict[str, Cut]:
    """The cuts, one for each axis class, also of the statements that can run in the loop of a reduction."""
    classes = axis_classes(scop)
    statements = {s.name: s for s in scop.statements}
    by_class: dict[Place, Cut] = {}
    for name, cut in wanted.items():
        axis = classes.find(("statement", name, cut.position))
        known = by_class.get(axis)
        by_class[axis] = cut if known is None or cut.length > known.length else known
    found: dict[str, Cut] = {}
    for name, cut in wanted.items():
        axis = classes.find(("statement", name, cut.position))
        for each in _companions(scop, statements[name], axis, classes):
            position = classes.axes_of(each).index(axis)
            if each.name == name or each.name not in wanted:
                found.setdefault(each.name, replace(by_class[axis], position=position))
    return found


def _companions(scop: Scop, reduction: Statement, axis: Place, classes: AxisClasses) -> Iterable[Statement]:
    """Statements over the axis that share data, directly or not, with the reduction and do not need its results."""
    axes = classes.axes_of(reduction)
    if axes.count(axis) != 1:
        return
    yield reduction
    name = Var(reduction.iterators[axes.index(axis)].name)
    results = {a.buffer.name for a in reduction.accumulations if name not in a.index}
    touched = set(reduction.touched) - results
    later = False
    waiting: list[Statement] = []
    for statement in scop.statements:
        later = later or statement is reduction
        if later and statement is not reduction and any(read.buffer.name in results for read in statement.reads):
            results |= {write.buffer.name for write in statement.writes}
        elif statement is not reduction and _may_follow(statement, axis, classes):
            waiting.append(statement)
    while near := [statement for statement in waiting if statement.touched & touched]:
        yield from near
        touched.update(name for statement in near for name in statement.touched)
        waiting = [statement for statement in waiting if statement not in near]


def _may_follow(statement: Statement, axis: Place, classes: AxisClasses) -> bool:
    """Whether the axis occurs once in its box and addresses all that it writes."""
    axes = classes.axes_of(statement)
    if statement.ordered or is_product(statement) or axes.count(axis) != 1:
        return False
    name = Var(statement.iterators[axes.index(axis)].name)
    return all(name in write.index for write in statement.writes)


# ---------------------------------------------------------------- rewriting


def _blocked(statement: Statement, cut: Cut) -> tuple[list[Statement], list[Buffer]]:
    """The statement over blocks between starts and sums of partial results, for targets that the axis does not address."""
    axis = statement.iterators[cut.position]
    block = Iterator(f"{axis.name}_block", cut.count, Blocks(cut.length, axis.extent, axis.name))
    body: list[BodyStatement] = []
    made: list[Buffer] = []
    starts: list[Statement] = []
    sums: list[Statement] = []
    for part in statement.body:
        if not isinstance(part, Accumulate) or Var(axis.name) in part.index:
            body.append(part)
            continue
        number = len(made)
        shape = (cut.count, *part.buffer.shape)
        partial = Buffer(f"{part.buffer.name}_{statement.name}_{number}", part.buffer.dtype, shape, Space.WORKSPACE)
        made.append(partial)
        body.append(replace(part, buffer=partial, index=(Var(block.name), *part.index)))
        sums.append(_sum(f"{statement.name}_sum{number}", part, partial, block))
        if not all(isinstance(index, Var) for index in part.index):
            starts.append(_start(f"{statement.name}_start{number}", part.function, partial))
    blocked = replace(statement, iterators=(block, *statement.iterators), body=tuple(body))
    return [*starts, blocked, *sums], made


def _sum(name: str, part: Accumulate, partial: Buffer, block: Iterator) -> Statement:
    """``T[b, j]: t[j] += p[b, j]`` over the blocks that there are."""
    symbolic = block.blocks is not None and isinstance(block.blocks.extent, Sym)
    blocks = replace(block.blocks, of="") if block.blocks is not None and symbolic else None
    counter, *others = _over(partial)
    value = Load(partial, _places(partial))
    sum_ = Accumulate(part.buffer, _places(partial)[1:], part.function, value)
    return Statement(name, (replace(counter, blocks=blocks), *others), (sum_,))


def _start(name: str, function: str, partial: Buffer) -> Statement:
    """``Z[b, j]: p[b, j] = 0``, where it is not clear which elements a block accumulates into, nor which one first."""
    return Statement(
        name, _over(partial), (Store(partial, _places(partial), neutral_element(function, partial.dtype)),)
    )  # fmt: skip


def _over(buffer: Buffer) -> tuple[Iterator, ...]:
    return tuple(Iterator(f"i{k}", extent) for k, extent in enumerate(buffer.shape))


def _places(buffer: Buffer) -> tuple[Index, ...]:
    return tuple(Var(it.name) for it in _over(buffer))
