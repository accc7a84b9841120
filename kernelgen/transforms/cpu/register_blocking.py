"""Keeps a block of results in locals while a reduction runs, so that a target can hold them in registers.

    for k:                                      alloc r0[8]; r0[0..8] = 0; ...
      vector for j in c..c + 8:                 for k:
        s[i, j] += a[i, k] * b[k, j]              vector for j in 0..8:
        s[i + 1, j] += ...                ->        r0[j] += a[i, k] * b[k, c + j]
                                                    r1[j] += ...
                                                vector for j in 0..8: s[i, c + j] += r0[j]
                                                ...

Where all that moves with the columns is read from panels that have zeros behind these columns, the locals have so
many more elements, which are nowhere read: a vector that is masked would be kept in memory from term to term.

Legality: the loops touch the buffer in no other way, every target stays where it is while they run, and a reduction may
take its terms in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from kernelgen.nest import nodes as n
from kernelgen.nest.index import add, is_by_data, stride, substitute, substitute_in, subtract, variables
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.walk import loads_of, nested, statements

MAX_LENGTH = 128
"""Elements of one vector loop's results; more would not fit registers."""

Target = tuple[n.Buffer, tuple[n.Index, ...], str]


def registers(nest: n.Nest) -> n.Nest:
    """The nest with such results in locals."""
    return replace(nest, body=_block(nest.body, count(), nest.panels))


def _block(block: n.Block, counter: Iterator[int], arrays: frozenset[str]) -> n.Block:
    """Outer loops first: a reduction over several loops is held around all of them. ``arrays`` are panels."""
    parts: list[n.Statement] = []
    for part in block.statements:
        if isinstance(part, n.For) and part.kind is n.LoopKind.ROWS:  # whose sums registers of matrices hold
            parts.append(part)
        elif isinstance(part, n.For | n.If):
            held = _held(part, parts, counter, arrays) if isinstance(part, n.For) else None
            if held is not None:
                parts = held
            else:
                parts.append(replace(part, body=_block(part.body, counter, arrays)))
        else:
            parts.append(part)
    return n.Block(tuple(parts))


def _held(
    loop: n.For, before: Sequence[n.Statement], counter: Iterator[int], arrays: frozenset[str]
) -> list[n.Statement] | None:
    """What stands before the reduction, and the reduction between its locals and the update of its targets; None where that
    is impossible. Locals begin with what was stored into the targets just before, where that is known.
    """
    around = reduction_of(loop)
    if around is None:
        return None
    *outer, vector = around
    targets, length = _targets(outer, vector), subtract(vector.upper, vector.lower)
    if not targets or not isinstance(length, n.Num) or length.value > MAX_LENGTH or not _only_these(loop, targets):
        return None
    at = {vector.var: add(vector.lower, n.Var(vector.var))}
    kept, begun = _without_starts(before, targets, vector)
    is_plain = all(isinstance(value, n.Literal) for value in begun.values())
    size = _whole_vectors(vector, at, arrays) if is_plain else length.value
    here, whole = (replace(vector, lower=n.Num(0), upper=n.Num(extent)) for extent in (length.value, size))
    held = [
        _Held(n.Buffer(f"held{next(counter)}", target[0].dtype, (size,), n.Space.LOCAL), target, begun.get(target), at)
        for target in targets
    ]
    starts = [part for each in held for part in (n.Alloc(each.local), replace(whole, body=n.Block((each.start(),))))]
    ends = [replace(here, body=n.Block((each.end(),))) for each in held]
    led = {each.target: each.local for each in held}
    body = n.Block(tuple(_moved(part, led, at) for part in vector.body.statements))
    return [*kept, *starts, *nested((*outer, whole), body).statements, *ends]


@dataclass(frozen=True)
class _Held:
    """A ``local`` in place of a ``target``, which ``begun`` was just stored into, if anything was.

    ``at`` says where the columns of the target begin: those of the local are counted from 0.
    """

    local: n.Buffer
    target: Target
    begun: n.Expr | None
    at: Mapping[str, n.Index]

    @property
    def place(self) -> tuple[n.Index, ...]:
        return tuple(map(n.Var, self.at))

    def start(self) -> n.Statement:
        """What is stored into the local before the reduction."""
        neutral = neutral_element(self.target[2], self.local.dtype)
        return n.Store(self.local, self.place, neutral if self.begun is None else substitute_in(self.begun, self.at))

    def end(self) -> n.Statement:
        """The update of the target behind it."""
        buffer, index, function = self.target
        value, to = n.Load(self.local, self.place), tuple(substitute(each, self.at) for each in index)
        return n.Accumulate(buffer, to, function, value) if self.begun is None else n.Store(buffer, to, value)


