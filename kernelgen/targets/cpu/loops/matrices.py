"""Sums of products of bytes in registers of matrices, as their plan says: for each block of rows and columns

    configure         rows and bytes of each register
    sums              zero, or what lies in memory
    for each step     registers of rows, of words, and the products of all pairs of them
    store, release

What no whole step covers is left to the loops of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kernelgen.nest.index import add, subtract
from kernelgen.nest.nodes import Accumulate, Block, For, Load, Num
from kernelgen.nest.walk import nested
from kernelgen.targets.cpu.loops.matrix_plan import BYTES, SIDE, MatrixPlan, MatrixSum
from kernelgen.targets.cpu.statements import access
from kernelgen.targets.cpu.text.counting import counted_loop, offset
from kernelgen.targets.cpu.text.indices import index_value, is_nonnegative
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value

CONFIGURATION_BYTES = 64
"""Of what says how many rows, and bytes of each, a register has."""


def matrix_loop(frame: Frame, loop: For, plan: MatrixPlan, block: Callable[[Frame, Block], None]) -> None:
    """Prints a ``loop`` over rows by its ``plan`` into ``frame``; ``block`` prints what each row runs for itself."""
    lower = index_value(frame, loop.lower)

    def alone(part: Block) -> None:
        def row(number: Value) -> None:
            block(frame.with_variable(loop.var, number, is_nonnegative(frame, loop.lower)), part)

        counted_loop(frame.function, lower, offset(lower, plan.height), 1, row, loop.var, plan.height)

    for part in plan.parts:
        if isinstance(part, MatrixSum):
            _Registers(frame, loop, lower, plan.height, part).run()
            if (rest := _rest(part)) is not None:
                alone(rest)
        else:
            alone(Block((part,)))


def _rest(part: MatrixSum) -> Block | None:
    """The loops over the words that no whole step takes; None where there are none."""
    done = part.words * part.count
    begin = add(part.terms.lower, Num(done))
    if begin == part.terms.upper:
        return None
    return nested((*part.around, replace(part.terms, lower=begin)), part.terms.body)


@dataclass(frozen=True)
class _Registers:
    """One block: sums in the first registers, row by row, then rows of bytes, then words of columns."""

    frame: Frame
    rows: For
    lower: Value
    height: int
    part: MatrixSum

    def run(self) -> None:
        self._configure()
        if not self.part.begins:
            self._each_sum("tileloadd64")
        self._loops(self.frame, self.part.around)
        self._each_sum("tilestored64")
        self._call("tilerelease")

    @property
    def _heights(self) -> list[int]:
        return _pieces(self.height)

    @property
    def _widths(self) -> list[int]:
        length = subtract(self.part.vector.upper, self.part.vector.lower)
        assert isinstance(length, Num), "the plan says so"
        return _pieces(length.value)

    def _sum(self, i: int, j: int) -> int:
        return i * len(self._widths) + j

    def _left(self, i: int) -> int:
        return len(self._heights) * len(self._widths) + i

    def _right(self, j: int) -> int:
        return self._left(len(self._heights)) + j

    def _configure(self) -> None:
        """Registers that are configured are zero."""
        shapes = dict[int, tuple[int, int]]()
        for j, width in enumerate(self._widths):
            shapes[self._right(j)] = self.part.words, BYTES * width
            for i, height in enumerate(self._heights):
                shapes[self._sum(i, j)] = height, BYTES * width
                shapes[self._left(i)] = height, BYTES * self.part.words
        content = bytearray(CONFIGURATION_BYTES)
        content[0] = 1
        for register, (height, width) in shapes.items():
            content[16 + 2 * register : 18 + 2 * register] = width.to_bytes(2, "little")
            content[48 + register] = height
        words = [int.from_bytes(content[at : at + 8], "little") for at in range(0, CONFIGURATION_BYTES, 8)]
        function = self.frame.function
        slot = function.slot("[8 x i64]", "matrices")
        text = ", ".join(f"i64 {word}" for word in words)
        function.perform(f"store <8 x i64> <{text}>, ptr {slot}, align 64")
        self._call("ldtilecfg", f"ptr {slot}")

    def _loops(self, frame: Frame, around: Sequence[For]) -> None:
        if not around:
            self._steps(frame)
            return
        loop, *inner = around

        def body(counter: Value) -> None:
            self._loops(frame.with_variable(loop.var, counter, is_nonnegative(frame, loop.lower)), inner)

        lower, upper = index_value(frame, loop.lower), index_value(frame, loop.upper)
        counted_loop(frame.function, lower, upper, loop.step, body, loop.var)

    def _steps(self, frame: Frame) -> None:
        terms, part = self.part.terms, self.part
        lower = index_value(frame, terms.lower)

        def step(word: Value) -> None:
            here = frame.with_variable(terms.var, word, is_nonnegative(frame, terms.lower))
            self._ask(frame, word)
            for j in range(len(self._widths)):
                self._move("tileloadd64", self._right(j), here, part.word, part.steps[1], 0, j)
            for i in range(len(self._heights)):
                self._move("tileloadd64", self._left(i), here, part.first, part.steps[0], i, 0)
                for j in range(len(self._widths)):
                    numbers = (self._sum(i, j), self._left(i), self._right(j))
                    self._call("tdpbusd", *(f"i8 {number}" for number in numbers))

        counted_loop(
            frame.function, lower, offset(lower, part.words * part.count), part.words, step, terms.var, part.count
        )

    def _ask(self, frame: Frame, word: Value) -> None:
        """The hints of all words of a step, for the first row."""
        frame = frame.with_variable(self.rows.var, self.lower, is_nonnegative(frame, self.rows.lower))
        terms = self.part.terms
        for number in range(self.part.words):
            each = frame.with_variable(terms.var, offset(word, number), is_nonnegative(frame, terms.lower))
            for hint in self.part.hints:
                access.prefetch(each, hint.buffer, hint.place, hint.level)

    def _each_sum(self, name: str) -> None:
        for i in range(len(self._heights)):
            for j in range(len(self._widths)):
                self._move(name, self._sum(i, j), self.frame, self.part.total, self.part.steps[2], i, j)

    def _move(self, name: str, register: int, frame: Frame, of: Load | Accumulate, step: int, i: int, j: int) -> None:
        """Between a register and the memory of the elements from row ``16 i`` and column ``16 j`` on."""
        vector = self.part.vector
        row = offset(self.lower, SIDE * i)
        column = offset(index_value(frame, vector.lower), SIDE * j)
        frame = frame.with_variable(self.rows.var, row, is_nonnegative(frame, self.rows.lower))
        frame = frame.with_variable(vector.var, column, is_nonnegative(frame, vector.lower))
        address = access.pointer(frame, frame.memory[of.buffer.name], access.flat_index(of.buffer, of.index))
        self._call(name, f"i8 {register}", f"ptr {address}", f"i64 {step}")

    def _call(self, name: str, *operands: str) -> None:
        kinds = ", ".join(operand.split()[0] for operand in operands)
        callee = self.frame.function.module.declare(f"llvm.x86.{name}", "void", kinds)
        self.frame.function.perform(f"call void {callee}({', '.join(operands)})")


def _pieces(length: int) -> list[int]:
    return [min(SIDE, length - begin) for begin in range(0, length, SIDE)]
