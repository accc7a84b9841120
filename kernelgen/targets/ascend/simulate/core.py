"""One AI core: the scalar unit walks the kernel, evaluates what it finds there, and issues to the pipes (:mod:`engine`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.targets.ascend.errors import AscendError
from kernelgen.targets.ascend.expressions import Expression, Name
from kernelgen.targets.ascend.forms import Form, Slot, form_of
from kernelgen.targets.ascend.instructions import (
    Argument,
    Call,
    Enumerator,
    For,
    GlobalTensor,
    If,
    Let,
    LocalTensor,
    MaskBits,
    SetValue,
    Statement,
    Struct,
    TensorRef,
)
from kernelgen.targets.ascend.pipes import event_of, named_pipe, pipe_of
from kernelgen.targets.ascend.simulate import copies, cube, vector_choice, vector_lanes, vector_moves, vector_reduce
from kernelgen.targets.ascend.simulate.clockwork import Clockwork
from kernelgen.targets.ascend.simulate.engine import Gate, Pipes
from kernelgen.targets.ascend.simulate.findings import Stop
from kernelgen.targets.ascend.simulate.meeting import IDS, Seat
from kernelgen.targets.ascend.simulate.memory import Memory
from kernelgen.targets.ascend.simulate.regions import region, typed
from kernelgen.targets.ascend.simulate.scalars import BadScalar, Scope, Value
from kernelgen.targets.ascend.simulate.surroundings import Surroundings
from kernelgen.targets.ascend.simulate.work import Given, Instruction, Operand, Touch, Work
from kernelgen.targets.ascend.types import GM, L0A, L0B, L0C, L1, PIPES, POSITIONS, UB

ROOMS = (vector_lanes, vector_choice, vector_reduce, vector_moves, copies, cube)
PLANS: Mapping[str, Callable[[Instruction], Work]] = {
    group: plan for room in ROOMS for group, plan in room.PLANS.items()
}
MODES = {"0": 0, "1": 1, "2": 2, "0x0": 0, "0x1": 1, "0x2": 2}
CUBE_MEMORIES = (L1, L0A, L0B, L0C)


@dataclass(frozen=True)
class Declared:
    """A tensor's memory and bytes."""

    tensor: Operand
    elements: int