def _whole_vectors(vector: n.For, at: dict[str, n.Index], arrays: frozenset[str]) -> int:
    """How many columns there are with the zeros behind them, of which all that is read along the columns has as many."""
    length = subtract(vector.upper, vector.lower)
    assert isinstance(length, n.Num)
    found: set[int] = set()
    for part in vector.body.statements:
        for load in loads_of(part):
            index = tuple(substitute(each, at) for each in load.index)
            if not any(vector.var in variables(each) for each in index):
                continue
            columns, first = load.buffer.shape[-1], substitute(index[-1], {vector.var: n.Num(0)})
            is_along = stride(index[-1], vector.var) == 1 and first == n.Num(0)
            if load.buffer.name not in arrays or not is_along or not isinstance(columns, int):
                return length.value
            found.add(columns)
    return max(length.value, *found) if len(found) == 1 and max(found) <= MAX_LENGTH else length.value


def _without_starts(
    before: Sequence[n.Statement], targets: Sequence[Target], vector: n.For
) -> tuple[list[n.Statement], dict[Target, n.Expr]]:
    """What stands before without the last loops that only store to targets along the same columns, and what they store."""
    kept, begun = list(before), dict[Target, n.Expr]()
    while kept:
        last = kept[-1]
        is_like = isinstance(last, n.For) and replace(last, body=vector.body) == vector
        stores = last.body.statements if isinstance(last, n.For) and is_like else ()
        only = stores[0] if len(stores) == 1 else None
        target = next((t for t in targets if isinstance(only, n.Store) and t[:2] == (only.buffer, only.index)), None)
        if target is None or target in begun or not isinstance(only, n.Store):
            break
        begun[target] = only.value
        kept.pop()
    return kept, begun


def reduction_of(loop: n.For) -> tuple[n.For, ...] | None:
    """Serial loops, each of bindings and one loop, down to a vector loop of bindings and accumulations."""
    loops = [loop]
    while loops[-1].kind is n.LoopKind.SERIAL:
        inner = loops[-1].body.statements[-1] if loops[-1].body.statements else None
        if not isinstance(inner, n.For) or not all(isinstance(s, n.Let) for s in loops[-1].body.statements[:-1]):
            return None
        loops.append(inner)
    vector = loops[-1]
    plain = vector.step == 1 and all(isinstance(s, n.Let | n.Accumulate) for s in vector.body.statements)
    return tuple(loops) if len(loops) > 1 and vector.kind is n.LoopKind.VECTOR and plain else None


def _targets(around: Sequence[n.For], vector: n.For) -> list[Target]:
    """What the vector loop accumulates into, when no target moves while the loops around it run; else nothing."""
    moving = {loop.var for loop in around}
    if moving & (variables(vector.lower) | variables(vector.upper)):
        return []
    found: dict[Target, None] = {}
    for part in vector.body.statements:
        if isinstance(part, n.Accumulate):
            names = {name for i in part.index for name in variables(i)}
            by_data = is_by_data(*part.index)
            if names & moving or vector.var not in names or by_data:
                return []
            found[part.buffer, part.index, part.function] = None
    return list(found)


def _only_these(loop: n.For, targets: Sequence[Target]) -> bool:
    """The loops touch the buffers of the targets there alone, with one function each."""
    names = {buffer.name for buffer, _, _ in targets}
    if len({(buffer.name, index) for buffer, index, _ in targets}) < len(targets):
        return False
    return not any(
        any(load.buffer.name in names for load in loads_of(part))
        or (isinstance(part, n.Store) and part.buffer.name in names)
        for part in statements(loop)
    )


def _moved(part: n.Statement, locals_: Mapping[Target, n.Buffer], at: Mapping[str, n.Index]) -> n.Statement:
    """A statement of the vector loop, which now counts from 0, with its target in a local."""
    if isinstance(part, n.Accumulate):
        local = locals_[part.buffer, part.index, part.function]
        return n.Accumulate(local, tuple(map(n.Var, at)), part.function, substitute_in(part.value, at))
    return replace(part, value=substitute_in(part.value, at)) if isinstance(part, n.Let) else part
