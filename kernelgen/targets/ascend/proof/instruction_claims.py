"""What the instructions of a text claim, proved from the text itself for all turns, blocks and sizes; else it is rejected.

| claim | example |
| --- | --- |
| operands begin at a block of 32 bytes, at what the memory asks for in L1 and L0 | ``t[half * 4096 + 64]`` |
| tensors lie in their memory, at such a multiple | ``LocalTensor<float> t(TPosition::VECCALC, 65536, 8192)`` |
| fields of parameters fit their C++ type and what the machine allows | ``BinaryRepeatParams{1, 1, 0, 128, 128, 1}`` |
| counts, masks and repeats are 1 at least and no more than there are | ``Exp(t, t, n * 1024)`` |
| what a core's tensors give or take ends within them | ``t[64], 64, n, {.., 128, ..}`` |

Scalars are of 32 bits with a sign, and hold what they compute: a launch whose arrays would be larger is refused (:mod:`entry`).
Places in GM are shown for the nest (``bounds``). Parameters of products of open sizes, which hold rows of a matrix, are looked
at in a run only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, gcd
from types import MappingProxyType

from kernelgen.ascendc.expressions import Expression, Name, Number, wrap
from kernelgen.ascendc.instructions import Call, For, If, Kernel, Let, LocalTensor, Statement, Struct, TensorRef
from kernelgen.ascendc.intrinsics import STRUCTS, Form, form_of
from kernelgen.ascendc.reader import read_kernel
from kernelgen.ascendc.types import BLOCK, POSITIONS, REPEAT
from kernelgen.errors import ProofError
from kernelgen.machines.ascend.description import Machine
from kernelgen.targets.ascend.proof.scalar_bounds import Bounds, Factor, common_divisor

BITS = MappingProxyType({"uint8_t": 8, "uint16_t": 16, "uint32_t": 32, "int32_t": 31, "uint64_t": 63, "TEventID": 3})
"""C++ type -> the bits of its largest value."""
LIMITS = MappingProxyType(
    {
        "BinaryRepeatParams": {"dst_block": (1, 255)},
        "UnaryRepeatParams": {"dst_block": (1, 255), "src_block": (0, 255)},
        "CopyRepeatParams": {"dst_block": (1, 65535)},
        "BrcbRepeatParams": {"dst_block": (1, 255), "dst_repeat": (0, 255)},
        "DataCopyParams": {"count": (1, 4095), "length": (1, 65535)},
        "DataCopyExtParams": {"count": (1, 4095), "length": (1, 2097151)},
        "LoadData2DParams": {"repeats": (1, 255)},
        "Nd2NzParams": {"rows": (1, 16384), "columns": (1, 65535), "dst_row_stride": (1, 16384)},
        "MmadParams": {"m": (1, 4095), "n": (1, 4095), "k": (1, 4095)},
    }
)
"""Fields that the machine allows less of than their type: from, to."""
LARGEST = (1 << 31) - 1
"""What a scalar can be at most."""
OF_TILES = ("DataCopy", "Binary", "Unary", "Brcb", "Copy")
"""Beginnings of the names of parameters for tiles of vectors; others hold whole rows of a matrix."""
IN_ROW = frozenset({"unary", "binary", "scalar", "cast", "duplicate", "select", "copy"})
"""Groups of vector instructions that touch the same lanes of all operands."""


def check_claims(source: str, machine: Machine) -> Mapping[str, int]:
    """The kernel's name and how many claims were shown. Raises ProofError with the line of one that is not."""
    kernel = read_kernel(source)
    claims = _Claims(kernel, machine, source.splitlines())
    claims.block(kernel.body)
    return {kernel.name: claims.shown}


