"""Tensor-core instructions: ``mma.sync`` on 16 x 8 tiles and ``ldmatrix``.

Fragment layouts are those of the PTX ISA, "matrix fragments": with group = lane / 4, member = lane % 4 and p numbers in a
32-bit register, register r of A holds row group + 8 (r % 2), columns p member + 4 p (r / 2); register r of B rows
p member + 4 p r, column group; numbers 2 r and 2 r + 1 of C and D row group + 8 r, columns 2 member and one more.

The products are summed in float64 and rounded once. The device sums in another order with truncated intermediate bits,
so its results may differ in the last places; ISA and vendor leave that open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernelgen.simulators.ptx.instructions.access import (
    address_reader,
    check_in_flight,
    check_written,
    count,
    locate,
    touch,
)
from kernelgen.simulators.ptx.instructions.arithmetic import unknown
from kernelgen.simulators.ptx.instructions.operands import Action, Reader, Scope
from kernelgen.simulators.ptx.instructions.rounding import narrow, widen
from kernelgen.simulators.ptx.language.nodes import Instruction, Vector
from kernelgen.simulators.ptx.state.frame import Frame
from kernelgen.simulators.ptx.state.lanes import WARP
from kernelgen.simulators.ptx.state.race_detector import Shadow

LANES = np.arange(WARP)
GROUP, MEMBER = LANES // 4, LANES % 4
SHAPES = {
    "f16": ("m16n8k8", "m16n8k16"),
    "bf16": ("m16n8k8", "m16n8k16"),
    "tf32": ("m16n8k4", "m16n8k8"),
    "s8": ("m16n8k16", "m16n8k32"),
    "u8": ("m16n8k16", "m16n8k32"),
}
PACKED = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4}
ROW_BYTES = 16  # of an 8 x 8 matrix of 16-bit numbers


def multiply(instruction: Instruction, scope: Scope) -> Action:
    """``mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {a}, {b}, {c}``.

    Raises PtxError for other shapes and types.
    """
    parts = instruction.opcode
    result, left, right, addend = parts[-4:]
    shape = next((part for part in parts if part.startswith("m16n8k")), "")
    if shape not in SHAPES.get(left, ()) or right not in SHAPES or parts[4:6] != ("row", "col") or result != addend:
        raise unknown(instruction)
    depth = int(shape.removeprefix("m16n8k"))
    vectors = [operand for operand in instruction.operands if isinstance(operand, Vector)]
    targets, a, b, c = (vector.parts for vector in vectors)
    readers = [[scope.reader(part, "b32", instruction) for part in operand] for operand in (a, b, c)]
    writers = [scope.writer(part, "b32", instruction) for part in targets]

    def act(frame: Frame) -> None:
        if not _whole_warps(frame, instruction):
            return
        tile_a = _tile(_fragments(frame, readers[0]), left, _places_of_a(len(a), PACKED[left]), (16, depth))
        tile_b = _tile(_fragments(frame, readers[1]), right, _places_of_b(len(b), PACKED[right]), (depth, 8))
        start = _tile(_fragments(frame, readers[2]), addend, _places_of_c(len(c)), (16, 8))
        total = tile_a @ tile_b + start
        for write, bits in zip(writers, _registers(total, result, len(writers)), strict=True):
            write(frame, bits)

    return act


def _whole_warps(frame: Frame, instruction: Instruction) -> bool:
    partial = frame.pick(frame.state.lanes.warp_size) != WARP
    if frame.count % WARP == 0 and not partial.any():
        return True
    wrong = partial if partial.any() else np.ones(frame.count, np.bool_)
    frame.complain("bad-shuffle", instruction, wrong, "a matrix instruction needs all 32 lanes of the warp")
    return False


def _fragments(frame: Frame, readers: Sequence[Reader]) -> np.ndarray:
    """Registers as [warp, lane, register]."""
    columns = [frame.spread(read(frame)).reshape(-1, WARP) for read in readers]
    return np.stack(columns, axis=-1)


def _numbers(bits: np.ndarray, kind: str) -> np.ndarray:
    """The numbers in 32-bit registers as float64, with an axis more; s32 sums of 8-bit products stay exact there."""
    match kind:
        case "f32":
            return bits.view(np.float32).astype(np.float64)[..., None]
        case "s32":
            return bits.view(np.int32).astype(np.float64)[..., None]
        case "tf32":
            return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)[..., None]
        case "s8" | "u8":
            dtype = np.int8 if kind == "s8" else np.uint8
            return np.ascontiguousarray(bits)[..., None].view(dtype).astype(np.float64)
        case _:
            halves = np.ascontiguousarray(bits)[..., None].view(np.uint16)
            return widen(halves, kind)


def _tile(bits: np.ndarray, kind: str, places: tuple[np.ndarray, np.ndarray], shape: tuple[int, int]) -> np.ndarray:
    """Fragments as matrices [warp, row, column]."""
    numbers = _numbers(bits, kind).reshape(len(bits), WARP, -1)
    tile = np.zeros((len(bits), *shape))
    tile[:, places[0], places[1]] = numbers
    return tile


def _places_of_a(registers: int, packed: int) -> tuple[np.ndarray, np.ndarray]:
    number = np.arange(registers * packed)
    register, inner = number // packed, number % packed
    rows = GROUP[:, None] + 8 * (register % 2)
    columns = packed * MEMBER[:, None] + inner + 4 * packed * (register // 2)
    return rows, columns


def _places_of_b(registers: int, packed: int) -> tuple[np.ndarray, np.ndarray]:
    number = np.arange(registers * packed)
    rows = packed * MEMBER[:, None] + number % packed + 4 * packed * (number // packed)
    return rows, np.broadcast_to(GROUP[:, None], rows.shape)


def _places_of_c(registers: int) -> tuple[np.ndarray, np.ndarray]:
    """4 numbers, in 4 registers, or in 2 as pairs of f16."""
    number = np.arange(4)
    rows = GROUP[:, None] + 8 * (number // 2)
    return rows, 2 * MEMBER[:, None] + number % 2


def _registers(total: np.ndarray, kind: str, registers: int) -> list[np.ndarray]:
    """Result matrices as registers over lanes."""
    rows, columns = _places_of_c(registers)
    numbers = total[:, rows, columns].reshape(-1, 4)
    if kind == "s32":
        wrapped = numbers.astype(np.int64).astype(np.uint32)
        return [wrapped[:, number] for number in range(4)]
    if kind == "f32":
        return [narrow(numbers[:, number], "f32").view(np.uint32) for number in range(4)]
    halves = narrow(numbers, kind).astype(np.uint32)
    return [halves[:, 2 * number] | halves[:, 2 * number + 1] << np.uint32(16) for number in range(2)]


def load_matrices(instruction: Instruction, scope: Scope) -> Action:
    """``ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r}, [address]``: lane 8 m + i has the address of row i of matrix m.

    Raises PtxError for other forms.
    """
    parts = instruction.opcode
    if "m8n8" not in parts or parts[-1] != "b16" or not isinstance(instruction.operands[0], Vector):
        raise unknown(instruction)
    targets = instruction.operands[0].parts
    matrices = len(targets)
    writers = [scope.writer(part, "b32", instruction) for part in targets]
    addresses = address_reader(instruction.operands[1], "shared", instruction, scope)
    transposed = "trans" in parts

    def act(frame: Frame) -> None:
        if not _whole_warps(frame, instruction):
            return
        given = frame.pick(frame.state.lanes.lane) < 8 * matrices
        giving = frame.narrow(given)
        assert giving is not None
        rows = _rows(giving, addresses, instruction).reshape(-1, matrices, 8, 8)
        if transposed:
            rows = rows.swapaxes(2, 3)
        for matrix, write in enumerate(writers):
            pairs = rows[:, matrix, GROUP[:, None], 2 * MEMBER[:, None] + np.arange(2)].astype(np.uint32)
            write(frame, (pairs[..., 0] | pairs[..., 1] << np.uint32(16)).reshape(-1))

    return act


def _rows(giving: Frame, addresses: Reader, instruction: Instruction) -> np.ndarray:
    """The row of eight numbers that each lane points at."""
    rows = np.empty((giving.count, 8), np.uint16)
    for access in locate(giving, addresses(giving), ROW_BYTES, instruction):
        count(giving, access, ROW_BYTES, "load")
        check_in_flight(giving, access, ROW_BYTES, instruction)
        check_written(giving, access, ROW_BYTES, instruction)
        touch(giving, access, ROW_BYTES, instruction, Shadow.read)
        view, index = access.region.view(np.dtype(np.uint16)), access.storage // 2
        rows[slice(None) if access.places is None else access.places] = view[index[:, None] + np.arange(8)]
    return rows


BUILDERS: Mapping[str, Callable[[Instruction, Scope], Action]] = {"mma": multiply, "ldmatrix": load_matrices}
