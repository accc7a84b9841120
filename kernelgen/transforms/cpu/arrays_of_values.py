"""Arrays that hold the values of an expression in the order in which loops read them, with a dim for each loop it depends on.

    for j0 in 0..N step 32: for i: for k:              for j0: for k: vector j in 0..32: p[j0, k, j] = f(b[k, 32 j0 + j])
      vector j in j0..j0 + 32: ... f(b[k, j])    ->    ... p[j0 / 32, k, j - j0]

What a vector loop adds up has columns of zeros behind its own, so that vectors are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.walk import loads, nested, statements


@dataclass(frozen=True)
class Reads:
    """The ``buffers`` that an expression reads where bindings are written out, and whether data decides where (``by_data``)."""

    buffers: frozenset[str] = frozenset()
    by_data: bool = False


NOTHING = Reads()


@dataclass(frozen=True)
class Scope:
    """What surrounds a statement: loops, outermost first, bindings with what they read, and variables that are the ``same``
    in all of the loops.
    """

    loops: tuple[n.For, ...] = ()
    bound: Mapping[str, n.Expr] = field(default_factory=dict[str, n.Expr])
    read: Mapping[str, Reads] = field(default_factory=dict[str, Reads])
    guards: int = 0
    """So many of the loops stand outside of the innermost guard."""
    same: frozenset[str] = frozenset()

    def behind(self, part: n.Statement) -> Scope:
        """What surrounds the statement after this one: its binding too, where it is one."""
        if not isinstance(part, n.Let):
            return self
        bound, read = {**self.bound, part.name: part.value}, {**self.read, part.name: self.reads(part.value)}
        return replace(self, bound=bound, read=read)

    def reads(self, expr: n.Expr) -> Reads:
        """What an expression reads, from what is known of its bindings: written out it may be many times as long."""
        match expr:
            case n.Ref(name):
                return self.read.get(name, NOTHING)
            case n.Load(buffer, index):
                deciding = [value for each in index for value in ix.values(each)]
                found = _together(map(self.reads, deciding)) if deciding else NOTHING
                return Reads(found.buffers | {buffer.name}, bool(deciding))
            case n.IndexValue(index):
                return _together(map(self.reads, ix.values(index)))
            case n.Call(_, args):
                return _together(map(self.reads, args))
            case _:
                return NOTHING


def _together(found: Iterable[Reads]) -> Reads:
    parts = [each for each in found if each is not NOTHING]
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    return Reads(frozenset[str]().union(*(each.buffers for each in parts)), any(each.by_data for each in parts))


@dataclass(frozen=True)
class Array:
    """What an array holds: an expression over one variable for each dim, called as in :func:`dim_name`.

    A panel is read again and again. Behind the last dim's ``extents`` are so many ``zeros``.
    """

    value: n.Expr
    extents: tuple[int, ...]
    is_panel: bool = False
    zeros: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents with the zeros."""
        return (*self.extents[:-1], self.extents[-1] + self.zeros)


def array_of(value: n.Expr, loops: Sequence[n.For], lanes: int) -> Array:
    """The array of a value over these loops; ``lanes`` are the elements of the widest vector."""
    columns, is_panel = _trips(loops[-1]), sums_columns(loops[-1])
    zeros = _whole(columns, lanes) - columns if is_panel else 0
    return Array(_over_dims(value, loops), tuple(map(_trips, loops)), is_panel, zeros)


def element(buffer: n.Buffer, loops: Sequence[n.For]) -> n.Load:
    """What an iteration of these loops reads of their array."""
    place = (ix.floor_divide(ix.subtract(n.Var(loop.var), loop.lower), n.Num(loop.step)) for loop in loops)
    return n.Load(buffer, tuple(place))


