"""Loops over GM become copies to tiles, instructions on tiles, and copies back.

    vector for c1 in c0..c0 + 1024 {        for k in 0..1:
      let v0 = x[c1]                          DataCopyPad(x_0, x_gm[c0 + k * 1024], 1 row of n elements)
      let v1 = exp(v0)                ->      Exp(t_0, x_0, n)
      y[c1] = v1                              DataCopyPad(y_gm[c0 + k * 1024], t_0, 1 row of n elements)
    }

A vector loop becomes turns of at most ``turn`` lanes. Statements outside of vector loops are turns of one lane, and so
are the iterations of a vector loop with an access that is neither contiguous nor the same element. A reduction has an
accumulator with a lane for each of the turn's, which is folded behind the loop. Locals of the nest stay in the unified
buffer where every vector access begins at a block; the others (``outside``) go to GM, one copy for each core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernelgen.dims import Sym, product
from kernelgen.dtypes import BOOL, FLOAT16, FLOAT32, INT32, INT64, UINT8, DType
from kernelgen.errors import UnsupportedError
from kernelgen.nest.index import from_dim, references, subtract, values
from kernelgen.nest.initialize import neutral_element
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Call,
    Compare,
    Expr,
    For,
    If,
    Index,
    IndexBinary,
    IndexValue,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Space,
    Statement,
    Store,
    ValueIndex,
    Var,
)
from kernelgen.nest.ranges import Range, range_of
from kernelgen.nest.walk import accesses_of, loads_of, statements, stored_buffers
from kernelgen.targets.ascend.build import Tensor
from kernelgen.targets.ascend.expressions import (
    BLOCK_COUNT,
    BLOCK_INDEX,
    Binary,
    Expression,
    Field,
    GetValue,
    Name,
    Number,
    ceil_div,
    smaller,
)
from kernelgen.targets.ascend.instructions import GlobalTensor
from kernelgen.targets.ascend.lower.counting import Counting
from kernelgen.targets.ascend.lower.fold import fold
from kernelgen.targets.ascend.lower.indices import divides, element_step, linear, most, to_expression
from kernelgen.targets.ascend.lower.lanes import Lanes, tile_lanes
from kernelgen.targets.ascend.lower.operations import call, takes_whole_repeats
from kernelgen.targets.ascend.lower.values import ONE, Constant, Held, Value
from kernelgen.targets.ascend.lower.writer import Program, Writer
from kernelgen.targets.ascend.machine import Machine
from kernelgen.targets.ascend.types import BLOCK, SPELLINGS

TILING = "tiling"
LOCAL_TYPES = (FLOAT16, FLOAT32, INT32)
ALIGNED = 16
"""Elements that whole blocks of every type of a local are."""
MOST_STRIDED = 1024
"""Lanes of a turn whose elements lie apart: each takes a block."""
FOLDED = ("add", "mul", "maximum", "minimum")
INSTRUCTION = {"add": "Add", "mul": "Mul", "maximum": "Max", "minimum": "Min"}


class Unaligned(Exception):
    """A local that cannot stay in the unified buffer."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass
class Scope:
    """What is known where a statement stands: values of the nest's bindings, loop variables, their ranges and multiples."""

    bound: dict[str, Value] = field(default_factory=dict[str, Value])
    variables: dict[str, Expression] = field(default_factory=dict[str, Expression])
    ranges: dict[str, Range] = field(default_factory=dict[str, Range])
    multiples: dict[str, int] = field(default_factory=dict[str, int])

    def copy(self) -> Scope:
        """A scope for what is inside."""
        return Scope(dict(self.bound), dict(self.variables), dict(self.ranges), dict(self.multiples))