class Core:
    """A core that runs one block of a kernel."""

    def __init__(self, around: Surroundings, seat: Seat, where: str, values: Mapping[str, Value], start: float) -> None:
        self._around = around
        self.seat = seat
        self.where = where
        self._values: dict[str, Value] = dict(values)
        self._masks: dict[str, np.ndarray] = {}
        self._tensors: dict[str, Declared] = {}
        self._memories: dict[str, Memory] = {}
        self._pipes = Pipes(around, seat, where, start)
        self._scope = Scope(self._values, around.fields, self._read)
        self._access_cycles = around.machine.rates.scalar_access
        self.progress = 0
        self._line = 0

    @property
    def times(self) -> Clockwork:
        """The times of the core's pipes."""
        return self._pipes.times

    def run(self) -> Iterator[None]:
        """Walks the kernel; yields where the scalar unit has to wait for another core or for ever."""
        try:
            yield from self._block(self._around.kernel.body)
            while not self._pipes.pump():
                yield
            for line, name in self._pipes.flags.left():
                self._around.findings.add("leftover-flag", line, self.where, f"{name} is still set")
            for identity in self._around.meetings.left(self.seat):
                self._around.findings.add("leftover-flag", 0, self.where, f"cross-core flag {identity} is still set")
        except Stop:
            self._around.broken = True

    def leave(self) -> None:
        """Leaves the core's memories to the next block."""
        for place, memory in self._memories.items():
            self._around.spare.setdefault(place, []).append(memory)
        self._memories.clear()

    def stuck(self) -> None:
        """Notes what every pipe waits for that will not come."""
        self._around.broken = True
        waiting = self._pipes.waiting()
        for item in waiting:
            self._around.findings.add(
                "deadlock", item.line, self.where, f"{PIPES[item.pipe]} stands at {item.text} for ever"
            )
        if not waiting:
            self._around.findings.add("deadlock", self._line, self.where, "the scalar unit waits for ever")

    def _fail(self, kind: str, message: str) -> Stop:
        return self._around.findings.stop(kind, self._line, self.where, message)

    # statements

    def _block(self, statements: Sequence[Statement]) -> Iterator[None]:
        for statement in statements:
            self._line = statement.line
            self.progress += 1
            if self.progress > self._around.step_limit:
                raise self._fail("endless-loop", f"more than {self._around.step_limit} steps")
            if isinstance(statement, For):
                yield from self._loop(statement)
            elif isinstance(statement, If):
                yield from self._block(statement.then if self._value(statement.condition) else statement.otherwise)
            else:
                gate = self._simple(statement)
                while gate is not None and not gate():
                    yield
                    self._line = statement.line

    def _loop(self, loop: For) -> Iterator[None]:
        step = self._integer(loop.step)
        if step <= 0:
            raise self._fail("endless-loop", f"step {step}")
        value = self._integer(loop.start)
        while True:
            self._line = loop.line
            self._values[loop.variable] = value
            if value >= self._integer(loop.stop):
                break
            yield from self._block(loop.body)
            value += step
        del self._values[loop.variable]

    def _simple(self, statement: Statement) -> Gate | None:
        """Does a statement; gives what the scalar unit has to wait for."""
        match statement:
            case Call():
                return self._call(statement)
            case Let(name, dtype, value):
                found = self._value(value)
                self._values[name] = int(found) if dtype.is_integer else float(found)
            case SetValue(tensor, index, value):
                self._write(tensor, self._integer(index), self._value(value))
            case MaskBits(name, low, high):
                bits = [(half >> lane) & 1 for half in (low, high) for lane in range(64)]
                self._masks[name] = np.array(bits, np.bool_)
            case GlobalTensor():
                self._declare_global(statement)
            case LocalTensor():
                self._declare_local(statement)
            case _:
                raise AscendError(f"no meaning for a {type(statement).__name__}", statement.line)
        return None

    def _declare_global(self, statement: GlobalTensor) -> None:
        buffer = self._around.buffers.get(statement.parameter)
        if buffer is None:
            raise self._fail("bad-scalar", f"nobody declared {statement.parameter!r}")
        if not self._around.holds(buffer, statement.dtype):
            raise self._fail(
                "bad-dtype", f"{statement.parameter} holds {buffer.array.dtype}, not {statement.dtype.name}"
            )
        elements = self._integer(statement.size)
        size = elements * statement.dtype.itemsize
        if not 0 <= size <= buffer.size:
            raise self._fail("capacity", f"{size} bytes, {statement.parameter} has {buffer.size}")
        tensor = Operand(statement.name, statement.dtype, buffer, GM, 0, 0, size)
        self._tensors[statement.name] = Declared(tensor, elements)

    def _declare_local(self, statement: LocalTensor) -> None:
        place = POSITIONS[statement.position]
        capacity = self._around.capacity(place)
        if self._around.machine.split_cores and (place in CUBE_MEMORIES) != self.seat.cube:
            raise self._fail("wrong-memory", f"{'a cube' if self.seat.cube else 'a vector'} core has no {place}")
        address, elements = self._integer(statement.address), self._integer(statement.size)
        stop = address + elements * statement.dtype.itemsize
        if address < 0 or elements < 0 or stop > capacity:
            raise self._fail("capacity", f"bytes {address} to {stop}, {place} has {capacity}")
        unit = self._around.machine.alignments[place]
        if address % unit:
            raise self._fail("misaligned", f"address {address} of {place}, a multiple of {unit} is needed")
        memory = self._memories.get(place) or self._memories.setdefault(place, self._around.memory(place))
        tensor = Operand(statement.name, statement.dtype, memory, place, address, address, stop)
        self._tensors[statement.name] = Declared(tensor, elements)

    # scalars

    def _value(self, expression: Expression) -> Value:
        try:
            return self._scope.value(expression)
        except BadScalar as error:
            raise self._fail("bad-scalar", str(error)) from error

    def _integer(self, expression: Expression) -> int:
        try:
            return self._scope.integer(expression)
        except BadScalar as error:
            raise self._fail("bad-scalar", str(error)) from error

    def _element(self, tensor: str, index: int, write: bool) -> tuple[Operand, Touch]:
        """One element that the scalar unit touches."""
        operand = self._operand(tensor, index)
        if operand.place not in (UB, GM) or (write and operand.place == GM):
            raise self._fail("wrong-memory", f"the scalar unit does not {'write' if write else 'read'} {operand.place}")
        where = region(operand.start, (), operand.itemsize)
        if where.stop > operand.high:
            raise self._fail("out-of-bounds", f"element {index} of {tensor}")
        return operand, Touch(operand.memory, where, write)

    def _read(self, tensor: str, index: int) -> Value:
        operand, touch = self._element(tensor, index, write=False)
        self._pipes.scalar(Work((touch,), lambda: None, self._access_cycles), "GetValue", self._line)
        value = typed(operand.memory.data, operand.dtype.numpy, operand.start, (), 1)[0]
        return int(value) if operand.dtype.is_integer else float(value)

    def _write(self, tensor: str, index: int, value: Value) -> None:
        operand, touch = self._element(tensor, index, write=True)
        target = typed(operand.memory.data, operand.dtype.numpy, operand.start, (), 1)

        def run() -> None:
            with np.errstate(all="ignore"):
                target[0] = np.asarray(value).astype(operand.dtype.numpy)

        self._pipes.scalar(Work((touch,), run, self._access_cycles), "SetValue", self._line)

    # calls

    def _call(self, call: Call) -> Gate | None:
        form = form_of(call)
        match form.group:
            case "init":
                return None
            case "set_flag" | "wait_flag":
                return self._flag(call, form)
            case "barrier":
                return self._barrier(call)
            case "cross_set" | "cross_wait":
                return self._cross(call, form)
            case _:
                self._issue_work(call, form)
                return None

    def _issue_work(self, call: Call, form: Form) -> None:
        try:
            pipe = PIPES.index(pipe_of(call, lambda name: self._declared(name).tensor.place))
        except AscendError as error:
            raise self._fail("wrong-memory", str(error)) from error
        given = {slot.name: self._given(slot, one) for slot, one in zip(form.slots, call.arguments, strict=True)}
        around = self._around
        line = call.line

        def fail(kind: str, message: str) -> Stop:
            return around.findings.stop(kind, line, self.where, message)

        work = PLANS[form.group](Instruction(call, form, given, around.machine, around.bandwidth, fail))
        self._pipes.work(pipe, work, call.operation, call.line)

    def _flag(self, call: Call, form: Form) -> Gate | None:
        source, target = event_of(call)
        identity = self._given_integer(form, call, "id")
        problem = self._pipes.flags.problem(source, target, identity)
        if problem:
            raise self._fail("bad-event", problem)
        if form.group == "wait_flag":
            return self._pipes.wait_flag((source, target, identity), call.line)
        self._pipes.set_flag((source, target, identity), call.line)
        return None

    def _barrier(self, call: Call) -> Gate | None:
        name = named_pipe(call)
        if name == "ALL":
            return self._pipes.drained
        self._pipes.barrier(PIPES.index(name), call.line)
        return None

    def _cross(self, call: Call, form: Form) -> Gate | None:
        identity = self._given_integer(form, call, "id")
        if not 0 <= identity < IDS:
            raise self._fail("bad-event", f"cross-core flag {identity}, there are 0 to {IDS - 1}")
        if form.group == "cross_wait":
            return lambda: self._pipes.met(identity)
        mode, name = call.template[0], named_pipe(call)
        if mode not in MODES or name == "ALL":
            raise self._fail("bad-event", f"mode {mode} of pipe {name}; modes are 0, 1 and 2 of one pipe")
        self._pipes.cross_set(PIPES.index(name), MODES[mode], identity, call.line)
        return None

    # arguments

    def _declared(self, name: str) -> Declared:
        if name not in self._tensors:
            raise self._fail("bad-scalar", f"nobody declared {name!r}")
        return self._tensors[name]

    def _operand(self, name: str, offset: int) -> Operand:
        declared = self._declared(name)
        tensor = declared.tensor
        if not 0 <= offset <= declared.elements:
            raise self._fail("out-of-bounds", f"element {offset} of {name}, which has {declared.elements}")
        start = tensor.start + offset * tensor.itemsize
        return Operand(name, tensor.dtype, tensor.memory, tensor.place, start, tensor.low, tensor.high)

    def _given(self, slot: Slot, argument: Argument) -> Given:
        match argument:
            case TensorRef(tensor, offset):
                return self._operand(tensor, self._integer(offset))
            case Enumerator(name):
                return name
            case Struct(name, values):
                return self._around.struct(name, [self._field(value) for value in values])
            case Name(name) if slot.kind == "mask" and name in self._masks:
                return self._masks[name]
            case _:
                return self._value(argument)

    def _field(self, value: Expression | Enumerator) -> int | float | str:
        return value.name if isinstance(value, Enumerator) else self._value(value)

    def _given_integer(self, form: Form, call: Call, name: str) -> int:
        argument = call.arguments[form.position(name)]
        if not isinstance(argument, Expression):
            raise self._fail("bad-parameter", f"{name} is no integer")
        return self._integer(argument)
