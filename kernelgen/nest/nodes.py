"""Loop nests: the language between the polyhedral side and every target. Pure data that never changes, no isl.

A Nest is a function over buffers. Index expressions are exact integers; scalar expressions are typed. Each knows its ``loads``,
those in indices of loads too, from left to right: nearly every pass asks, so that an operation keeps them. Fields of loops and
of what they hold are final for the type checker alone: an object of a frozen class takes four times as long to make.

    nest softmax(x: f32[64, 128]) -> (y: f32[64, 128]) {
      parallel for i in 0..64 {
        alloc m: f32[]
        m[] = -inf
        vector for j in 0..128 { m[] max= x[i, j] }
        ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from kernelgen.nest.indices import Index as Index
from kernelgen.nest.indices import IndexBinary as IndexBinary
from kernelgen.nest.indices import IndexOp as IndexOp
from kernelgen.nest.indices import Num as Num
from kernelgen.nest.indices import ValueIndex as ValueIndex
from kernelgen.nest.indices import Var as Var
from kernelgen.nest.indices import values
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.dims import Shape
from kernelgen.tensor.dtypes import DType


@dataclass(unsafe_hash=True)
class Literal:
    """A typed constant."""

    value: Final[bool | int | float]
    dtype: Final[DType]
    loads: ClassVar[tuple[Load, ...]] = ()


@dataclass(unsafe_hash=True)
class Load:
    """The element of a buffer at an index."""

    buffer: Final[Buffer]
    index: Final[tuple[Index, ...]]

    @property
    def dtype(self) -> DType:
        """The buffer's element type."""
        return self.buffer.dtype

    @property
    def loads(self) -> tuple[Load, ...]:
        """Itself, and those that decide where it goes."""
        return (self, *loads_in(self.index))


@dataclass(unsafe_hash=True)
class Ref:
    """The value bound by a :class:`Let` of that name."""

    name: Final[str]
    dtype: Final[DType]
    loads: ClassVar[tuple[Load, ...]] = ()


@dataclass(unsafe_hash=True)
class IndexValue:
    """An index as a scalar of an integer dtype."""

    index: Final[Index]
    dtype: Final[DType]

    @property
    def loads(self) -> tuple[Load, ...]:
        """Those that decide it."""
        return loads_in((self.index,))


@dataclass(unsafe_hash=True)
class Call:
    """A scalar function of :mod:`kernelgen.nest.scalars`: ``function`` is its name there.

    All arithmetic functions take operands of one dtype; ``cast`` changes it; comparisons return bool;
    ``select(condition, a, b)`` takes a bool and two operands of the result's dtype.
    """

    function: Final[str]
    args: Final[tuple[Expr, ...]]
    dtype: Final[DType]

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """Those of its operands."""
        found: list[Load] = []
        waiting = list(reversed(self.args))
        while waiting:  # no recursion: operations may lie deep in each other
            each = waiting.pop()
            if isinstance(each, Call):
                waiting.extend(reversed(each.args))
            else:
                found.extend(each.loads)
        return tuple(found)


def loads_in(index: Sequence[Index]) -> tuple[Load, ...]:
    """The loads that decide where an access goes."""
    return tuple([load for place in index if place.is_by_data for value in values(place) for load in value.loads])


Expr = Literal | Load | Ref | IndexValue | Call