@dataclass
class Promotion:
    """The state of one nest's promotion."""

    nest: Nest
    machine: Machine
    turn: int
    outside: frozenset[str]
    writer: Writer = field(default_factory=Writer)
    tensors: dict[str, GlobalTensor] = field(default_factory=dict[str, GlobalTensor])
    locals: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    counting: Counting | None = None

    def program(self) -> Program:
        """The whole nest."""
        scope = Scope()
        for symbol in self.nest.symbols:
            scope.variables[symbol] = Field(TILING, symbol)
            scope.ranges[symbol] = Range(1)
        for buffer in self.nest.buffers:
            self._declare(buffer, scope)
        meetings = self._parts(scope)
        body = (*(self.counting.body if self.counting else ()), *self.writer.blocks[0])
        return Program(tuple(self.writer.tiles.values()), tuple(self.tensors.values()), body, meetings)

    def _counting(self) -> Counting:
        """Lanes that count, made once where the kernel starts."""
        if self.counting is None:
            self.counting = Counting(self.writer, min(self.turn, MOST_STRIDED))
        return self.counting

    def _declare(self, buffer: Buffer, scope: Scope) -> None:
        dtype = UINT8 if buffer.dtype == BOOL else buffer.dtype
        if dtype not in self.machine.operations["DataCopyPad"]:
            raise UnsupportedError(
                "unsupported-dtype", f"{buffer.name} is {dtype.name}: {self.machine.name} does not copy it"
            )
        size = to_expression(linear_size(buffer), scope.variables, {})
        self.tensors[buffer.name] = GlobalTensor(f"{buffer.name}_gm", dtype, parameter_of(buffer), size)

    # ------------------------------------------------------------ cores

    def _parts(self, scope: Scope) -> bool:
        """The parts of the nest in order; cores meet between two of which one writes what the other touches."""
        written: set[str] = set()
        read: set[str] = set()
        meetings = 0
        for part in grouped(self.nest.body):
            stores = {name for name in stored_buffers(part) if self._shared(name)}
            loads = {b.name for s in statements(part) for b, _ in accesses_of(s) if self._shared(b.name)}
            if (written & loads) or (read & stores):
                identity = meetings % 2
                self.writer.emit("CrossCoreSetFlag", ("0", "PIPE_MTE3"), id=identity)
                self.writer.emit("CrossCoreWaitFlag", id=identity)
                meetings += 1
                written, read = set(), set()
            written |= stores
            read |= loads
            self._part(part, scope)
        return meetings > 0

    def _shared(self, name: str) -> bool:
        return any(buffer.name == name for buffer in self.nest.buffers)

    def _part(self, part: Block, scope: Scope) -> None:
        only = part.statements[0]
        if len(part.statements) == 1 and isinstance(only, For) and only.kind is LoopKind.BLOCK:
            self._dealt(only, scope.copy())
            return
        with self.writer.when(BLOCK_INDEX.equals(0)):
            self.block(part, scope.copy())

    def _dealt(self, loop: For, scope: Scope) -> None:
        """Block ``b`` of ``B`` takes iterations b, b + B, b + 2B, ...; one at most where there are as many cores."""
        lower = to_expression(loop.lower, scope.variables, scope.ranges)
        upper = to_expression(loop.upper, scope.variables, scope.ranges)
        trips = ceil_div(upper - lower, loop.step)
        if isinstance(trips, Number) and int(trips.value) <= self.machine.cores:
            with self.writer.when(trips > BLOCK_INDEX):
                self._enter(loop, lower + BLOCK_INDEX * loop.step, scope)
                self.block(loop.body, scope)
            return
        with self.writer.loop("b", BLOCK_INDEX, trips, BLOCK_COUNT) as turn:
            self._enter(loop, lower + turn * loop.step, scope)
            self.block(loop.body, scope)

    # ------------------------------------------------------------ statements

    def block(self, block: Block, scope: Scope) -> None:
        """Statements outside of vector loops."""
        for part in block.statements:
            match part:
                case For() if part.kind is LoopKind.VECTOR and self._has_lanes(part, scope):
                    self._vector(part, scope.copy())
                case For():
                    self._serial(part, scope.copy())
                case If():
                    self._guarded(part, scope.copy())
                case Block():
                    self.block(part, scope)
                case Alloc():
                    self._allocate(part.buffer)
                case _:
                    self._lane_statement(self._single(part), part, scope)

    def _serial(self, loop: For, scope: Scope) -> None:
        lower = to_expression(loop.lower, scope.variables, scope.ranges)
        upper = to_expression(loop.upper, scope.variables, scope.ranges)
        with self.writer.loop("i", lower, upper, loop.step) as variable:
            self._enter(loop, variable, scope)
            self.block(loop.body, scope)

    def _enter(self, loop: For, value: Expression, scope: Scope) -> None:
        """The loop's variable has a name, a range and a divisor inside."""
        scope.variables[loop.var] = self.writer.let("at", INT32, value)
        low, high = range_of(loop.lower, scope.ranges), range_of(loop.upper, scope.ranges)
        scope.ranges[loop.var] = Range(low.low, None if high.high is None else high.high - 1)
        for factor in (1024, 512, 256, 128, 64, 32, ALIGNED):
            if loop.step % factor == 0 and divides(factor, loop.lower, scope.multiples):
                scope.multiples[loop.var] = factor
                break

    def _guarded(self, guard: If, scope: Scope) -> None:
        condition: Expression | None = None
        for each in guard.conditions:
            found = self._condition(each, scope)
            condition = found if condition is None else Binary("&&", condition, found)
        with self.writer.when(condition or Number(1)):
            self.block(guard.body, scope)

    def _condition(self, compare: Compare, scope: Scope) -> Expression:
        left, right = (to_expression(side, scope.variables, scope.ranges) for side in (compare.left, compare.right))
        return Binary(compare.op, left, right)

    def _allocate(self, buffer: Buffer) -> None:
        """A local is a tile, or an array in GM with a copy for each core."""
        if buffer.name in self.outside or buffer.dtype not in LOCAL_TYPES:
            size = local_size(buffer)
            dtype = UINT8 if buffer.dtype == BOOL else buffer.dtype
            self.tensors[buffer.name] = GlobalTensor(
                f"{buffer.name}_gm", dtype, parameter_of(buffer), BLOCK_COUNT * size
            )
        else:
            self.locals[buffer.name] = self.writer.tile(
                "local", buffer.dtype, tile_lanes(local_size(buffer)), primed=True
            )

    # ------------------------------------------------------------ lanes

    def _single(self, part: Statement) -> Lanes:
        whole = compares(part)
        return Lanes(self.writer, self.machine, Number(1), tile_lanes(1), ONE, whole)

    def _has_lanes(self, loop: For, scope: Scope) -> bool:
        """Whether every access of a vector loop is contiguous or stays at one element."""
        return loop.step == 1 and all(self._is_lane(part, loop, scope) for part in loop.body.statements)

    def _is_lane(self, part: Statement, loop: For, scope: Scope) -> bool:
        if not isinstance(part, Let | Store | Accumulate):
            return False
        if any(references(i) or any(True for _ in values(i)) for _, index in accesses_of(part) for i in index):
            return False
        stored = stored_buffers(loop.body)
        for load in loads_of(part):
            step = element_step(load.index, load.buffer.shape, loop.var)
            if not (self._moves(step, load.buffer, scope) or (step == Num(0) and load.buffer.name not in stored)):
                return False
        if isinstance(part, Let):
            return True
        step = element_step(part.index, part.buffer.shape, loop.var)
        if isinstance(part, Accumulate) and step == Num(0):
            return part.function in FOLDED and part.buffer.dtype in LOCAL_TYPES
        return self._moves(step, part.buffer, scope)

    def _moves(self, step: Index | None, buffer: Buffer, scope: Scope) -> bool:
        """Whether lanes lie one behind the other, or so far apart that a copy can pick them."""
        if step is None or step == Num(1):
            return step is not None
        low = range_of(step, scope.ranges).low
        return low is not None and low > 1 and buffer.dtype in self.machine.operations["Gather"]

    def _is_strided(self, loop: For) -> bool:
        for part in loop.body.statements:
            for buffer, index in accesses_of(part):
                if element_step(index, buffer.shape, loop.var) not in (Num(0), Num(1)):
                    return True
        return any(counts(part) for part in loop.body.statements)

    def _vector(self, loop: For, scope: Scope) -> None:
        """Turns of at most ``turn`` lanes."""
        lower = to_expression(loop.lower, scope.variables, scope.ranges)
        upper = to_expression(loop.upper, scope.variables, scope.ranges)
        known = subtract(loop.upper, loop.lower)
        extent = Number(known.value) if isinstance(known, Num) else upper - lower
        longest = most(loop.upper, loop.lower)
        turn = min(self.turn, MOST_STRIDED) if self._is_strided(loop) else self.turn
        capacity = turn if longest is None else min(turn, tile_lanes(longest))
        whole = any(compares(part) for part in loop.body.statements)
        accumulators = self._accumulators(loop, capacity, whole)
        if longest is not None and longest <= capacity:
            count = self.writer.let("n", INT32, extent)
            self._turn(loop, lower, Lanes(self.writer, self.machine, count, capacity, whole=whole), scope, accumulators)
        else:
            self._turns(loop, lower, extent, capacity, whole, scope, accumulators)
        for part, accumulator in accumulators.items():
            self._finish(part, accumulator, capacity, scope)

    def _turns(
        self,
        loop: For,
        lower: Expression,
        extent: Expression,
        capacity: int,
        whole: bool,
        scope: Scope,
        accumulators: Mapping[Accumulate, Held],
    ) -> None:
        total = self.writer.let("total", INT32, extent)
        even = isinstance(total, Number) and int(total.value) % capacity == 0
        with self.writer.loop("k", 0, ceil_div(total, capacity)) as turn:
            depth = len(self.writer.blocks) - 1
            start = self.writer.let("at", INT32, lower + turn * capacity)
            rest = total - turn * capacity
            count = Number(capacity) if even else self.writer.let("n", INT32, smaller(rest, capacity))
            lanes = Lanes(self.writer, self.machine, count, capacity, whole=whole, depth=depth)
            self._turn(loop, start, lanes, scope, accumulators)

    def _turn(
        self, loop: For, start: Expression, lanes: Lanes, scope: Scope, accumulators: Mapping[Accumulate, Held]
    ) -> None:
        scope.variables[loop.var] = start
        scope.ranges[loop.var] = Range(range_of(loop.lower, scope.ranges).low)
        if divides(ALIGNED, loop.lower, scope.multiples):
            scope.multiples[loop.var] = ALIGNED
        for part in loop.body.statements:
            if isinstance(part, Accumulate) and part in accumulators:
                value = self.value(part.value, lanes, scope, loop)
                target = accumulators[part]
                exact = replace(lanes, whole=False)
                operand = lanes.ref(value)
                self.writer.emit(
                    INSTRUCTION[part.function], dst=target.ref, first=target.ref, second=operand, count=exact.lanes
                )
            else:
                self._lane_statement(lanes, part, scope, loop)

    # ------------------------------------------------------------ reductions

    def _accumulators(self, loop: For, capacity: int, whole: bool) -> dict[Accumulate, Held]:
        """A tile with the neutral element in every lane for each reduction along the loop."""
        found: dict[Accumulate, Held] = {}
        lanes = Lanes(self.writer, self.machine, Number(capacity), capacity)
        for part in loop.body.statements:
            if isinstance(part, Accumulate) and element_step(part.index, part.buffer.shape, loop.var) == Num(0):
                neutral = neutral_element(part.function, part.buffer.dtype)
                found[part] = lanes.filled(Constant(neutral.value, part.buffer.dtype))
        return found

    def _finish(self, part: Accumulate, accumulator: Held, capacity: int, scope: Scope) -> None:
        """The accumulator's lanes are folded into one, which joins the element."""
        single = Lanes(self.writer, self.machine, Number(1), tile_lanes(1), ONE)
        one = fold(self.writer, self.machine, part.function, accumulator, capacity)
        self._join(part, one, single, scope, None)

    # ------------------------------------------------------------ statements of lanes

    def _lane_statement(self, lanes: Lanes, part: Statement, scope: Scope, loop: For | None = None) -> None:
        match part:
            case Let(name, value):
                scope.bound[name] = self.value(value, lanes, scope, loop)
            case Store(buffer, index, value):
                self._store(buffer, index, self.value(value, lanes, scope, loop), lanes, scope, loop)
            case Accumulate():
                self._join(part, self.value(part.value, lanes, scope, loop), lanes, scope, loop)
            case _:
                raise UnsupportedError("unsupported-op", f"a {type(part).__name__} has no tile program")

    def _join(self, part: Accumulate, value: Value, lanes: Lanes, scope: Scope, loop: For | None) -> None:
        """``element = function(element, value)`` for each lane."""
        old = self._load(part.buffer, part.index, lanes, scope, loop)
        if part.buffer.name in self.locals and part.function in INSTRUCTION:
            operand = lanes.ref(value)
            name = INSTRUCTION[part.function]
            self.writer.emit(name, dst=old.ref, first=old.ref, second=operand, count=lanes.count)
            return
        found = call(lanes, part.function, (old, value), part.buffer.dtype)
        self._store(part.buffer, part.index, found, lanes, scope, loop)

    def value(self, expr: Expr, lanes: Lanes, scope: Scope, loop: For | None) -> Value:
        """The value of a scalar expression in the lanes of a turn."""
        match expr:
            case Literal(value, dtype):
                return Constant(value, dtype)
            case Ref(name):
                return scope.bound[name]
            case Load(buffer, index):
                return self._loaded(buffer, index, lanes, scope, loop)
            case IndexValue(index, dtype):
                return self._index_value(index, dtype, lanes, scope, loop)
            case Call("cast", (operand,), dtype):
                return self._cast(self.value(operand, lanes, scope, loop), dtype, lanes)
            case Call(function, args, dtype):
                return call(lanes, function, [self.value(arg, lanes, scope, loop) for arg in args], dtype)

    def _cast(self, value: Value, dtype: DType, lanes: Lanes) -> Value:
        if isinstance(value, Constant):
            number = value.value
            known = bool(number) if dtype == BOOL else int(number) if dtype.is_integer else float(number)
            return Constant(known, dtype)
        return value if value.dtype == dtype else lanes.cast(value, dtype)

    def _index_value(self, index: Index, dtype: DType, lanes: Lanes, scope: Scope, loop: For | None) -> Value:
        """An index as a number: the scalar unit writes a lane's, and lanes count on from the first."""
        if any(True for _ in values(index)):
            raise UnsupportedError("unsupported-op", "data decides an index that is a number")
        step = Num(0) if loop is None else element_step((index,), (1,), loop.var)
        first = to_expression(index, scope.variables, scope.ranges)
        if not isinstance(step, Num):
            raise UnsupportedError("unsupported-op", "an index that is no multiple of the lane's number")
        found = lanes.new(INT32, "index")
        if step == Num(0):
            self.writer.emit("Duplicate", dst=found.ref, scalar=first, count=lanes.lanes)
        else:
            ramp = self._counting().ramp
            self.writer.emit("Muls", dst=found.ref, src=ramp, scalar=step.value, count=lanes.lanes)
            self.writer.emit("Adds", dst=found.ref, src=found.ref, scalar=first, count=lanes.lanes)
        return found if dtype == INT64 else self._cast(found, dtype, lanes)

    # ------------------------------------------------------------ memory

    def _position(self, buffer: Buffer, index: tuple[Index, ...], scope: Scope, loop: For | None) -> Expression:
        """The element where a turn's access begins."""
        settled = tuple(self._settled(i, scope) for i in index)
        place = linear(settled, buffer.shape)
        known = {**scope.variables}
        offset = to_expression(place, known, scope.ranges)
        if buffer.space is Space.LOCAL and buffer.name not in self.locals:
            offset = BLOCK_INDEX * local_size(buffer) + offset
        return offset

    def _settled(self, index: Index, scope: Scope) -> Index:
        """Values that decide an index are read by the scalar unit, and have names from then on."""
        match index:
            case ValueIndex(Ref(name)):
                value = scope.bound[name]
                if isinstance(value, Constant):
                    return Num(int(value.value))
                fresh = self.writer.let("pick", INT32, GetValue(value.tensor.name, value.offset))
                variable = fresh.name if isinstance(fresh, Name) else "pick"
                scope.variables[variable] = fresh
                return Var(variable)
            case ValueIndex():
                raise UnsupportedError("unsupported-op", "an index that is no binding")
            case IndexBinary(op, left, right):
                return IndexBinary(op, self._settled(left, scope), self._settled(right, scope))
            case _:
                return index

    def _local(self, buffer: Buffer, index: tuple[Index, ...], lanes: Lanes, scope: Scope) -> Held:
        """Elements of a local in the unified buffer; its first must be a block's."""
        place = linear(index, buffer.shape)
        if not divides(ALIGNED, place, scope.multiples):
            raise Unaligned(buffer.name)
        offset = to_expression(place, scope.variables, scope.ranges)
        return Held(self.locals[buffer.name], buffer.dtype, lanes.reach, offset)

    def _loaded(self, buffer: Buffer, index: tuple[Index, ...], lanes: Lanes, scope: Scope, loop: For | None) -> Held:
        """A load as a value of its own: what is stored to a local later does not change it."""
        same = loop is not None and element_step(index, buffer.shape, loop.var) == Num(0)
        if not same:
            found = self._load(buffer, index, lanes, scope, loop)
            if buffer.name in self.locals:
                kept = lanes.new(buffer.dtype)
                lanes.move(found, kept, lanes.lanes)
                return kept
            return found
        single = Lanes(self.writer, self.machine, Number(1), tile_lanes(1), ONE, buffer.dtype == BOOL)
        if not lanes.depth:
            return self._load(buffer, index, single, scope, None)
        with self.writer.before(lanes.depth):
            return self._load(buffer, index, single, scope, None)

    def _load(self, buffer: Buffer, index: tuple[Index, ...], lanes: Lanes, scope: Scope, loop: For | None) -> Held:
        step = Num(0) if loop is None else element_step(index, buffer.shape, loop.var)
        if buffer.name in self.locals:
            if step not in (Num(0), Num(1)):
                raise Unaligned(buffer.name)
            return self._local(buffer, index, lanes, scope)
        tensor = self.tensors[buffer.name]
        offset = self._position(buffer, index, scope, loop)
        if step is not None and step not in (Num(0), Num(1)):
            return self._picked(tensor, offset, to_expression(step, scope.variables, scope.ranges), lanes)
        tile = self.writer.tile("in", tensor.dtype, lanes.capacity, primed=lanes.whole and not lanes.exact)
        self.writer.emit(
            "DataCopyPad",
            dst=tile,
            src=Tensor(tensor.name, tensor.dtype)[offset],
            params=(1, lanes.count * tensor.dtype.itemsize, 0, 0, 0),
            padding=(_spelled(tensor.dtype), "false", 0, 0, 0),
        )
        found = Held(tile, tensor.dtype, lanes.reach)
        if buffer.dtype != BOOL:
            return found
        return lanes.as_bits(lanes.cast(found, FLOAT16))

    def _store(
        self, buffer: Buffer, index: tuple[Index, ...], value: Value, lanes: Lanes, scope: Scope, loop: For | None
    ) -> None:
        step = Num(0) if loop is None else element_step(index, buffer.shape, loop.var)
        if buffer.name in self.locals:
            if step not in (Num(0), Num(1)):
                raise Unaligned(buffer.name)
            lanes.move(value, self._local(buffer, index, lanes, scope))
            return
        tensor = self.tensors[buffer.name]
        offset = self._position(buffer, index, scope, loop)
        held = lanes.held(value)
        held = held if held.bits or held.dtype == tensor.dtype else lanes.cast(held, tensor.dtype)
        if step is not None and step not in (Num(0), Num(1)):
            self._scattered(tensor, offset, to_expression(step, scope.variables, scope.ranges), held, lanes)
            return
        if held.bits:
            held = lanes.cast(lanes.from_bits(held, FLOAT16), UINT8)
        self.writer.emit(
            "DataCopyPad",
            dst=Tensor(tensor.name, tensor.dtype)[offset],
            src=held.ref,
            params=(1, lanes.count * tensor.dtype.itemsize, 0, 0, 0),
        )

    def _picked(self, tensor: GlobalTensor, offset: Expression, step: Expression, lanes: Lanes) -> Held:
        """Elements that are apart: a copy gives each a block of its own, Gather takes the first of every block."""
        item = tensor.dtype.itemsize
        blocks = self.writer.tile("apart", tensor.dtype, lanes.capacity * BLOCK // item, primed=not lanes.exact)
        self.writer.emit(
            "DataCopyPad",
            dst=blocks,
            src=Tensor(tensor.name, tensor.dtype)[offset],
            params=(lanes.count, item, (step - 1) * item, 0, 0),
            padding=(_spelled(tensor.dtype), "false", 0, 0, 0),
        )
        found = lanes.new(tensor.dtype, "picked")
        offsets = self._counting().offsets()
        self.writer.emit("Gather", dst=found.ref, src=blocks, offsets=offsets, base=0, count=lanes.count)
        if lanes.whole and not lanes.exact:
            self.writer.prime(found.tensor)
        return found

    def _scattered(self, tensor: GlobalTensor, offset: Expression, step: Expression, value: Held, lanes: Lanes) -> None:
        """Brcb gives each element a block of its own, a copy takes the first of every block."""
        item = tensor.dtype.itemsize
        blocks = self.writer.tile("apart", tensor.dtype, lanes.capacity * BLOCK // item)
        if not lanes.exact:
            self.writer.prime(value.tensor)
        self.writer.emit("Brcb", dst=blocks, src=value.ref, repeats=ceil_div(lanes.count, 8), strides=(1, 8))
        self.writer.emit(
            "DataCopyPad",
            dst=Tensor(tensor.name, tensor.dtype)[offset],
            src=blocks,
            params=(lanes.count, item, 0, (step - 1) * item, 0),
        )


def _spelled(dtype: DType) -> str:
    return SPELLINGS[dtype]


def grouped(body: Block) -> tuple[Block, ...]:
    """Loops that are dealt to the cores, each alone, and what is between them."""
    parts: list[list[Statement]] = []
    open_part = False
    for part in body.statements:
        dealt = isinstance(part, For) and part.kind is LoopKind.BLOCK
        if dealt or not open_part:
            parts.append([])
        parts[-1].append(part)
        open_part = not dealt
    return tuple(Block(tuple(part)) for part in parts)


def compares(part: Statement) -> bool:
    """Whether a statement needs instructions that take whole repeats."""
    if isinstance(part, Let | Store | Accumulate):
        kinds = [b.dtype for b, _ in accesses_of(part)]
        return BOOL in kinds or _compares(part.value)
    return False


def _compares(expr: Expr) -> bool:
    if not isinstance(expr, Call):
        return isinstance(expr, Literal | Ref) and expr.dtype == BOOL
    kinds = [arg.dtype for arg in expr.args]
    return takes_whole_repeats(expr.function, kinds, expr.dtype) or any(map(_compares, expr.args))


def counts(part: Statement) -> bool:
    """Whether a statement computes with an index."""
    return isinstance(part, Let | Store | Accumulate) and _counts(part.value)


def _counts(expr: Expr) -> bool:
    return isinstance(expr, IndexValue) or (isinstance(expr, Call) and any(map(_counts, expr.args)))


def linear_size(buffer: Buffer) -> Index:
    """The elements of a buffer."""
    return from_dim(product(buffer.shape))


def local_size(buffer: Buffer) -> int:
    """The elements of a local."""
    size = product(buffer.shape)
    if isinstance(size, Sym):
        raise UnsupportedError("too-large", f"local {buffer.name} has no constant size")
    return size


def parameter_of(buffer: Buffer) -> str:
    """The kernel's parameter for a buffer."""
    return f"{buffer.name}_p"
