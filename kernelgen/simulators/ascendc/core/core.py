"""One AI core: the scalar unit walks the kernel, evaluates what it finds there, and issues to the pipes (:mod:`engine`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.instructions import Argument, GlobalTensor, LocalTensor, MaskBits, Pads, Struct, TensorRef
from kernelgen.ascendc.intrinsics import STRUCTS, Slot
from kernelgen.ascendc.pipes import event_of, named_pipe, pipe_of
from kernelgen.ascendc.types import GM, L0A, L0B, L0C, L1, PIPES, POSITIONS, UB
from kernelgen.simulators.ascendc.core import copies, cube
from kernelgen.simulators.ascendc.core.core_memories import Declared, Planned
from kernelgen.simulators.ascendc.core.decode import (
    Binding,
    Branch,
    Declaration,
    Decoded,
    Element,
    Loop,
    Operation,
    Raw,
)
from kernelgen.simulators.ascendc.core.engine import Gate, Pipes
from kernelgen.simulators.ascendc.core.launch_state import Surroundings
from kernelgen.simulators.ascendc.core.scalars import BadScalar, Evaluate, Scope, Value, evaluator, whole
from kernelgen.simulators.ascendc.order.core_flags import IDS, Seat
from kernelgen.simulators.ascendc.order.flags import Key
from kernelgen.simulators.ascendc.state.byte_regions import region, typed
from kernelgen.simulators.ascendc.state.instruction import Given, Instruction, Operand, Touch, Work
from kernelgen.simulators.ascendc.time.pipe_clock import Clockwork
from kernelgen.simulators.ascendc.vector import compare_select as vector_choice
from kernelgen.simulators.ascendc.vector import lane_wise as vector_lanes
from kernelgen.simulators.ascendc.vector import moves as vector_moves
from kernelgen.simulators.ascendc.vector import reduce as vector_reduce
from kernelgen.simulators.common.findings import Stop

ROOMS = (vector_lanes, vector_choice, vector_reduce, vector_moves, copies, cube)
PLANS: Mapping[str, Callable[[Instruction], Work]] = {
    group: plan for room in ROOMS for group, plan in room.PLANS.items()
}
MODES = {"0": 0, "1": 1, "2": 2, "0x0": 0, "0x1": 1, "0x2": 2}
CUBE_MEMORIES = (L1, L0A, L0B, L0C)


class Core:
    """A core that runs one block of a kernel."""

    def __init__(self, around: Surroundings, seat: Seat, where: str, values: Mapping[str, Value], start: float) -> None:
        self._around = around
        self.seat = seat
        self.where = where
        self._values: dict[str, Value] = dict(values)
        self._masks: dict[str, np.ndarray] = {}
        self._tensors: dict[str, Declared] = {}
        self._bench = around.bench(where)
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
            yield from self._block(self._around.body)
            while not self._pipes.pump():
                yield
            for line, name in self._pipes.flags.left():
                self._around.findings.add("leftover-flag", line, self.where, f"{name} is still set")
        except Stop:
            self._around.broken = True

    def part(self) -> None:
        """Notes what is left of flags between cores, when all cores are through."""
        for identity in self._around.meetings.left(self.seat):
            self._around.findings.add("leftover-flag", 0, self.where, f"cross-core flag {identity} is still set")

    def leave(self) -> None:
        """Leaves the core's memories to the next block."""
        self._around.spare.append(self._bench)

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

    def _block(self, statements: Sequence[Decoded]) -> Iterator[None]:
        for statement in statements:
            self._line = statement.line
            self.progress += 1
            if self.progress > self._around.step_limit:
                raise self._too_long()
            if isinstance(statement, Loop):
                yield from self._loop(statement)
            elif isinstance(statement, Branch):
                yield from self._block(statement.then if self._value(statement.condition) else statement.otherwise)
            else:
                gate = self._simple(statement)
                while gate is not None and not gate():
                    yield
                    self._line = statement.line

    def _too_long(self) -> Stop:
        if self._around.ledger is not None:
            self._around.ledger.cut = True
            return Stop("cut")
        return self._fail("endless-loop", f"more than {self._around.step_limit} steps")

    def _loop(self, loop: Loop) -> Iterator[None]:
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

    def _simple(self, statement: Operation | Binding | Element | Declaration) -> Gate | None:
        """Does a statement; gives what the scalar unit has to wait for."""
        match statement:
            case Operation():
                return self._call(statement)
            case Binding():
                found = self._value(statement.value)
                self._values[statement.name] = int(found) if statement.is_integer else float(found)
            case Element():
                self._write(statement.tensor, self._integer(statement.index), self._value(statement.value))
            case Declaration():
                self._declare(statement)
        return None

    def _declare(self, declaration: Declaration) -> None:
        match declaration.statement:
            case MaskBits(name, low, high):
                bits = [(half >> lane) & 1 for half in (low, high) for lane in range(64)]
                self._masks[name] = np.array(bits, np.bool_)
            case Pads(name):
                self._values[name] = 0
            case GlobalTensor() as tensor:
                self._tensors[tensor.name] = self._bench.declared(tensor.name, self._global(tensor))
            case LocalTensor() as tensor:
                self._tensors[tensor.name] = self._bench.declared(tensor.name, self._local(tensor))
            case other:
                raise AscendError(f"no meaning for a {type(other).__name__}", other.line)

    def _global(self, statement: GlobalTensor) -> Declared:
        buffer = self._around.buffers.get(statement.parameter)
        if buffer is None:
            raise self._fail("bad-scalar", f"nobody declared {statement.parameter!r}")
        if not self._around.holds(buffer, statement.dtype):
            raise self._fail(
                "bad-dtype", f"{statement.parameter} holds {buffer.array.dtype}, not {statement.dtype.name}"
            )
        elements = self._integer(evaluator(statement.size))
        size = elements * statement.dtype.itemsize
        if not 0 <= size <= buffer.size:
            raise self._fail("capacity", f"{size} bytes, {statement.parameter} has {buffer.size}")
        room = self._around.machine.room
        buffer.written[buffer.size : buffer.size + room] = True
        return Declared(Operand(statement.name, statement.dtype, buffer, GM, 0, 0, size + room), elements)

    def _local(self, statement: LocalTensor) -> Declared:
        place = POSITIONS[statement.position]
        capacity = self._around.capacity(place)
        if self._around.machine.split_cores and (place in CUBE_MEMORIES) != self.seat.cube:
            raise self._fail("wrong-memory", f"{'a cube' if self.seat.cube else 'a vector'} core has no {place}")
        address, elements = (self._integer(evaluator(one)) for one in (statement.address, statement.size))
        stop = address + elements * statement.dtype.itemsize
        if address < 0 or elements < 0 or stop > capacity:
            raise self._fail("capacity", f"bytes {address} to {stop}, {place} has {capacity}")
        unit = self._around.machine.alignments[place]
        if address % unit:
            raise self._fail("misaligned", f"address {address} of {place}, a multiple of {unit} is needed")
        memory = self._bench.memory(place)
        return Declared(Operand(statement.name, statement.dtype, memory, place, address, address, stop), elements)

    # scalars

    def _value(self, expression: Evaluate) -> Value:
        try:
            return expression(self._scope)
        except BadScalar as error:
            raise self._fail("bad-scalar", str(error)) from error

    def _integer(self, expression: Evaluate) -> int:
        try:
            return whole(expression(self._scope))
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
        if self._around.ledger is not None:
            return 0 if operand.dtype.is_integer else 0.0
        value = typed(operand.memory.data, operand.dtype.numpy, operand.start, (), 1)[0]
        return int(value) if operand.dtype.is_integer else float(value)

    def _write(self, tensor: str, index: int, value: Value) -> None:
        operand, touch = self._element(tensor, index, write=True)

        def run() -> None:
            target = typed(operand.memory.data, operand.dtype.numpy, operand.start, (), 1)
            with np.errstate(all="ignore"):
                target[0] = np.asarray(value).astype(operand.dtype.numpy)

        self._pipes.scalar(Work((touch,), run, self._access_cycles), "SetValue", self._line)

    # calls

    def _call(self, operation: Operation) -> Gate | None:
        match operation.form.group:
            case "init":
                return None
            case "set_flag" | "wait_flag":
                return self._flag(operation)
            case "barrier":
                return self._barrier(operation)
            case "cross_set" | "cross_wait":
                return self._cross(operation)
            case _:
                planned = self._planned(operation)
                self._pipes.work(planned.pipe, planned.work, operation.call.operation, operation.line)
                return None

    def _planned(self, operation: Operation) -> Planned:
        """What the call does; a plan is made once for the same arguments."""
        raw = self._raw(operation)
        key = (operation.number, raw)
        planned = self._bench.plans.get(key)
        if planned is None:
            planned = self._plan(operation, raw)
            if operation.keeps(raw):
                self._bench.keep(key, planned)
        return planned

    def _plan(self, operation: Operation, raw: Sequence[Raw]) -> Planned:
        call, form = operation.call, operation.form
        try:
            pipe = PIPES.index(pipe_of(call, lambda name: self._declared(name).tensor.place))
        except AscendError as error:
            raise self._fail("wrong-memory", str(error)) from error
        arguments = zip(form.slots, call.arguments, raw, strict=True)
        given = {slot.name: self._given(slot, argument, value) for slot, argument, value in arguments}
        around, bench, line = self._around, self._bench, call.line

        def fail(kind: str, message: str) -> Stop:
            return around.findings.stop(kind, line, bench.where, message)

        return Planned(pipe, PLANS[form.group](Instruction(call, form, given, around.machine, around.bandwidth, fail)))

    def _raw(self, operation: Operation) -> tuple[Raw, ...]:
        try:
            return operation.raw(self._scope)
        except BadScalar as error:
            raise self._fail("bad-scalar", str(error)) from error

    def _identity(self, operation: Operation) -> int:
        """The id of a flag."""
        value = self._raw(operation)[operation.form.position("id")]
        if not isinstance(value, int):
            raise self._fail("bad-scalar", f"an integer is needed, {value} is none")
        return value

    def _flag(self, operation: Operation) -> Gate | None:
        raw = self._raw(operation)
        key = self._bench.flags.get((operation.number, raw))
        if key is None:
            key = self._bench.flags[operation.number, raw] = self._key(operation)
        if operation.form.group == "wait_flag":
            return self._pipes.wait_flag(key, operation.line)
        self._pipes.set_flag(key, operation.line)
        return None

    def _key(self, operation: Operation) -> Key:
        """The flag of a set or wait."""
        source, target = event_of(operation.call)
        identity = self._identity(operation)
        problem = self._pipes.flags.problem(source, target, identity)
        if problem:
            raise self._fail("bad-event", problem)
        return source, target, identity

    def _barrier(self, operation: Operation) -> Gate | None:
        name, line = operation.pipe, operation.line
        if name == "ALL":
            return lambda: self._pipes.drained(line)
        self._pipes.barrier(PIPES.index(name), line)
        return None

    def _cross(self, operation: Operation) -> Gate | None:
        identity, line = self._identity(operation), operation.line
        if not 0 <= identity < IDS:
            raise self._fail("bad-event", f"cross-core flag {identity}, there are 0 to {IDS - 1}")
        if operation.form.group == "cross_wait":
            return lambda: self._pipes.met(identity, line)
        mode, name = operation.call.template[0], named_pipe(operation.call)
        if mode not in MODES or name == "ALL":
            raise self._fail("bad-event", f"mode {mode} of pipe {name}; modes are 0, 1 and 2 of one pipe")
        self._pipes.cross_set(PIPES.index(name), MODES[mode], identity, line)
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

    def _given(self, slot: Slot, argument: Argument, raw: Raw) -> Given:
        """The value of an argument, with tensors and masks looked up."""
        if isinstance(argument, TensorRef) and isinstance(raw, int):
            return self._operand(argument.tensor, raw)
        if isinstance(argument, Struct) and isinstance(raw, tuple):
            return dict(zip(STRUCTS[argument.name], raw, strict=True))
        if slot.kind == "mask" and isinstance(raw, str):
            return self._masks[raw]
        return raw if isinstance(raw, int | float | str) else str(raw)
