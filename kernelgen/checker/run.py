"""check(nest): runs a nest on terms at small sizes and looks at everything that it touches.

Nothing of how the nest was found is used: not the schedule, not isl, not the proof. A nest whose static extents are too
large for a run of all iterations runs on a sample of them, and what a sample cannot show is not claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from kernelgen.checker.data import Data, known_data
from kernelgen.checker.described import described_terms, is_ordered, without_terms
from kernelgen.checker.faults import CHECKS, WHOLE_RUN, Fault, Found
from kernelgen.checker.operators import Unknown, known_operands
from kernelgen.checker.program import Program, program
from kernelgen.checker.trace import Memory, OutOfSteps, Trace
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.document import Document
from kernelgen.composite.link import unlinked
from kernelgen.composite.specialize import specialize
from kernelgen.errors import NestError
from kernelgen.nest.nodes import Accumulate, Buffer, Nest, Space, Store
from kernelgen.nest.text import show_statement
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import statements
from kernelgen.tensor.dims import evaluate

STEPS = 100_000
"""Loop iterations and accesses of one run."""
SIZES = ((1, 1, 1, 1), (5, 7, 3, 2), (17, 19, 9, 4))
"""Sizes of the symbols, in turn, for one run after another."""
SAMPLES = (8, 4, 2)
"""Iterations of each loop in a sampled run: the first that the steps allow."""


@dataclass(frozen=True)
class Run:
    """One run: the sizes of the symbols, how many accesses were looked at, what was shown or the fault that was found."""

    sizes: tuple[tuple[str, int], ...]
    whole: bool
    accesses: int
    shown: tuple[str, ...]
    fault: Fault | None = None

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes)
        how = "all iterations" if self.whole else "a sample of the iterations"
        found = f"fault: {self.fault}" if self.fault else f"{self.accesses} accesses: {', '.join(self.shown)}"
        return f"{sizes + ': ' if sizes else ''}{how}: {found}"


@dataclass(frozen=True)
class Checked:
    """What the checker found out about a nest. Prints one run a line."""

    runs: tuple[Run, ...]

    @property
    def fault(self) -> Fault | None:
        """The first fault, None when there is none."""
        return next((run.fault for run in self.runs if run.fault), None)

    @property
    def is_whole(self) -> bool:
        """Whether all iterations of every run were looked at."""
        return all(run.whole for run in self.runs)

    @property
    def shown(self) -> tuple[str, ...]:
        """The checks that every run has shown, in the order of :data:`~kernelgen.checker.faults.CHECKS`."""
        if self.fault is not None:
            return ()
        return tuple(name for name in CHECKS if all(name in run.shown for run in self.runs))

    def __str__(self) -> str:
        return "\n".join(map(str, self.runs))


def check(nest: Nest, desc: KernelDesc | None = None, steps: int = STEPS) -> Checked:
    """Looks at runs of the nest at several sizes of its symbols; with the description, at the terms of its outputs too.

    What a run finds comes before what the form of the nest tells: the runs do not lean on the invariants.
    """
    written, malformed = _written_input(nest), _form(nest)
    runs: tuple[Run, ...] = ()
    if written is None:
        try:
            runs = _runs(nest, desc, steps)
        except Exception:
            if malformed is None:
                raise
    fault = written or malformed
    if fault is not None and not any(run.fault for run in runs):
        runs = (Run((), False, 0, (), fault),)
    return Checked(runs)


def _runs(nest: Nest, desc: KernelDesc | None, steps: int) -> tuple[Run, ...]:
    """A run for each choice of sizes, up to the first fault."""
    whole = unlinked(desc) if desc is not None else None
    compiled: Program | None = None
    runs: list[Run] = []
    some = whole is not None and any(map(known_operands, whole.ops))
    for turn, choice in enumerate(SIZES if nest.symbols else SIZES[: 2 if some else 1]):
        symbols = {name: choice[k % len(choice)] for k, name in enumerate(nest.symbols)}
        sized = specialize(desc, symbols) if desc is not None else None
        data = known_data(sized, turn) if sized is not None and some else {}
        document = unlinked(sized) if sized is not None else None  # which lacks what nobody reads
        compiled = compiled or program(nest, document is not None and is_ordered(document))
        runs.append(_checked(_Subject(nest, compiled, document, symbols, data), steps))
        if runs[-1].fault is not None:
            break
    return tuple(runs)


def _written_input(nest: Nest) -> Fault | None:
    for part in statements(nest.body):
        if isinstance(part, Store | Accumulate) and part.buffer.space is Space.INPUT:
            return Fault("inputs", part.buffer.name, "is written", show_statement(part))
    return None


def _form(nest: Nest) -> Fault | None:
    try:
        verify(nest)
    except NestError as error:
        return Fault("form", nest.name, str(error))
    return None


@dataclass(frozen=True)
class _Subject:
    """What is run: a nest at sizes of its symbols, with the known numbers of its inputs; the document has these sizes."""

    nest: Nest
    program: Program
    document: Document | None
    symbols: Mapping[str, int]
    data: Data

    def memories(self, trace: Trace) -> Iterator[Memory]:
        """A memory for each buffer."""
        for position, buffer in enumerate(self.nest.buffers):
            shape = [evaluate(dim, self.symbols) for dim in buffer.shape]
            yield Memory(trace, buffer, shape, position, self.data.get(position, ()))

    def found(self, trace: Trace, shown: Sequence[str], fault: Fault | None = None) -> Run:
        """The record of a run."""
        return Run(tuple(self.symbols.items()), trace.is_whole, trace.accesses, tuple(shown), fault)


def _checked(subject: _Subject, steps: int) -> Run:
    """All iterations, or the largest sample that the steps allow."""
    buffers, document = subject.nest.buffers, subject.document
    written = sum(_size(buffer, subject.symbols) for buffer in buffers if buffer.space is Space.OUTPUT)
    for sample in (None, *SAMPLES) if written <= steps else SAMPLES:
        trace = Trace(steps, subject.program.texts, sample, document is not None and is_ordered(document))
        try:
            return _run(subject, trace)
        except OutOfSteps:
            continue
    return Run(tuple(subject.symbols.items()), False, 0, ())


def _run(subject: _Subject, trace: Trace) -> Run:
    memories = list(subject.memories(trace))
    shown = [name for name in CHECKS if name != "terms" and (trace.is_whole or name not in WHOLE_RUN)]
    try:
        subject.program.run(trace, memories, [subject.symbols[name] for name in subject.nest.symbols])
        if trace.is_whole:
            _require_outputs(memories, trace)
            shown += _require_terms(memories, subject, trace)
    except Found as found:
        return subject.found(trace, (), found.fault)
    return subject.found(trace, shown)


def _size(buffer: Buffer, symbols: Mapping[str, int]) -> int:
    return prod(evaluate(dim, symbols) for dim in buffer.shape)


def _require_outputs(memories: Sequence[Memory], trace: Trace) -> None:
    for memory in memories:
        missing = memory.missing() if memory.space is Space.OUTPUT else None
        if missing is not None:
            raise trace.fail("outputs", memory.place(missing), "is never written", -1)


def _require_terms(memories: Sequence[Memory], subject: _Subject, trace: Trace) -> tuple[str, ...]:
    """Outputs and updated inputs hold what the description says, element by element in row-major order.

    Gives the check that was made: none without a description, nor where ids are computed from what nobody knows.
    """
    document = subject.document
    if document is None or without_terms(document):
        return ()
    try:
        described = described_terms(document, subject.data)
    except Unknown:
        return ()
    results = [*(m for m in memories if m.space is Space.OUTPUT), *(m for m in memories if m.space is Space.INOUT)]
    for memory, wanted in zip(results, described, strict=True):
        for offset, number in enumerate(wanted):
            if memory.number_at(offset) != number:
                raise trace.fail("terms", memory.place(offset), f"is not what {document.name} says", -1)
    return ("terms",)