class Space(Enum):
    """Where a buffer lives."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"
    WORKSPACE = "workspace"  # given by the caller's side, one for the whole kernel
    LOCAL = "local"  # allocated in the nest, private to the iteration that allocates it
    PRIVATE = "private"  # allocated in a grid, one for each thread
    SHARED = "shared"  # allocated in a grid, one for each block of threads


@dataclass(frozen=True)
class Buffer:
    """A dense row-major array of ``shape``; rank 0 is one element."""

    name: str
    dtype: DType
    shape: Shape
    space: Space


class LoopKind(Enum):
    """What is promised about a loop.

    SERIAL: nothing. PARALLEL: iterations touch disjoint memory, except locals allocated inside.
    VECTOR: innermost; iterations are independent but for :class:`Accumulate`, so that lanes may run at once
    and reductions may be reassociated. INTERLEAVE: holds one vector loop beside bindings; iterations are independent,
    so that several of them may run at once together with the lanes. UNROLL: serial, with a small constant trip count.
    BLOCK: what PARALLEL promises; a GPU deals its iterations to blocks of threads. THREAD: what VECTOR promises, but
    loops may stand inside; a block deals its iterations to ``For.threads`` threads.
    ROWS: what VECTOR promises, but loops may stand inside; a machine of tiles takes several iterations at once.
    """

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTOR = "vector"
    INTERLEAVE = "interleave"
    UNROLL = "unroll"
    BLOCK = "block"
    THREAD = "thread"
    ROWS = "rows"


@dataclass(unsafe_hash=True)
class For:
    """``for var in lower..upper`` (upper excluded), by ``step``; ``threads`` is the width of a THREAD loop."""

    var: Final[str]
    lower: Final[Index]
    upper: Final[Index]
    body: Final[Block]
    kind: Final[LoopKind] = LoopKind.SERIAL
    step: Final[int] = 1
    threads: Final[int] = 1


@dataclass(unsafe_hash=True)
class Compare:
    """``left < right``, ``left <= right`` or ``left == right`` on indices."""

    op: Final[str]
    left: Final[Index]
    right: Final[Index]


@dataclass(unsafe_hash=True)
class If:
    """The body runs where all conditions hold."""

    conditions: Final[tuple[Compare, ...]]
    body: Final[Block]


@dataclass(unsafe_hash=True)
class Let:
    """Binds a scalar for the rest of the block. Names are unique in a nest."""

    name: Final[str]
    value: Final[Expr]


@dataclass(unsafe_hash=True)
class Store:
    """``buffer[index] = value``."""

    buffer: Final[Buffer]
    index: Final[tuple[Index, ...]]
    value: Final[Expr]


@dataclass(unsafe_hash=True)
class Accumulate:
    """``buffer[index] = function(buffer[index], value)`` with an associative, commutative function.

    ``function`` is ``add``, ``mul``, ``maximum``, ``minimum``, ``logical_and`` or ``logical_or``.
    """

    buffer: Final[Buffer]
    index: Final[tuple[Index, ...]]
    function: Final[str]
    value: Final[Expr]


@dataclass(frozen=True)
class Alloc:
    """Makes a LOCAL, PRIVATE or SHARED buffer that lives to the end of the enclosing block. Its content is undefined."""

    buffer: Buffer


@dataclass(frozen=True)
class Prefetch:
    """A hint without meaning: the element at flat ``place``, perhaps outside, is soon wanted in cache ``level``, 1 or 2."""

    buffer: Buffer
    place: Index
    level: int


@dataclass(unsafe_hash=True)
class Block:
    """Statements in order."""

    statements: Final[tuple[Statement, ...]] = ()


# ---------------------------------------------------------------- statements of grids

BLOCK_INDEX = "bx"
THREAD_INDICES = ("tx", "ty")
"""Variables of a grid: the number of the block, the numbers of the thread in its block."""


@dataclass(frozen=True)
class Grid:
    """One launch: the body runs in each of ``threads`` threads of each of ``blocks`` blocks, in no order.

    ``bx`` counts the blocks; ``tx`` and ``ty`` the threads of a block, ``tx`` fastest. Grids run one after the other.
    A grid is launched where all of ``when``, which symbols decide, holds.
    """

    name: str
    blocks: Index
    threads: tuple[int, int]
    body: Block
    when: tuple[Compare, ...] = ()


@dataclass(frozen=True)
class Bind:
    """Names an index for the rest of the block, as a loop names its variable."""

    var: str
    index: Index


@dataclass(frozen=True)
class Sync:
    """All threads of a block come here, and see what each of them wrote before."""


@dataclass(frozen=True)
class Combine:
    """Each thread's element becomes the combination of those of ``width`` neighbours along ``tx``, in one warp.

    The first of them has a number that ``width``, a power of two, divides; all of them come here together. ``function``
    is one of :class:`Accumulate`; the buffer is PRIVATE.
    """

    buffer: Buffer
    index: tuple[Index, ...]
    function: str
    width: int


@dataclass(frozen=True)
class Copy:
    """``count`` neighbours of one row at once, from ``source[start...]`` to ``target[to...]``; both places are aligned."""

    target: Buffer
    to: tuple[Index, ...]
    source: Buffer
    start: tuple[Index, ...]
    count: int


@dataclass(frozen=True)
class AsyncCopy:
    """``Copy`` from global to shared memory that goes on by itself; 0 arrives where a condition does not hold.

    16 bytes. Nobody may touch the place before the thread has awaited the group that the copy belongs to; other threads
    see it behind a barrier after that.
    """

    target: Buffer
    to: tuple[Index, ...]
    source: Buffer
    start: tuple[Index, ...]
    count: int
    conditions: tuple[Compare, ...] = ()


@dataclass(frozen=True)
class CommitCopies:
    """The thread's copies since the last one of these are a group, perhaps an empty one."""


