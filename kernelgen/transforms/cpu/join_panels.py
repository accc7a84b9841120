"""Joins loops over the same panels of prepared constants: all rows pass, and what follows is done, while a panel is in a cache.

    parallel for j0: for i in whole blocks: y[i, j0..] += a[i] * p[j0 / 32]        parallel for j0:
    parallel for j0: for i in other rows: y[i, j0..] += a[i] * p[j0 / 32]     ->     alloc y_here[M, 32]
    parallel for j0: for i: z[i, j0..] = tanh(y[i, j0..])                            ... all three of them

Legality. Loops of the same kind and bounds are one loop where each buffer that one of them writes and the other one touches
has a dim along which an iteration of either stays in its own piece, ``var <= place < var + step``: no value passes between
different iterations. A loop moves up past others where what both touch and one writes lies apart; a condition around it does
not change in it, and may be asked inside. A temporary that lives in one such loop alone, in pieces of its own iterations, needs
the memory of one piece; and that of one element along a dim that all accesses in an iteration of a loop inside address alike,
by an index that is another one in each iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.ranges import Range, range_of
from kernelgen.nest.substitute import substituted
from kernelgen.nest.walk import Moved, accesses_of, map_blocks, move, statements, stored_buffers
from kernelgen.system.cached_property import cached_property
from kernelgen.transforms.common.reached import Access, reached

_LINEAR = (n.IndexOp.ADD, n.IndexOp.SUB, n.IndexOp.MUL)


def join(nest: n.Nest) -> n.Nest:
    """The nest with such loops as one; a nest without preparation stays as it is."""
    if nest.preparation is None:
        return nest
    body = map_blocks(_joined(nest.body), _joined)
    return _with_pieces(replace(nest, body=body))


def _joined(block: n.Block) -> n.Block:
    parts: list[_Reach] = []
    for part in block.statements:
        loop = _guarded_inside(part)
        here = _Reach(part if loop is None else loop)
        place = None if loop is None else _partner(parts, loop, here)
        if place is None or loop is None:
            parts.append(here if here.root is part else _Reach(part))
        else:
            parts[place] = _Reach(_one(parts[place].root, loop))
    return n.Block(tuple([part.root for part in parts]))


def _guarded_inside(part: n.Statement) -> n.For | None:
    """The statement as a loop: one that runs under a condition holds that condition in every iteration."""
    if isinstance(part, n.For):
        return part
    if not isinstance(part, n.If) or len(part.body.statements) != 1:
        return None
    (loop,) = part.body.statements
    return replace(loop, body=n.Block((replace(part, body=loop.body),))) if isinstance(loop, n.For) else None


def _one(first: n.Statement, second: n.For) -> n.For:
    assert isinstance(first, n.For)
    moved = substituted(second.body, {second.var: n.Var(first.var)})
    return replace(first, body=_joined(n.Block((*first.body.statements, *moved.statements))))


def _partner(parts: Sequence[_Reach], loop: n.For, here: _Reach) -> int | None:
    """The position of the loop before that this one may join; ``here`` is what it touches."""
    for place in reversed(range(len(parts))):
        other = parts[place]
        if isinstance(other.root, n.For) and _fits(other.root, loop) and _is_piecewise(other, here):
            return place
        if not _lies_apart(other, here):
            return None
    return None


def _fits(first: n.For, second: n.For) -> bool:
    """One header, of more than one iteration at once, and one variable where inner loops are called the same."""
    same = replace(second, var=first.var, body=first.body) == first
    inner = {part.var for part in statements(second.body) if isinstance(part, n.For)}
    return same and first.step > 1 and first.kind in (n.LoopKind.PARALLEL, n.LoopKind.SERIAL) and first.var not in inner


@dataclass(frozen=True)
class _Reach:
    """What a statement touches, and where."""

    root: n.Statement
    _spans: dict[tuple[str, int], Range] = field(default_factory=dict[tuple[str, int], Range])
    """What :meth:`spans` found: a statement is held against all that come after it."""

    @cached_property
    def written(self) -> frozenset[str]:
        """The names of the buffers that it writes."""
        return stored_buffers(self.root)

    @cached_property
    def touched(self) -> Mapping[str, tuple[tuple[n.Index, ...], ...]]:
        """The places of all accesses to each buffer."""
        found: dict[str, list[tuple[n.Index, ...]]] = {}
        for part in statements(self.root):
            for buffer, index in accesses_of(part):
                found.setdefault(buffer.name, []).append(index)
        return {name: tuple(dict.fromkeys(places)) for name, places in found.items()}

    def meets(self, other: _Reach) -> list[str]:
        """The buffers that both touch and one of them writes."""
        both = self.touched.keys() & other.touched.keys()
        return sorted(both & (self.written | other.written))

    @cached_property
    def everywhere(self) -> Sequence[Access]:
        """All accesses, with the ranges of the variables in scope."""
        return tuple(reached(self.root))

    @cached_property
    def first_and_second(self) -> Sequence[tuple[Access, Access]]:
        """The accesses of the loop's first iteration, each with that of the second."""
        assert isinstance(self.root, n.For)
        return tuple(zip(*(reached(self.root, {}, first) for first in (0, self.root.step)), strict=True))

    def spans(self, name: str, dim: int) -> Range:
        """Where it touches a buffer along a dim."""
        if (name, dim) not in self._spans:
            self._spans[name, dim] = self._spanned(name, dim)
        return self._spans[name, dim]

    def _spanned(self, name: str, dim: int) -> Range:
        found = [range_of(place[dim], known) for buffer, place, known in self.everywhere if buffer == name]
        lows, highs = [r.low for r in found], [r.high for r in found]
        low = None if None in lows else min(low for low in lows if low is not None)
        return Range(low, None if None in highs else max(high for high in highs if high is not None))

    def own_dims(self, name: str) -> frozenset[int]:
        """The dims of a buffer along which an iteration of the loop stays in its own piece."""
        assert isinstance(self.root, n.For)
        step = self.root.step
        pairs = [pair for pair in self.first_and_second if pair[0].buffer == name]

        def is_own(dim: int, here: Access, there: Access) -> bool:
            at, next_ = range_of(here.place[dim], here.known), range_of(there.place[dim], there.known)
            if at.low is None or at.high is None or next_.low is None or not _is_linear(here.place[dim]):
                return False
            return at.low >= 0 and at.high < step and (next_.low, next_.high) == (at.low + step, at.high + step)

        return frozenset(d for d in range(len(self.touched[name][0])) if all(is_own(d, *pair) for pair in pairs))


