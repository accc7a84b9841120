"""What a promotion knows where a statement stands, and what it has made so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelgen.ascendc.builder import Tensor
from kernelgen.ascendc.expressions import BLOCK_COUNT, Expression
from kernelgen.ascendc.instructions import GlobalTensor
from kernelgen.errors import UnsupportedError
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.index import from_dim
from kernelgen.nest.nodes import Accumulate, Buffer, Call, Expr, Index, IndexValue, Literal
from kernelgen.nest.ranges import Range
from kernelgen.targets.ascend.lower.program.lane_counters import Counting
from kernelgen.targets.ascend.lower.program.names import Value
from kernelgen.targets.ascend.lower.program.writer import Writer
from kernelgen.tensor.dims import Sym, product
from kernelgen.tensor.dtypes import BOOL, FLOAT16, FLOAT32, INT32, INT64, DType

LOCAL_TYPES = (FLOAT16, FLOAT32, INT32)
"""Data types of locals that stay in the unified buffer, and of reductions in rows."""
ALIGNED = 16
"""Elements that whole blocks of every type of a local are."""
MOST_STRIDED = 1024
"""Lanes of a turn whose elements lie apart: each takes a block."""


class Unaligned(Exception):
    """A local that cannot stay in the unified buffer."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True)
class Local:
    """A local in the unified buffer. ``row`` is the loop that has one for each of its iterations, "" for none."""

    tensor: Tensor
    row: str = ""


@dataclass
class Scope:
    """What is known where a statement stands: values of the nest's bindings, loop variables, their ranges and multiples.

    ``moving`` are the variables that change in a turn of rows: what they decide is not there before it.
    """

    bound: dict[str, Value] = field(default_factory=dict[str, Value])
    variables: dict[str, Expression] = field(default_factory=dict[str, Expression])
    ranges: dict[str, Range] = field(default_factory=dict[str, Range])
    multiples: dict[str, int] = field(default_factory=dict[str, int])
    moving: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()

    def copy(self) -> Scope:
        """A scope for what is inside."""
        parts = (dict(self.bound), dict(self.variables), dict(self.ranges), dict(self.multiples))
        return Scope(*parts, self.moving, self.written)


@dataclass
class Context:
    """What the parts of a promotion share. ``turn`` is the most lanes of a turn, ``outside`` the locals that go to GM.

    ``cores`` is the number of vector cores that run the kernel, ``handshake`` the flag for a tile of a product.
    """

    machine: Machine
    turn: int
    outside: frozenset[str]
    writer: Writer = field(default_factory=Writer)
    tensors: dict[str, GlobalTensor] = field(default_factory=dict[str, GlobalTensor])
    locals: dict[str, Local] = field(default_factory=dict[str, Local])
    counted: Counting | None = None
    cores: Expression = BLOCK_COUNT
    handshake: int | None = None

    @property
    def counting(self) -> Counting:
        """Lanes that count, made once where the kernel starts."""
        if self.counted is None:
            self.counted = Counting(self.writer, min(self.turn, MOST_STRIDED))
        return self.counted


def accumulated_in(part: Accumulate) -> DType | None:
    """The data type in whose lanes a loop's reduction is combined, with the same result; None where there is none.

    Sums and products of narrow integers are those of wide ones, modulo their width; a bool is 0 or 1; the least index of
    64 bits is that of 32.
    """
    dtype = part.buffer.dtype
    if dtype in LOCAL_TYPES:
        return dtype
    if dtype == BOOL:
        return FLOAT16 if part.function in ("maximum", "minimum", "logical_or", "logical_and") else None
    if dtype == INT64 and part.function in ("maximum", "minimum"):
        return INT32 if _is_word(part.value) else None
    return INT32 if dtype.is_integer and dtype.itemsize < INT32.itemsize else None


def _is_word(value: Expr) -> bool:
    """Whether an integer of 64 bits is certainly one of 32: an index, a number, or one of two such."""
    match value:
        case IndexValue():
            return True
        case Literal(number):
            return -(1 << 31) <= number < 1 << 31
        case Call("select", (_, first, second)):
            return _is_word(first) and _is_word(second)
        case _:
            return False


def linear_size(buffer: Buffer) -> Index:
    """The elements of a buffer."""
    return from_dim(product(buffer.shape))


def local_size(buffer: Buffer) -> int:
    """The elements of a local. Raises UnsupportedError for a size that is not known."""
    size = product(buffer.shape)
    if isinstance(size, Sym):
        raise UnsupportedError("too-large", f"local {buffer.name} has no constant size")
    return size


def parameter_of(buffer: Buffer) -> str:
    """The kernel's parameter for a buffer."""
    return f"{buffer.name}_p"