def loops_of(value: n.Expr, scope: Scope) -> tuple[n.For, ...] | None:
    """The loops that a value depends on, outermost first; None where the lengths of some depend on more, or on guards."""
    needed, found = set(ix.variables_in(value)), list[n.For]()
    for number, loop in reversed(tuple(enumerate(scope.loops))):
        if loop.var in needed:
            if number < scope.guards or not isinstance(ix.subtract(loop.upper, loop.lower), n.Num):
                return None
            needed |= ix.variables(loop.lower)
            found.append(loop)
    return tuple(reversed(found)) if needed - scope.same == {loop.var for loop in found} else None


def _trips(loop: n.For) -> int:
    length = ix.subtract(loop.upper, loop.lower)
    assert isinstance(length, n.Num)
    return -(-length.value // loop.step)


def _whole(size: int, lanes: int) -> int:
    """Elements of whole vectors, of narrower ones where the size fills none of the widest."""
    unit = min(lanes, 1 << (size - 1).bit_length())
    return -(-size // unit) * unit


def sums_columns(loop: n.For) -> bool:
    """Whether it is a vector loop over columns, each of which adds something up."""
    if loop.kind is not n.LoopKind.VECTOR:
        return False
    sums = (part for part in statements(loop.body) if isinstance(part, n.Accumulate))
    return any(loop.var in ix.variables(each) for part in sums for each in part.index)


def _over_dims(value: n.Expr, loops: Sequence[n.For]) -> n.Expr:
    """The value over the numbers of iterations."""
    places: dict[str, n.Index] = {}
    for number, loop in enumerate(loops):
        counted = ix.multiply(n.Var(dim_name(number)), n.Num(loop.step))
        places[loop.var] = ix.add(counted, ix.substitute(loop.lower, places))
    return ix.substitute_in(value, places)


def dim_name(dim: int) -> str:
    """The variable of a dim in what an array holds."""
    return f"d{dim}"


def fills(arrays: Mapping[Array, n.Buffer], outermost: n.LoopKind = n.LoopKind.SERIAL) -> Iterator[n.Statement]:
    """The loops that compute arrays, and those that store zeros behind them; ``outermost`` is the kind of the first loops."""
    for number, (array, buffer) in enumerate(arrays.items()):
        yield _filled(array, buffer, number, outermost)
    for number, (array, buffer) in enumerate(arrays.items()):
        if array.zeros:
            yield _zeros(array, buffer, number)


def _filled(array: Array, buffer: n.Buffer, number: int, outermost: n.LoopKind) -> n.Statement:
    """The loops that compute one array; those of different arrays have names of their own."""
    names = {dim_name(dim): f"c{number}_{dim}" for dim in range(len(array.extents))}
    value = ix.substitute_in(array.value, {name: n.Var(new) for name, new in names.items()})
    store = n.Store(buffer, tuple(map(n.Var, names.values())), value)
    last = len(array.extents) - 1
    is_turned = any(ix.lies_along(load, f"c{number}_{last - 1}") for load in loads(value))
    kinds = dict.fromkeys(range(last), n.LoopKind.SERIAL) | {0: outermost}
    if last > 0 and is_turned and kinds[last - 1] is n.LoopKind.SERIAL:
        kinds[last - 1] = n.LoopKind.INTERLEAVE
    kinds[last] = n.LoopKind.VECTOR
    loops = [
        n.For(names[dim_name(dim)], n.Num(0), n.Num(extent), n.Block(), kinds[dim])
        for dim, extent in enumerate(array.extents)
    ]
    return nested(loops, n.Block((store,))).statements[0]


def _zeros(array: Array, buffer: n.Buffer, number: int) -> n.Statement:
    """The loops that set what is behind the elements of an array."""
    ranges = [(0, extent) for extent in array.extents[:-1]] + [(array.extents[-1], array.shape[-1])]
    loops = [n.For(f"z{number}_{dim}", n.Num(low), n.Num(high), n.Block()) for dim, (low, high) in enumerate(ranges)]
    loops[-1] = replace(loops[-1], kind=n.LoopKind.VECTOR)
    store = n.Store(buffer, tuple(n.Var(loop.var) for loop in loops), neutral_element("add", buffer.dtype))
    return nested(loops, n.Block((store,))).statements[0]