def _is_linear(index: n.Index) -> bool:
    if isinstance(index, n.IndexBinary):
        return index.op in _LINEAR and _is_linear(index.left) and _is_linear(index.right)
    return isinstance(index, n.Num | n.Var)


def _is_piecewise(first: _Reach, second: _Reach) -> bool:
    """Whether no value passes between different iterations of two loops, which have something to do with each other."""
    if not first.touched.keys() & second.touched.keys():
        return False
    return all(first.own_dims(name) & second.own_dims(name) for name in first.meets(second))


def _lies_apart(first: _Reach, second: _Reach) -> bool:
    """Whether the order of two statements does not matter."""
    return all(
        any(_are_apart(first.spans(name, dim), second.spans(name, dim)) for dim in range(len(first.touched[name][0])))
        for name in first.meets(second)
    )


def _are_apart(first: Range, second: Range) -> bool:
    below = first.high is not None and second.low is not None and first.high < second.low
    return below or (second.high is not None and first.low is not None and second.high < first.low)


def _with_pieces(nest: n.Nest) -> n.Nest:
    """Temporaries that one loop alone uses, piece by piece, are as large as a piece."""
    body, kept = nest.body, list[n.Buffer]()
    for buffer in nest.buffers:
        placed = _placed(body, buffer) if buffer.space is n.Space.WORKSPACE else None
        if placed is None:
            kept.append(buffer)
        else:
            body = placed
    return replace(nest, buffers=tuple(kept), body=body)


def _placed(block: n.Block, buffer: n.Buffer) -> n.Block | None:
    """The block with a buffer of one piece in the only loop that uses it, in a loop inside where that is so there too.

    None where there is no such loop.
    """
    found = _only_user(block, buffer)
    own = frozenset[int]() if found is None or found[1].step == 1 else _Reach(found[1]).own_dims(buffer.name)
    if found is None or not own:
        return None
    position, loop = found
    dim = min(own)
    shape = (*buffer.shape[:dim], loop.step, *buffer.shape[dim + 1 :])
    local = Moved(
        replace(buffer, shape=shape, space=n.Space.LOCAL), tuple(range(len(shape))), bases={dim: n.Var(loop.var)}
    )
    body = move(loop.body, {buffer.name: local})
    inside = _placed(body, local.buffer) or _with_elements(body, local.buffer) or _allocated(body, local.buffer)
    return _with(block, position, replace(loop, body=inside))


def _with_elements(block: n.Block, buffer: n.Buffer) -> n.Block | None:
    """The block with a buffer without the dims along which the only loop that uses it has one place an iteration, in a loop
    inside where that is so there too. None where there is no such loop.
    """
    found = _only_user(block, buffer)
    if found is None:
        return None
    position, loop = found
    dims = _dims_of_one_place(loop, buffer)
    if not dims:
        return None
    kept = tuple(dim for dim in range(len(buffer.shape)) if dim not in dims)
    local = replace(buffer, shape=tuple(buffer.shape[dim] for dim in kept))
    body = move(loop.body, {buffer.name: Moved(local, kept)})
    inside = _with_elements(body, local) or _allocated(body, local)
    return _with(block, position, replace(loop, body=inside))


def _dims_of_one_place(loop: n.For, buffer: n.Buffer) -> frozenset[int]:
    """The dims of a buffer that all accesses in an iteration address alike, and every iteration elsewhere."""
    inside = {part.var for part in statements(loop.body) if isinstance(part, n.For)}
    places = _Reach(loop).touched[buffer.name]
    alike = {dim: {place[dim] for place in places} for dim in range(len(buffer.shape))}
    return frozenset(
        dim for dim, (first, *others) in alike.items()
        if not others and ix.stride(first, loop.var) and not ix.variables(first) & inside
    )  # fmt: skip


def _only_user(block: n.Block, buffer: n.Buffer) -> tuple[int, n.For] | None:
    """The only statement of a block that uses a buffer, where it is a loop, and its position."""
    users = [(k, part) for k, part in enumerate(block.statements) if buffer.name in _Reach(part).touched]
    position, part = users[0] if len(users) == 1 else (0, None)
    return (position, part) if isinstance(part, n.For) else None


def _allocated(block: n.Block, buffer: n.Buffer) -> n.Block:
    return n.Block((n.Alloc(buffer), *block.statements))


def _with(block: n.Block, position: int, part: n.Statement) -> n.Block:
    return n.Block((*block.statements[:position], part, *block.statements[position + 1 :]))
