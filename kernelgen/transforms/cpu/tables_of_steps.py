"""Computes a function of a number that was rounded to at most 256 steps once for each step, and reads it for each element.

    vector for i in 0..N {                               alloc t[257]
      let r = minimum(maximum(round(x[i]), a), b)        vector for s in 0..b - a + 1: t[s] = f(s + a)
      y[i] = f(r)                                        t[b - a + 1] = f(nan)
    }                                             ->     vector for i in 0..N {
                                                           let r = minimum(maximum(round(x[i]), a), b)
                                                           let s = select(r == r, i32(r) - a, b - a + 1)
                                                           y[i] = t[s]
                                                         }

Quantized networks round behind every operator, so that an activation between two of them is such a function. Integers are
kept as int32, of which vectors are gathered, and made narrow where they are read.

Legality. ``round`` gives an integer or NaN, a sum or difference with integers is one again (or infinite), and ``maximum`` and
``minimum`` by integers ``a`` and ``b`` leave those from ``a`` to ``b``: the place is in the table. What is computed from it and
literals alone has one value for each of them, and one for NaN; the table is filled by the same functions of the same numbers.
Values that depend on other data too are computed as before, from what the table holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.cost import arithmetic_cost
from kernelgen.nest.substitute import renamed
from kernelgen.nest.walk import map_expressions, subexpressions
from kernelgen.tensor.dtypes import BOOL, FLOAT32, INT8, INT16, INT32, UINT8, UINT16

MOST_STEPS = 256
LEAST_COST = 1.2
"""Nanoseconds for each element, in the unit of :func:`arithmetic_cost`: what reading a table takes, twice."""

LEAST_TURNS = 4
"""Elements for each step, so that a table is worth filling."""
GATHERED = frozenset({FLOAT32, INT8, UINT8, INT16, UINT16, INT32})
"""What a table holds, as float32 or int32."""

NAN = n.Literal(math.nan, FLOAT32)

Straight = n.Let | n.Store | n.Accumulate


def tables_of_steps(nest: n.Nest) -> n.Nest:
    """The nest with such tables before all else."""
    tables = _Tables()
    body = tables.block(nest.body, 1)
    return replace(nest, body=n.Block((*tables.fills(), *body.statements))) if tables.made else nest


@dataclass(frozen=True)
class _Steps:
    """A binding ``name`` whose value is NaN or an integer from ``low`` to ``high``."""

    name: str
    low: int
    high: int

    @property
    def count(self) -> int:
        """Of the integers."""
        return self.high - self.low + 1


@dataclass
class _Tables:
    """The tables so far: the bindings that compute an element from the one called ``step``, the last of which it is."""

    made: dict[tuple[_Steps, tuple[n.Let, ...]], n.Buffer] = field(
        default_factory=dict[tuple[_Steps, tuple[n.Let, ...]], n.Buffer]
    )

    def block(self, block: n.Block, turns: int) -> n.Block:
        """The block, which runs at least so many times, with values from tables in its vector loops."""
        return n.Block(tuple(self.statement(part, turns) for part in block.statements))

    def statement(self, part: n.Statement, turns: int) -> n.Statement:
        """The statement, which runs at least so many times."""
        if isinstance(part, n.If):
            return replace(part, body=self.block(part.body, turns))
        if not isinstance(part, n.For):
            return part
        turns *= _turns(part)
        straight = [each for each in part.body.statements if isinstance(each, Straight)]
        if part.kind is not n.LoopKind.VECTOR or len(straight) < len(part.body.statements):
            return replace(part, body=self.block(part.body, turns))
        bound = {each.name: each.value for each in straight if isinstance(each, n.Let)}
        for name in bound:
            steps = _steps(name, bound)
            if steps is not None and turns >= LEAST_TURNS * steps.count:
                straight = self.read(straight, steps)
        return replace(part, body=n.Block(tuple(straight)))

    def read(self, parts: Sequence[Straight], steps: _Steps) -> list[Straight]:
        """The statements that read what follows from the steps alone, where that costs more than to read it."""
        derived = _derived(parts, steps.name)
        others = {name for part in parts if _name(part) not in derived for name in _read(part)}
        ends = [name for name in derived if name in others]
        is_dear = sum(arithmetic_cost(part.value) for part in derived.values()) >= LEAST_COST * len(ends)
        if not ends or not is_dear or any(derived[name].value.dtype not in GATHERED for name in ends):
            return list(parts)
        place = n.Let(f"{steps.name}_step", _place(steps))
        found: list[Straight] = []
        for part in parts:
            if isinstance(part, n.Let) and part.name in derived:
                found += [replace(part, value=self.element(part, derived, steps, place))] if part.name in ends else []
            else:
                found.append(part)
            found += [place] if _name(part) == steps.name else []
        return found

    def element(self, end: n.Let, derived: Mapping[str, n.Let], steps: _Steps, place: n.Let) -> n.Expr:
        """What is read in place of a binding."""
        key = replace(steps, name=""), tuple(_canonical(end, derived, steps.name))
        dtype = end.value.dtype if end.value.dtype == FLOAT32 else INT32
        buffer = self.made.setdefault(key, n.Buffer(f"steps{len(self.made)}", dtype, (steps.count + 1,), n.Space.LOCAL))
        element = n.Load(buffer, (n.ValueIndex(n.Ref(place.name, INT32)),))
        return element if end.value.dtype == dtype else n.Call("cast", (element,), end.value.dtype)

    def fills(self) -> Iterator[n.Statement]:
        """What allocates and fills the tables."""
        for (steps, lets), buffer in self.made.items():
            yield n.Alloc(buffer)
            number = n.IndexValue(ix.add(n.Var(buffer.name + "_at"), n.Num(steps.low)), INT32)
            inner = _filled(lets, n.Call("cast", (number,), FLOAT32), buffer, n.Var(buffer.name + "_at"))
            yield n.For(buffer.name + "_at", n.Num(0), n.Num(steps.count), inner, n.LoopKind.VECTOR)
            of_nan = map_expressions(_filled(lets, NAN, buffer, n.Num(steps.count)), _converted)
            yield from renamed(of_nan, "_nan").statements


def _turns(loop: n.For) -> int:
    """How often a loop runs, where that is known; at least once."""
    length = ix.subtract(loop.upper, loop.lower)
    return max(1, -(-length.value // loop.step)) if isinstance(length, n.Num) else 1


def _steps(name: str, bound: Mapping[str, n.Expr]) -> _Steps | None:
    """The steps that a binding is rounded to; None for others."""
    high = _bound("minimum", bound[name])
    low = None if high is None else _bound("maximum", _written(high[0], bound))
    if high is None or low is None or not _is_whole(low[0], bound) or not 0 <= high[1] - low[1] < MOST_STEPS:
        return None
    return _Steps(name, low[1], high[1])


def _bound(function: str, expr: n.Expr) -> tuple[n.Expr, int] | None:
    """What is bounded by an integer, and that; None for other values."""
    if not isinstance(expr, n.Call) or expr.function != function or expr.dtype != FLOAT32:
        return None
    first, second = expr.args
    number = _whole_literal(second)
    return None if number is None or abs(number) > MOST_STEPS**2 else (first, number)


def _whole_literal(expr: n.Expr) -> int | None:
    if not isinstance(expr, n.Literal) or not math.isfinite(expr.value) or expr.value != int(expr.value):
        return None
    return int(expr.value)


def _is_whole(expr: n.Expr, bound: Mapping[str, n.Expr]) -> bool:
    """Whether it is rounded, or that with integers added."""
    value = _written(expr, bound)
    if not isinstance(value, n.Call):
        return _whole_literal(value) is not None
    return value.function == "round" or (
        value.function in ("add", "sub") and all(_is_whole(each, bound) for each in value.args)
    )


def _written(expr: n.Expr, bound: Mapping[str, n.Expr]) -> n.Expr:
    return bound.get(expr.name, expr) if isinstance(expr, n.Ref) else expr


def _derived(parts: Sequence[Straight], root: str) -> dict[str, n.Let]:
    """The bindings that are functions of the one called ``root`` alone, in order."""
    found: dict[str, n.Let] = {}
    for part in parts:
        if isinstance(part, n.Let) and part.value.dtype != BOOL and _is_pure(part.value):
            read = set(_read(part))
            if read and read <= found.keys() | {root}:
                found[part.name] = part
    return found


def _is_pure(value: n.Expr) -> bool:
    return not any(isinstance(each, n.Load | n.IndexValue) for each in subexpressions(value))


def _read(part: Straight) -> Iterator[str]:
    """The bindings that a statement reads."""
    places = () if isinstance(part, n.Let) else part.index
    for each in subexpressions(part.value):
        if isinstance(each, n.Ref):
            yield each.name
        elif isinstance(each, n.Load | n.IndexValue):
            places = (*places, *(each.index if isinstance(each, n.Load) else (each.index,)))
    for place in places:
        yield from ix.references(place)


def _name(part: Straight) -> str | None:
    return part.name if isinstance(part, n.Let) else None


def _place(steps: _Steps) -> n.Expr:
    """Where in its table a step is."""
    value = n.Ref(steps.name, FLOAT32)
    number = n.Call("sub", (n.Call("cast", (value,), INT32), n.Literal(steps.low, INT32)), INT32)
    return n.Call("select", (n.Call("equal", (value, value), BOOL), number, n.Literal(steps.count, INT32)), INT32)


def _canonical(end: n.Let, derived: Mapping[str, n.Let], root: str) -> list[n.Let]:
    """The bindings that an end needs, under names by their order."""
    needed = {end.name}
    for name in reversed(list(derived)):
        needed |= set(_read(derived[name])) if name in needed else set()
    names = {root: "step"} | {name: f"step{k}" for k, name in enumerate(each for each in derived if each in needed)}
    return [_renamed(derived[name], names) for name in names if name != root]


def _renamed(part: n.Let, names: Mapping[str, str]) -> n.Let:
    def value(expr: n.Expr) -> n.Expr:
        match expr:
            case n.Ref(name, dtype):
                return n.Ref(names[name], dtype)
            case n.Call(function, args, dtype):
                return n.Call(function, tuple(map(value, args)), dtype)
            case _:
                return expr

    return replace(part, name=names[part.name], value=value(part.value))


def _filled(lets: Sequence[n.Let], step: n.Expr, buffer: n.Buffer, place: n.Index) -> n.Block:
    """What computes the element of a table for a step."""
    last = n.Ref(lets[-1].name, lets[-1].value.dtype)
    value = last if last.dtype == buffer.dtype else n.Call("cast", (last,), buffer.dtype)
    body = n.Block((n.Let("step", step), *lets, n.Store(buffer, (place,), value)))
    return renamed(body, f"_{buffer.name}")


def _converted(expr: n.Expr) -> n.Expr:
    """A float as an integer, and the answer of usual processors where that is NaN: LLVM has none for literals."""
    if (
        not isinstance(expr, n.Call)
        or expr.function != "cast"
        or expr.dtype.is_float
        or not expr.args[0].dtype.is_float
    ):
        return expr
    (given,) = expr.args
    answer = n.Literal(-(1 << 31) if expr.dtype == INT32 else 0, expr.dtype)
    return n.Call("select", (n.Call("equal", (given, given), BOOL), expr, answer), expr.dtype)