@dataclass(frozen=True)
class AwaitCopies:
    """The thread waits until no more than the last ``pending`` of its groups are under way."""

    pending: int


@dataclass(frozen=True)
class LoadFragments:
    """A warp loads ``count`` 8 x 8 matrices of 16-bit numbers from shared memory into registers of its lanes.

    Lane 8 m + i says where row i of matrix m starts; afterwards ``target[to...]`` holds ``count`` registers: of matrix m the
    numbers 2 (lane % 4) and one more of row lane / 4, or of column lane / 4 where ``transposed``. Rows are 16 bytes, aligned.
    """

    target: Buffer
    to: tuple[Index, ...]
    source: Buffer
    start: tuple[Index, ...]
    count: int
    transposed: bool


@dataclass(frozen=True)
class MultiplyFragments:
    """A warp adds a product of a 16 x 16 and a 16 x 8 matrix to a 16 x 8 matrix, all in registers of its lanes.

    ``target[to...]`` are 4 numbers of float32, ``left`` 4 and ``right`` 2 registers with pairs of ``dtype``.
    """

    target: Buffer
    to: tuple[Index, ...]
    left: Buffer
    left_at: tuple[Index, ...]
    right: Buffer
    right_at: tuple[Index, ...]
    dtype: DType


OfWarp = LoadFragments | MultiplyFragments
"""What all lanes of a warp do together."""

OfGrid = Bind | Sync | Combine | Copy | AsyncCopy | CommitCopies | AwaitCopies | LoadFragments | MultiplyFragments
"""What stands in grids only."""

Statement = For | If | Let | Store | Accumulate | Alloc | Prefetch | Block | Grid | OfGrid


@dataclass(frozen=True)
class Nest:
    """A kernel body. ``buffers`` are the arguments in calling order: inputs, outputs, workspaces.

    ``symbols`` are the size symbols, bound from the shapes of the arguments, each >= 1.
    A buffer's ``shape`` is the one that the body indexes; callers see ``argument_shapes`` (one per input and
    output, same number of elements, same row-major order): dims may have been split or folded, and extents of 1 dropped.
    ``preparation`` is run once before all calls: from ``constants``, inputs that never change, it computes further ones.
    ``panels`` names buffers that lie as loops read them, zeros behind columns. ``one_launch``: put together for one launch.
    """

    name: str
    symbols: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    body: Block
    argument_shapes: tuple[Shape, ...] = ()
    one_launch: bool = False
    constants: frozenset[str] = frozenset()
    preparation: Nest | None = None
    panels: frozenset[str] = frozenset()
