"""Copies of whole blocks, for machines without DataCopyPad (910A, 310P): bytes become blocks of 32.

    DataCopyPad(t, x[o], 1 of 100 bytes)     ->  DataCopy(t, x[o], 32 elements)           what is read too much is not used
    DataCopyPad(y[o], t, 1 of 100 bytes)     ->  DataCopy(y[o], t, 32 elements)           where every store begins at a block
                                             ->  DataCopy(y[o], t, 24 elements)           elsewhere: the last block again, from
                                                 DataCopy(y[o + 17], edge, 8 elements)    a tile that scalars fill

Reads may go up to 31 bytes behind a buffer, and so may writes: memory of these machines is handed out with that much room
(MindSpore's allocator adds 31 bytes and rounds to 512). Where all stores to an array begin at multiples of a block, and
cover the same elements where there are several, the rest of a store's last block belongs to no other store. Rows that
share blocks with others keep their own bytes only: their last 32 bytes are copied once more, by themselves. Rows shorter
than a block are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from kernelgen.ascendc.builder import make_call
from kernelgen.ascendc.expressions import Binary, Choice, Expression, GetValue, Name, Number, ceil_div
from kernelgen.ascendc.instructions import Call, For, If, Let, SetValue, Statement, Struct, TensorRef
from kernelgen.ascendc.types import BLOCK
from kernelgen.errors import UnsupportedError
from kernelgen.targets.ascend.lower.program.writer import Program, Tile


@dataclass(frozen=True)
class Burst:
    """A DataCopyPad: ``rows`` of ``count`` elements, ``step`` elements apart in GM, ``pitch`` in the tile."""

    dst: TensorRef
    src: TensorRef
    load: bool
    rows: Expression
    count: Expression
    step: Expression
    pitch: Expression
    block: int

    @property
    def whole(self) -> Expression:
        """The elements of a row, in whole blocks."""
        return ceil_div(self.count, self.block) * self.block

    @property
    def array(self) -> TensorRef:
        """The end in GM."""
        return self.src if self.load else self.dst

    @property
    def tile(self) -> TensorRef:
        """The end in the unified buffer."""
        return self.dst if self.load else self.src


def copy_whole_blocks(program: Program) -> Program:
    """The program without DataCopyPad. Raises UnsupportedError where stores share blocks in a way that has no answer."""
    rewriting = _Rewriting({tile.name: tile for tile in program.tiles})
    rewriting.learn(program.body)
    body = rewriting.block(program.body)
    return replace(program, tiles=tuple(rewriting.tiles.values()), body=body)


@dataclass
class _Rewriting:
    """``factors`` holds a divisor of every scalar's value, ``meanings`` what it stands for.

    ``shared`` are the arrays whose stores must keep to their own bytes: one begins inside a block, or not all end alike.
    """

    tiles: dict[str, Tile]
    factors: dict[str, int] = field(default_factory=dict[str, int])
    meanings: dict[str, str] = field(default_factory=dict[str, str])
    shared: set[str] = field(default_factory=set[str])
    loaded: set[str] = field(default_factory=set[str])
    stores: dict[str, list[Burst]] = field(default_factory=dict[str, list[Burst]])

    # what is known

    def learn(self, body: Sequence[Statement]) -> None:
        """Notes divisors of scalars, and how each array is stored."""
        for statement in _flat(body):
            match statement:
                case Let(name, _, value):
                    self.factors[name] = self.factor(value)
                    self.meanings[name] = self.meaning(value)
                case For():
                    self.factors[statement.variable] = gcd(self.factor(statement.start), self.factor(statement.step))
                    span = (statement.start, statement.stop, statement.step)
                    self.meanings[statement.variable] = f"[{', '.join(map(self.meaning, span))}]"
                case Call("DataCopyPad"):
                    burst = self.burst(statement)
                    if burst.load:
                        self.loaded.add(burst.src.tensor)
                    else:
                        self.stores.setdefault(burst.dst.tensor, []).append(burst)
                case _:
                    pass
        for name, stores in self.stores.items():
            aligned = all(self.begins_at_blocks(burst) for burst in stores)
            ragged = any(self.factor(burst.count) % burst.block for burst in stores)
            places = {self.place(burst) for burst in stores} if ragged else set[str]()
            if not aligned or len(places) > 1:
                self.shared.add(name)

    def begins_at_blocks(self, burst: Burst) -> bool:
        """Whether all rows begin at a multiple of a block from the array's start."""
        one = burst.rows == Number(1)
        steps = (burst.array.offset, *(() if one else (burst.step,)))
        return all(self.factor(step) % burst.block == 0 for step in steps)

    def place(self, burst: Burst) -> str:
        """What a store covers, told by the loops around it and not by their names: the same text, the same elements."""
        return " ".join(self.meaning(part) for part in (burst.array.offset, burst.rows, burst.count, burst.step))

    def meaning(self, expression: Expression) -> str:
        """An expression with names replaced by what they stand for."""
        match expression:
            case Name(name):
                return self.meanings.get(name, name)
            case Binary(operator, left, right):
                return f"({self.meaning(left)} {operator} {self.meaning(right)})"
            case Choice(condition, then, otherwise):
                return f"({self.meaning(condition)} ? {self.meaning(then)} : {self.meaning(otherwise)})"
            case _:
                return repr(expression)

    def factor(self, expression: Expression) -> int:
        """A number that divides the value; 0 where that is 0."""
        match expression:
            case Number(int(value)):
                return abs(value)
            case Name(name):
                return self.factors.get(name, 1)
            case Binary("+" | "-", left, right):
                return gcd(self.factor(left), self.factor(right))
            case Binary("*", left, right):
                return self.factor(left) * self.factor(right)
            case Choice(_, then, otherwise):
                return gcd(self.factor(then), self.factor(otherwise))
            case _:
                return 1

    def burst(self, call: Call) -> Burst:
        """What a DataCopyPad moves; its bytes are whole elements."""
        dst, src, params = call.arguments[:3]
        if not (isinstance(dst, TensorRef) and isinstance(src, TensorRef) and isinstance(params, Struct)):
            raise AssertionError("a DataCopyPad of this program")
        load = dst.tensor in self.tiles
        item = self.tiles[dst.tensor if load else src.tensor].dtype.itemsize
        rows, length, source, target = (value for value in params.values[:4] if isinstance(value, Expression))
        gap, pads = (source, target) if load else (target, source)
        count, block = _elements(length, item), BLOCK // item
        pitch = ceil_div(count, block) * block + pads * block
        return Burst(dst, src, load, rows, count, count + _elements(gap, item), pitch, block)

    # what becomes of it

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Statements with their copies in whole blocks."""
        return tuple(one for statement in body for one in self.statement(statement))

    def statement(self, statement: Statement) -> Iterator[Statement]:
        """What stands for a statement."""
        match statement:
            case For(body=body):
                yield replace(statement, body=self.block(body))
            case If(then=then, otherwise=otherwise):
                yield replace(statement, then=self.block(then), otherwise=self.block(otherwise))
            case Call("DataCopyPad"):
                burst = self.burst(statement)
                name = burst.array.tensor
                if name in self.shared and name in self.loaded:
                    raise UnsupportedError(
                        "unsupported-layout", f"{name} is updated in place, and its rows share blocks"
                    )
                yield from self.loads(burst) if burst.load or name not in self.shared else self.stored(burst)
            case _:
                yield statement

    def loads(self, burst: Burst) -> Iterator[Statement]:
        """A copy that may touch the rest of a row's last block: a load, or a store where nobody else needs it."""
        if not burst.load and self.factor(burst.count) % burst.block:
            self.prime(burst.src.tensor)
        if burst.rows == Number(1):
            yield make_call("DataCopy", dst=burst.dst, src=burst.src, count=burst.whole)
        elif self.factor(burst.step) % burst.block == 0 and self.factor(burst.pitch) % burst.block == 0:
            far = (burst.step - burst.whole) // burst.block
            near = (burst.pitch - burst.whole) // burst.block
            gaps = (far, near) if burst.load else (near, far)
            yield make_call(
                "DataCopy", dst=burst.dst, src=burst.src, params=(burst.rows, burst.whole // burst.block, *gaps)
            )
        else:
            yield from self.by_rows(burst)

    def stored(self, burst: Burst) -> Iterator[Statement]:
        """A store that keeps to its own bytes."""
        if not isinstance(burst.count, Number) or int(burst.count.value) < burst.block:
            name = burst.dst.tensor
            raise UnsupportedError(
                "unsupported-layout", f"rows of {name} may share a block of 32 bytes with others, and be shorter"
            )
        if burst.rows != Number(1):
            yield from self.by_rows(burst)
            return
        count = int(burst.count.value)
        body = count // burst.block * burst.block
        yield make_call("DataCopy", dst=burst.dst, src=burst.src, count=body)
        if count > body:
            yield from self.edge(burst, count - burst.block)

    def edge(self, burst: Burst, first: int) -> Iterator[Statement]:
        """The last block's worth of elements, copied by themselves."""
        number = sum(name.startswith("edge_") for name in self.tiles)
        name, lane = f"edge_{number}", Name(f"lane_of_edge_{number}")
        self.tiles[name] = Tile(name, self.tiles[burst.src.tensor].dtype, burst.block)
        value = GetValue(burst.src.tensor, burst.src.offset + first + lane)
        yield For(lane.name, Number(0), Number(burst.block), Number(1), (SetValue(name, lane, value),))
        target = TensorRef(burst.dst.tensor, burst.dst.offset + first)
        yield make_call("DataCopy", dst=target, src=TensorRef(name, Number(0)), count=burst.block)

    def by_rows(self, burst: Burst) -> Iterator[Statement]:
        """A loop over the rows."""
        row = Name(f"row_{len(self.factors)}")
        self.factors[row.name] = 1
        far = TensorRef(burst.array.tensor, burst.array.offset + row * burst.step)
        near = TensorRef(burst.tile.tensor, burst.tile.offset + row * burst.pitch)
        dst, src = (near, far) if burst.load else (far, near)
        one = replace(burst, dst=dst, src=src, rows=Number(1))
        shared = not burst.load and burst.dst.tensor in self.shared
        yield For(row.name, Number(0), burst.rows, Number(1), tuple(self.stored(one) if shared else self.loads(one)))

    def prime(self, name: str) -> None:
        """Lanes that nobody computes are copied along: they must have been written."""
        base = self.tiles[self.tiles[name].alias or name]
        self.tiles[base.name] = replace(base, primed=True)


def _elements(length: Expression, item: int) -> Expression:
    """Bytes as elements; they are a number, or elements times the size of one."""
    match length:
        case Number(int(value)):
            return Number(value // item)
        case Binary("*", elements, Number(factor)) if factor == item:
            return elements
        case _:
            return length // item


def _flat(body: Sequence[Statement]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        match statement:
            case For(body=inner):
                yield from _flat(inner)
            case If(then=then, otherwise=otherwise):
                yield from _flat((*then, *otherwise))
            case _:
                pass
