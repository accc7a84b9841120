"""Every choice of a kernel's mapping and printing as a value, which can be dumped, edited and replayed.

    plan = kernel.plan                                    what was chosen, and why
    document = plan.to_json()                             edit it as JSON, or with dataclasses.replace
    compile(desc, "cpu", Plan.from_json(document))        the same source again; an edited plan is proved like any other

A plan says what to do, never that it is legal: the proofs look at the schedule that comes of it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from kernelgen.errors import ArgumentError
from kernelgen.nest.marks import UNMARKED, Mark
from kernelgen.strict_json import from_json, to_json

VERSION = 1
"""Of the plan's form; a plan of another version is refused."""


@dataclass(frozen=True)
class Partials:
    """When the partial results of a reduction pay (:mod:`kernelgen.poly.grouping.privatise`); sizes are in elements."""

    count: int = 64  # of the blocks, at most: enough for as many cores
    least: int = 32768  # of a block
    fewest: int = 4  # blocks, below which a reduction is left alone
    nanoseconds: float = 50_000.0  # of the whole reduction on one core, below which it is left alone
    enough: int = 8  # independent iterations that a reduction has without blocks
    strip: int = 4096  # of results along the last axis that make an independent iteration
    terms: int = 32  # for every partial result
    unknown: int = 512  # what a row of unknown length is taken for
    alone: int = 0  # terms of an independent iteration, up to which it is left alone however few they are
    parallel: int | None = None  # iterations in all, which blocks of independent ones shall not exceed
    shared: bool = (
        True  # whether other statements run in the loop over blocks, sums of rows beside those of columns too
    )

    def of_part(self, times: int) -> Partials:
        """For a kernel that stands for one ``times`` as large: what counts elements and their time is so much less."""
        return replace(
            self,
            least=max(1, self.least // times),
            terms=self.terms // times,
            nanoseconds=self.nanoseconds / times,
        )


USUAL_PARTIALS = Partials()


@dataclass(frozen=True)
class VectorUnit:
    """The vector registers of a processor, and the elements of four bytes that each holds; whether one instruction adds
    products of bytes to all of them, or where none does one adds up pairs of products of halves of words; and whether
    registers of whole matrices add up products of the bytes of many rows."""

    registers: int = 32
    lanes: int = 16
    adds_bytes: bool = False
    has_matrices: bool = False
    adds_pairs: bool = False


@dataclass(frozen=True)
class CpuPlan:
    """The sizes that a CPU's mapping starts from, in elements where nothing else is said."""

    chunk: int = 16384  # of a single long loop: one parallel iteration
    strip: int = 2048  # of a vector loop inside a serial reduction: its partial results stay in L1
    tile: int = 64  # of both loops of a transposed access
    rows: int = 8  # that a column reduction adds up before it touches its partial results; halved until it divides
    block: tuple[int, int] = (8, 32)  # rows and columns of a product's results, of four bytes, that registers hold
    points: tuple[int, int] = (4, 4)  # the same where the lanes are terms of the sum
    jam: int = 8  # rows of any number that a column reduction takes at once
    unit: VectorUnit = VectorUnit()
    handed: int = 64  # rows of a block that one product hands on to another
    tile_room: int = 512 * 1024  # bytes of what the stencils of a chain hand on in a tile
    panel: int = 192 * 1024  # bytes of the columns of a product that lie together while all rows pass
    partials: Partials = USUAL_PARTIALS
    threads: int = 1  # to which rows of a product are dealt where there are enough
    ahead: int = 1024  # bytes of a stream of words that are asked for before they are read

    def __post_init__(self) -> None:
        _check_sizes(self)


@dataclass(frozen=True)
class GpuPlan:
    """The sizes that a GPU's mapping starts from."""

    whole: int = 1024  # threads of the only block of a launch without block loops, at most
    most: int = 512  # threads for one iteration of the block loops
    least: int = 16  # iterations of the longest thread loop, below which a thread takes the whole row
    usual: int = 256  # threads of a row of unknown length
    long: int = 512  # iterations of a contiguous loop that threads share alone, not with the loops around it

    def __post_init__(self) -> None:
        _check_sizes(self)


def _check_sizes(sizes: CpuPlan | GpuPlan) -> None:
    for field in fields(sizes):
        value = getattr(sizes, field.name)
        if not isinstance(value, Partials | VectorUnit) and min(value if isinstance(value, tuple) else (value,)) < 1:
            raise ArgumentError(f"{field.name} is {value}; sizes are at least 1")


@dataclass(frozen=True)
class LoopPlan:
    """A loop over a member of a band, counted from 0: over its iterations, or from tile to tile of ``tile`` of them.

    ``mark`` is what is promised about the loop, in JSON its text, such as ``thread 128``; ``unroll`` writes its iterations out.
    """

    member: int
    tile: int | None = None
    mark: Mark = UNMARKED
    unroll: bool = False


@dataclass(frozen=True)
class WholeTiles:
    """The iterations of a member that whole tiles of ``size`` cover, counted from 0."""

    member: int
    size: int


@dataclass(frozen=True)
class PiecePlan:
    """The loops of a part of a band's domain, outermost first.

    The part is what lies in all of ``whole`` and in no piece before it; the last piece takes the rest.
    """

    loops: tuple[LoopPlan, ...]
    whole: tuple[WholeTiles, ...] = ()


@dataclass(frozen=True)
class BandPlan:
    """What becomes of one band of the schedule. ``statements`` and ``members`` say which band is meant.

    A member is called after the iterator that its statements move along. ``why`` is what the cost model weighed.
    """

    statements: tuple[str, ...]
    members: tuple[str, ...]
    pieces: tuple[PiecePlan, ...]
    why: str = ""

    def __str__(self) -> str:
        lines = [f"{', '.join(self.statements)} [{', '.join(self.members)}]"]
        for piece in self.pieces:
            whole = ", ".join(f"{self.members[tiles.member]} in whole {tiles.size}" for tiles in piece.whole)
            lines.append("    " + "; ".join(map(self._loop_text, piece.loops)) + (f"  where {whole}" if whole else ""))
        return "\n".join([*lines, f"    why: {self.why}"])

    def _loop_text(self, loop: LoopPlan) -> str:
        words = [str(loop.mark), self.members[loop.member], f"by {loop.tile}" if loop.tile else ""]
        return " ".join(word for word in (*words, "unrolled" if loop.unroll else "") if word)


MOST_COPIES = 64
"""Of a vector in one turn of a loop."""


@dataclass(frozen=True)
class VectorChoice:
    """A vector loop: ``lanes`` iterations at once (1: no vectors), ``copies`` vectors of them in one turn of the loop.

    A loop of just that many iterations is printed without a loop. ``sum_block``: partial sums in registers join the
    total after so many terms; None for a total in registers.
    """

    lanes: int
    copies: int = 1
    sum_block: int | None = None
    why: str = ""

    def __post_init__(self) -> None:
        if self.lanes not in (1, 2, 4, 8, 16, 32, 64):
            raise ArgumentError(f"lanes is {self.lanes}; it is a power of two up to 64")
        if not 1 <= self.copies <= MOST_COPIES:
            raise ArgumentError(f"copies is {self.copies}; it is a number up to {MOST_COPIES}")
        if self.sum_block is not None and (self.sum_block < 1 or self.sum_block % (self.lanes * self.copies)):
            raise ArgumentError(f"sum_block is {self.sum_block}, no multiple of lanes * copies")

    def __str__(self) -> str:
        blocks = f", sums in blocks of {self.sum_block}" if self.sum_block else ""
        return f"lanes {self.lanes}, copies {self.copies}{blocks}  ({self.why})"


@dataclass(frozen=True)
class TileChoice:
    """An interleaved loop and its vector loop: squares of ``size`` x ``size`` iterations (1: no squares), ``rows`` at once."""

    size: int
    rows: int = 1
    why: str = ""

    def __post_init__(self) -> None:
        if self.size not in (1, 4, 8, 16, 32, 64) or self.rows < 1 or self.size % self.rows:
            raise ArgumentError(f"squares of {self.size} with {self.rows} rows: 1, or powers of two of at least 4")

    def __str__(self) -> str:
        return f"size {self.size}, rows {self.rows}  ({self.why})"


@dataclass(frozen=True)
class ThreadChoice:
    """A parallel loop: whether threads are started for it."""

    threads: bool
    why: str = ""

    def __str__(self) -> str:
        return f"{'threads' if self.threads else 'one thread'}  ({self.why})"


@dataclass(frozen=True)
class MatrixChoice:
    """A loop over rows that may run together: whether registers of matrices take its sums."""

    registers: bool
    why: str = ""

    def __str__(self) -> str:
        return f"{'registers of matrices' if self.registers else 'row by row'}  ({self.why})"


Choice = VectorChoice | TileChoice | ThreadChoice | MatrixChoice
"""How one loop is printed."""


@dataclass(frozen=True)
class CodePlan:
    """How a target prints the marked loops of a nest, by kind, each in the order of the text.

    ``streamed`` is the output that is stored past the caches.
    """

    vectors: tuple[VectorChoice, ...] = ()
    tiles: tuple[TileChoice, ...] = ()
    parallels: tuple[ThreadChoice, ...] = ()
    matrices: tuple[MatrixChoice, ...] = ()
    streamed: str | None = None

    def __str__(self) -> str:
        lines = [f"{kind} {k}: {choice}" for kind, k, choice in self.choices()]
        return "\n".join([*lines, f"past the caches: {self.streamed or 'nothing'}"])

    def choices(self) -> list[tuple[str, int, Choice]]:
        """All of them with the kind of loop and its number."""
        kinds = {"vector": self.vectors, "interleave": self.tiles, "parallel": self.parallels, "rows": self.matrices}
        return [(kind, k, choice) for kind, choices in kinds.items() for k, choice in enumerate(choices)]


@dataclass(frozen=True)
class Plan:
    """All choices of a kernel. What is None is chosen when the kernel is compiled, from the sizes for its machine.

    ``bands`` stand in the order in which the schedule tree is visited, innermost first. ``subject`` is the fingerprint
    of the description that the plan was made for; an empty one lets it be tried on any description that it fits.
    ``stands_for``: how many times as large the kernel is that this one is a model of; what pays there is taken to pay here.
    """

    cpu: CpuPlan = CpuPlan()
    gpu: GpuPlan = GpuPlan()
    bands: tuple[BandPlan, ...] | None = None
    code: CodePlan | None = None
    subject: str = ""
    stands_for: int = 1
    version: int = VERSION

    def __post_init__(self) -> None:
        if self.stands_for < 1:
            raise ArgumentError(f"stands_for is {self.stands_for}; it is at least 1")
        if self.version != VERSION:
            raise ArgumentError(f"version is {self.version}, this is version {VERSION}; make the plan anew")

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return to_json(self)

    @staticmethod
    def from_json(document: object) -> Plan:
        """The inverse of :meth:`to_json`. Raises ArgumentError with the path of what is wrong."""
        return from_json(Plan, document)


def text_of(bands: tuple[BandPlan, ...]) -> str:
    """The bands with their numbers."""
    return "\n".join(f"band {k}: {band}" for k, band in enumerate(bands))
