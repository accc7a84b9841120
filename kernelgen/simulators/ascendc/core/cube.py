"""The cube side of 2201: LoadData into L0A (ZZ) and L0B (ZN), Mmad into L0C (NZ), Fixpipe to GM.

LoadData takes fractals one after the other, or a window of an image. InitConstValue fills L1, L0A and L0B, mostly with
zeros that a matrix lacks. Fractals are 16 rows of one block (C0 = 16 halves). NZ: column groups, then all rows. ZZ: rows of
fractals, each row major. ZN: rows of fractals, each column major, so that a row-major B is transposed fractal by fractal on
its way to L0B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.ascendc.types import BLOCK, FRACTAL, GM, L0A, L0B, L0C, L1, TYPE_NAMES
from kernelgen.simulators.ascendc.state.byte_regions import region, typed
from kernelgen.simulators.ascendc.state.instruction import Instruction, Operand, Work
from kernelgen.simulators.ascendc.time.instruction_cost import load_cycles, mmad_cycles
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType

SIDE = 16
QUANTISE: Mapping[str, tuple[DType, DType]] = {
    "NoQuant": (FLOAT32, FLOAT32),
    "F322F16": (FLOAT32, FLOAT16),
    "F322BF16": (FLOAT32, BFLOAT16),
}
MOST_SIDE = 4095


def plan_load_data(instruction: Instruction) -> Work:
    """Fractals from L1 to L0A or L0B, each transposed where asked; strides count fractals of 512 bytes."""
    dst, src = instruction.operand("dst"), instruction.operand("src")
    instruction.lies_in(src, L1)
    instruction.lies_in(dst, L0A, L0B)
    instruction.demand(dst.dtype is src.dtype, "bad-dtype", f"{src.name} and {dst.name} differ in type")
    instruction.takes("LoadData", dst.dtype)
    for operand in (dst, src):
        instruction.aligned(operand)
    start, repeats, stride, gap, transpose = instruction.fields(
        "params", "start", "repeats", "src_stride", "dst_gap", "transpose"
    )
    instruction.within("the number of repeats", repeats, 1, 255)
    for name, value in (("start", start), ("source stride", stride), ("target gap", gap)):
        instruction.within(f"the {name}", value, 0, 65535)
    first = src.start + start * FRACTAL
    read, written = (repeats, stride * FRACTAL), (repeats, (gap + 1) * FRACTAL)

    def run() -> None:
        values = typed(src.memory.data, src.dtype.numpy, first, (read, (SIDE, BLOCK)), SIDE)
        target = typed(dst.memory.data, dst.dtype.numpy, dst.start, (written, (SIDE, BLOCK)), SIDE)
        target[...] = values.transpose(0, 2, 1) if transpose else values
        known = typed(src.memory.written, np.dtype(np.bool_), first, (read, (SIDE, BLOCK)), BLOCK)
        marks = typed(dst.memory.written, np.dtype(np.bool_), dst.start, (written, (SIDE, BLOCK)), BLOCK)
        marks[...] = _transposed(known) if transpose else known

    touches = (
        instruction.touch(src, region(first, (read,), FRACTAL), whole=False),
        instruction.touch(dst, region(dst.start, (written,), FRACTAL), write=True, whole=False),
    )
    return Work(touches, run, load_cycles(instruction.machine, repeats * FRACTAL, dst.place == L0A))


def plan_load_window(instruction: Instruction) -> Work:
    """A window of a matrix in NZ, an image of ``height x width`` points, from L1 to L0A as ZZ or to L0B as ZN.

    Points are rows and channels columns; filters of one point leave them as they are. To L0A the window may be transposed.
    """
    dst, src = instruction.operand("dst"), instruction.operand("src")
    instruction.lies_in(src, L1)
    instruction.lies_in(dst, L0A, L0B)
    instruction.demand(dst.dtype is src.dtype, "bad-dtype", f"{src.name} and {dst.name} differ in type")
    instruction.takes("LoadData", dst.dtype)
    for operand in (dst, src):
        instruction.aligned(operand)
    lines, first, columns, rows = _window(instruction)
    across, down = columns // SIDE, rows // SIDE
    read = ((across, lines * BLOCK), (down, FRACTAL), (SIDE, BLOCK))
    order = (
        (1, 0, 3, 2)
        if dst.place == L0B
        else (0, 1, 3, 2)
        if instruction.fields("params", "transpose")[0]
        else (1, 0, 2, 3)
    )
    outer, inner = ((across, down), (down, across))[order[0]]
    written = ((outer, inner * FRACTAL), (inner, FRACTAL), (SIDE, BLOCK))

    def run() -> None:
        values = typed(src.memory.data, src.dtype.numpy, src.start + first, read, SIDE)
        typed(dst.memory.data, dst.dtype.numpy, dst.start, written, SIDE)[...] = values.transpose(order)
        known = typed(src.memory.written, np.dtype(np.bool_), src.start + first, read, BLOCK)[..., :: src.itemsize]
        marks = typed(dst.memory.written, np.dtype(np.bool_), dst.start, written, BLOCK)
        marks[...] = np.repeat(known.transpose(order), dst.itemsize, axis=-1)

    touches = (
        instruction.touch(src, region(src.start + first, read[:1], down * FRACTAL), whole=False),
        instruction.row(dst, rows * columns, write=True, whole=False),
    )
    return Work(touches, run, load_cycles(instruction.machine, rows * columns * dst.itemsize, dst.place == L0A))


def _window(instruction: Instruction) -> tuple[int, int, int, int]:
    """Points of the image, the window's first byte, its columns and its rows; all must be whole fractals of the image."""
    names = ("height", "width", "channels", "columns", "rows", "first_column", "first_row")
    height, width, channels, columns, rows, left, top = instruction.fields("params", *names)
    for name, value in (("height", height), ("width", width)):
        instruction.within(f"the {name}", value, 1, 32767)
    for name, start, size, whole in (("columns", left, columns, channels), ("rows", top, rows, height * width)):
        fits = size > 0 and start >= 0 and start + size <= whole and not (start % SIDE or size % SIDE)
        instruction.demand(
            fits, "bad-parameter", f"{size} {name} from {start} on, of {whole}; whole fractals are taken"
        )
    instruction.demand(channels % SIDE == 0, "bad-parameter", f"{channels} channels, no multiple of {SIDE}")
    plain = ("stride_w", "stride_h", "filter_w", "filter_h", "dilation_w", "dilation_h")
    single = instruction.fields("params", *plain) == (1,) * len(plain) and instruction.fields(
        "params", "pads", "small_k"
    ) == (0, 0)
    instruction.demand(single, "not-modelled", "a filter of more than a point; a window of a matrix is")
    transposed = instruction.fields("params", "transpose")[0] and instruction.operand("dst").place == L0B
    instruction.demand(not transposed, "not-modelled", "a transposed window in L0B, where fractals always are")
    return height * width, (left // SIDE * height * width + top) * BLOCK, columns, rows


def plan_init_const(instruction: Instruction) -> Work:
    """A value in blocks of L1 (32 bytes) or fractals of L0A and L0B (512 bytes), with gaps of so many between repeats."""
    dst = instruction.operand("dst")
    instruction.lies_in(dst, L1, L0A, L0B)
    instruction.takes("InitConstValue", dst.dtype)
    instruction.aligned(dst)
    repeats, length, gap = instruction.fields("params", "repeats", "length", "gap")
    for name, value, low in (("number of repeats", repeats, 1), ("length", length, 1), ("gap", gap, 0)):
        instruction.within(f"the {name}", value, low, 32767)
    unit = BLOCK if dst.place == L1 else FRACTAL
    size, steps = length * unit, ((repeats, (length + gap) * unit),)
    value = instruction.struct("params")["value"]

    def run() -> None:
        typed(dst.memory.data, dst.dtype.numpy, dst.start, steps, size // dst.itemsize)[...] = value

    touches = (instruction.touch(dst, region(dst.start, steps, size), write=True),)
    rates = instruction.machine.rates
    return Work(touches, run, rates.vector_start + repeats * size / rates.local_copy)


def plan_mmad(instruction: Instruction) -> Work:
    """dst (m x n, float) = or += first (m x k) times second (k x n); products and sums in float32."""
    dst, first, second = (instruction.operand(name) for name in ("dst", "first", "second"))
    for operand, place in ((dst, L0C), (first, L0A), (second, L0B)):
        instruction.lies_in(operand, place)
    instruction.aligned(dst, 1024)
    instruction.aligned(first)
    instruction.aligned(second)
    instruction.demand(first.dtype is second.dtype, "bad-dtype", f"{first.name} and {second.name} differ in type")
    instruction.takes("Mmad", first.dtype)
    instruction.demand(dst.dtype is FLOAT32, "bad-dtype", f"sums are float, not {dst.dtype.name}")
    m, n, k, unit, bias, initial = instruction.fields("params", "m", "n", "k", "unit_flag", "from_bias", "initial")
    for name, value in (("m", m), ("n", n), ("k", k)):
        instruction.within(name, value, 1, MOST_SIDE)
    instruction.demand(m != 1, "not-modelled", "m is 1, where the cube changes its layout; pad to 16 rows")
    instruction.demand(k % SIDE == 0, "not-modelled", f"k is {k}, no multiple of {SIDE}; pad it with zeros")
    instruction.demand(unit == 0 and bias == 0, "not-modelled", "unit flag or bias table; the plain form is")
    rows, columns, depth = -(-m // SIDE), -(-n // SIDE), k // SIDE
    sums = ((columns, rows * SIDE * SIDE * 4), (rows * SIDE, SIDE * 4))

    def run() -> None:
        left = _rows_of(_fractals(first, rows, depth))
        right = _columns_of(_fractals(second, depth, columns))
        known = (
            _rows_of(_marks(first, rows, depth))[:m].all() and _columns_of(_marks(second, depth, columns))[:, :n].all()
        )
        instruction.demand(bool(known), "uninitialised", f"{first.name} or {second.name} within m, n and k")
        target = typed(dst.memory.data, np.dtype(np.float32), dst.start, sums, SIDE)
        with np.errstate(all="ignore"):
            product = left.astype(np.float32) @ right.astype(np.float32)
            split = product.reshape(rows * SIDE, columns, SIDE).transpose(1, 0, 2)
            target[...] = split if initial else target + split

    size = rows * columns * SIDE * SIDE
    touches = [
        instruction.row(first, rows * depth * SIDE * SIDE, whole=False),
        instruction.row(second, depth * columns * SIDE * SIDE, whole=False),
        instruction.row(dst, size, write=True),
    ]
    if not initial:
        touches.insert(0, instruction.row(dst, size))
    return Work(tuple(touches), run, mmad_cycles(instruction.machine, m, n, k, first.itemsize))


def plan_fixpipe(instruction: Instruction) -> Work:
    """Sums from L0C to a row-major matrix in GM, rounded to its type, with ReLU where asked."""
    machine = instruction.machine
    instruction.demand(machine.has_fixpipe, "not-modelled", f"{machine.name} has no fixpipe")
    dst, src = instruction.operand("dst"), instruction.operand("src")
    instruction.lies_in(dst, GM)
    instruction.lies_in(src, L0C)
    instruction.aligned(src)
    _check_types(instruction, dst, src)
    names = ("columns", "rows", "src_stride", "dst_stride", "relu", "matrices", "unit_flag")
    n, m, src_stride, dst_stride, relu, matrices, unit = instruction.fields("params", *names)
    instruction.within("the rows", m, 1, 8192)
    instruction.within("the columns", n, 1, MOST_SIDE)
    instruction.within("the source stride", src_stride, m, 65535)
    instruction.within("the target stride", dst_stride, n, (1 << 32) - 1)
    instruction.demand(matrices == 1, "not-modelled", f"{matrices} matrices in one call; one is")
    instruction.demand(unit == 0, "not-modelled", "a unit flag; the plain form is")
    columns = -(-n // SIDE)
    steps = ((columns, src_stride * SIDE * 4), (m, SIDE * 4))

    def run() -> None:
        values = typed(src.memory.data, np.dtype(np.float32), src.start, steps, SIDE)
        matrix = values.transpose(1, 0, 2).reshape(m, columns * SIDE)[:, :n]
        with np.errstate(all="ignore"):
            rounded = (np.maximum(matrix, 0) if relu else matrix).astype(dst.dtype.numpy)
        typed(dst.memory.data, dst.dtype.numpy, dst.start, ((m, dst_stride * dst.itemsize),), n)[...] = rounded

    written = region(dst.start, ((m, dst_stride * dst.itemsize),), n * dst.itemsize)
    touches = (instruction.touch(src, region(src.start, steps, SIDE * 4)), instruction.touch(dst, written, write=True))
    size = m * n * dst.itemsize
    slowest = min(instruction.bandwidth, machine.rates.fixpipe)
    return Work(touches, run, machine.rates.copy_start + size / slowest, size)


def _check_types(instruction: Instruction, dst: Operand, src: Operand) -> None:
    """The template's types are those of the tensors, and the quantisation leads from one to the other."""
    target, source, layout = instruction.call.template
    named = (TYPE_NAMES.get(target), TYPE_NAMES.get(source))
    instruction.demand(named == (dst.dtype, src.dtype), "bad-dtype", f"the template says {target}, {source}")
    instruction.demand(layout == "CFG_ROW_MAJOR", "not-modelled", f"layout {layout}; CFG_ROW_MAJOR is")
    quantise = str(instruction.struct("params")["quantise"]).rpartition("::")[2]
    pair = QUANTISE.get(quantise)
    instruction.demand(
        pair == (src.dtype, dst.dtype), "bad-dtype", f"{quantise} does not lead from {source} to {target}"
    )


def _fractals(operand: Operand, rows: int, columns: int) -> np.ndarray:
    """(rows, columns, 16, 16): fractals in rows."""
    values = typed(operand.memory.data, operand.dtype.numpy, operand.start, (), rows * columns * SIDE * SIDE)
    return values.reshape(rows, columns, SIDE, SIDE)


def _marks(operand: Operand, rows: int, columns: int) -> np.ndarray:
    """Which elements of the fractals were written."""
    length = rows * columns * FRACTAL
    marks = operand.memory.written[operand.start : operand.start + length]
    return marks[:: operand.itemsize].reshape(rows, columns, SIDE, SIDE)


def _rows_of(fractals: np.ndarray) -> np.ndarray:
    """ZZ fractals as a matrix."""
    rows, columns = fractals.shape[:2]
    return fractals.transpose(0, 2, 1, 3).reshape(rows * SIDE, columns * SIDE)


def _columns_of(fractals: np.ndarray) -> np.ndarray:
    """ZN fractals as a matrix."""
    rows, columns = fractals.shape[:2]
    return fractals.transpose(0, 3, 1, 2).reshape(rows * SIDE, columns * SIDE)


def _transposed(marks: np.ndarray) -> np.ndarray:
    """Marks of bytes, (fractals, 16, 32), transposed as their elements of two bytes."""
    return np.repeat(marks[:, :, ::2].transpose(0, 2, 1), 2, axis=2)


PLANS: Mapping[str, Callable[[Instruction], Work]] = {
    "load_data": plan_load_data,
    "load_window": plan_load_window,
    "init_const": plan_init_const,
    "mmad": plan_mmad,
    "fixpipe": plan_fixpipe,
}
"""Group of a form -> how its calls are planned."""