@dataclass
class _Claims:
    """Goes through a text and shows what each line claims, with what holds there."""

    kernel: Kernel
    machine: Machine
    lines: Sequence[str]
    shown: int = 0
    tensors: dict[str, LocalTensor] = field(default_factory=dict[str, LocalTensor])
    values: dict[str, Expression] = field(default_factory=dict[str, Expression])
    steps: dict[str, int] = field(default_factory=dict[str, int])
    line: int = 0

    def __post_init__(self) -> None:
        self.bounds = Bounds(self.machine.most_blocks)

    def block(self, body: Sequence[Statement]) -> None:
        """Statements in order."""
        for statement in body:
            self.line = statement.line
            match statement:
                case For(variable, start, stop, step, inner):
                    self.steps[variable] = gcd(self._divisor(start), self._divisor(step))
                    with self.bounds.inside():
                        self.bounds.count(variable, start, stop)
                        self.block(inner)
                case If(condition, then, otherwise):
                    with self.bounds.inside():
                        self.bounds.suppose(condition)
                        self.block(then)
                    with self.bounds.inside():
                        self.block(otherwise)
                case Let(name, _, value):
                    self.values[name] = value
                    self.bounds.bind(name, value)
                case LocalTensor():
                    self._tensor(statement)
                case Call():
                    self._call(statement)
                case _:
                    pass

    def _tensor(self, tensor: LocalTensor) -> None:
        """It lies in its memory, at a multiple of what that asks for."""
        self.tensors[tensor.name] = tensor
        place = POSITIONS[tensor.position]
        stop = tensor.address + tensor.size * tensor.dtype.itemsize
        self._between(f"the end of {tensor.name} in {place}", stop, 0, self.machine.memories[place])
        self._multiple(tensor.name, self._divisor(tensor.address), self.machine.alignments[place])

    def _call(self, call: Call) -> None:
        form = form_of(call)
        given = {slot.name: argument for slot, argument in zip(form.slots, call.arguments, strict=True)}
        operands = [(name, each) for name, each in given.items() if isinstance(each, TensorRef)]
        for name, operand in operands:
            if operand.tensor in self.tensors:
                self._aligned(form, name, operand)
        for slot, argument in zip(form.slots, call.arguments, strict=True):
            if isinstance(argument, Struct):
                self._fields(argument)
            elif isinstance(argument, Expression) and slot.name in ("count", "repeats", "mask"):
                most = self._most(form, slot.name, operands)
                if not (slot.name == "mask" and isinstance(argument, Name) and argument.name not in self.values):
                    self._between(slot.name, argument, 1, most)
        for operand, reach in self._reaches(form, given, operands):
            tensor = self.tensors[operand.tensor]
            self._within(tensor.name, operand.offset + reach, tensor.size)
            self._between(f"the first element of {tensor.name}", operand.offset, 0, None)

    def _most(self, form: Form, name: str, operands: Sequence[tuple[str, TensorRef]]) -> int | None:
        """The largest count, mask or number of repeats that there may be."""
        if name == "repeats":
            return 254 if form.group == "brcb" else 255
        return REPEAT // self._widest(operands) if name == "mask" else None

    def _widest(self, operands: Sequence[tuple[str, TensorRef]]) -> int:
        return max(self.tensors[each.tensor].dtype.itemsize for _, each in operands if each.tensor in self.tensors)

    def _aligned(self, form: Form, name: str, operand: TensorRef) -> None:
        """The first byte is a multiple of what the memory asks for; a reduction's result of its element."""
        tensor = self.tensors[operand.tensor]
        item = tensor.dtype.itemsize
        unit = self.machine.alignments[POSITIONS[tensor.position]]
        if name == "dst" and form.group in ("whole", "block"):
            unit = item * (8 if form.group == "block" else 1)
        self._multiple(
            f"{tensor.name}[..]", gcd(self._divisor(tensor.address), item * self._divisor(operand.offset)), unit
        )

    def _fields(self, struct: Struct) -> None:
        if self.kernel.tiling is not None and not struct.name.startswith(OF_TILES):
            return
        limits = LIMITS.get(struct.name, {})
        for (name, kind), value in zip(STRUCTS[struct.name].items(), struct.values, strict=True):
            if kind in BITS and isinstance(value, Expression):
                low, high = limits.get(name, (0, (1 << BITS[kind]) - 1))
                self._between(f"{name} of {struct.name}", value, low, high)

    def _reaches(
        self, form: Form, given: Mapping[str, object], operands: Sequence[tuple[str, TensorRef]]
    ) -> Iterator[tuple[TensorRef, Expression]]:
        """Operands in a core's memory with how many elements they reach over."""
        inner = [(name, each) for name, each in operands if each.tensor in self.tensors]
        count, repeats, mask = (given.get(name) for name in ("count", "repeats", "mask"))
        strides = given.get("strides")
        fields = dict(zip(STRUCTS[strides.name], strides.values, strict=True)) if isinstance(strides, Struct) else {}
        for name, operand in inner:
            item = self.tensors[operand.tensor].dtype.itemsize
            if form.group in IN_ROW and isinstance(count, Expression) and name != "chosen":
                yield operand, count
            elif form.group in IN_ROW and isinstance(repeats, Expression) and f"{name}_repeat" in fields:
                lanes = mask if isinstance(mask, Number) else Number(REPEAT // self._widest(operands))
                yield operand, _over(repeats, fields[f"{name}_repeat"], fields[f"{name}_block"], lanes, item)
            elif form.group == "whole" and isinstance(repeats, Expression):
                yield operand, self._reduced(name, given, repeats, item)
            elif form.group == "brcb" and isinstance(repeats, Expression):
                each = _over(repeats, fields["dst_repeat"], fields["dst_block"], Number(8 * BLOCK // item), item)
                yield operand, repeats * 8 if name == "src" else each
            elif form.group == "gather" and name != "src" and isinstance(count, Expression):
                yield operand, count
            elif form.group in ("pad_in", "pad_out") and isinstance(params := given["params"], Struct):
                yield operand, _bursts(form.group, params, item)

    def _reduced(self, name: str, given: Mapping[str, object], repeats: Expression, item: int) -> Expression:
        """The elements of a reduction: one result a repeat, of a repeat's lanes each."""
        steps = {key: value for key, value in given.items() if isinstance(value, Expression)}
        if name == "dst":
            return (repeats - 1) * steps["dst_repeat"] + 1
        return _over(repeats, steps["src_repeat"], steps["src_block"], steps["mask"], item)

    # what is shown

    def _divisor(self, expression: Expression) -> int:
        return common_divisor(expression, self.values, self.steps)

    def _multiple(self, what: str, divisor: int, unit: int) -> None:
        self.shown += 1
        if divisor % unit:
            raise self._fault(f"the address of {what} is a multiple of {divisor}, not shown to be one of {unit} bytes")

    def _between(self, what: str, value: Expression, low: int, high: int | None) -> None:
        self.shown += 1
        least, most = self.bounds.lower(value), self.bounds.upper(value) if high is not None else None
        if least is None or ceil(least) < low:
            raise self._fault(f"{what} is not shown to be {low} at least, but {_text(least)}")
        if high is not None and high < LARGEST and (most is None or floor(most) > high):
            raise self._fault(f"{what} is not shown to be {high} at most, but {_text(most)}")

    def _within(self, what: str, stop: Expression, size: Expression) -> None:
        self.shown += 1
        beyond = self.bounds.upper(stop - size)
        if beyond is None or floor(beyond) > 0:
            raise self._fault(
                f"what is touched of {what} is not shown to end in it: elements behind it, {_text(beyond)}"
            )

    def _fault(self, message: str) -> ProofError:
        text = self.lines[self.line - 1].strip() if 0 < self.line <= len(self.lines) else ""
        return ProofError("claims", message, f"line {self.line}: {text}")


def _over(repeats: Expression, repeat: object, block: object, lanes: Expression, item: int) -> Expression:
    """The elements from the first to the last one of so many repeats; strides count blocks."""
    each = BLOCK // item
    step, inner = (part if isinstance(part, Expression) else Number(0) for part in (repeat, block))
    if inner == Number(1):
        return (repeats - 1) * step * each + lanes
    return (repeats - 1) * step * each + ((lanes + (each - 1)) // each - 1) * inner * each + each


def _bursts(group: str, params: Struct, item: int) -> Expression:
    """The elements of a tile that a copy fills or takes: whole blocks a burst, gaps in blocks between two."""
    count, length, src_gap, dst_gap = (part if isinstance(part, Expression) else wrap(0) for part in params.values[:4])
    each = BLOCK // item
    blocks = (length + (BLOCK - 1)) // BLOCK
    gap = dst_gap if group == "pad_in" else src_gap
    last = blocks * each if group == "pad_in" else (length + (item - 1)) // item
    return (count - 1) * (blocks + gap) * each + last


def _text(bound: Factor | None) -> str:
    return "nothing is known of it" if bound is None else str(bound)
