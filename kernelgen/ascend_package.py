"""A kernel for Ascend as a user takes it home: its files, and what the simulator says of it.

    kit = make_kit(desc, find_target("ascend:910B"))
    kit.files            NAME.cpp, NAME.json (kernel_meta), NAME.info (the description), launch.py
    kit.rehearsal        one run in the simulator against the reference: record, report, the sizes it ran at
    kit.record.reason    why there is no kernel, where there is none

A run at the kernel's own sizes is made where that takes seconds; else the kernel's twin of smaller shapes runs, and the
rehearsal says so.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.specialize import specialize
from kernelgen.composite.write import dump_desc
from kernelgen.driver import compile
from kernelgen.enclosure import agree, enclose
from kernelgen.errors import ArgumentError, KernelgenError, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.samples.inputs import bind_symbols, draw
from kernelgen.samples.smaller_shapes import argument_bytes, shrink
from kernelgen.semantics import reference
from kernelgen.simulators.ascendc import Report
from kernelgen.simulators.ascendc.timeline import chrome_trace, picture
from kernelgen.system.bounded_io import write_whole
from kernelgen.targets import Target
from kernelgen.targets.ascend.entry import SimulatedEntry
from kernelgen.targets.ascend.lower.launch import blocks_of
from kernelgen.targets.ascend.lower.program.scope import parameter_of
from kernelgen.targets.ascend.proof.statement_count import statements_run
from kernelgen.verify.record import Record, Status, failed

STATEMENTS = 150_000
"""A launch of more statements is not simulated at its own sizes: it takes more than about ten seconds."""

MOST_BYTES = 64 << 20
"""Nor is one with larger arguments."""

SMALLER = (1 << 20, 256 << 10, 64 << 10, 8 << 10)
"""Bytes of arguments that are tried instead; the last one runs whatever it takes."""

MOST_DATA = 4 << 20
"""Bytes of inputs and outputs that are written beside a kernel for a run on a card."""


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A run in the simulator. ``shapes`` are those of inputs and outputs it ran with, ``scaled`` where not the kernel's own.

    ``data`` holds the inputs by the names of the kernel's parameters, and what is expected as ``expected_NAME``.
    """

    report: Report
    shapes: tuple[tuple[int, ...], ...]
    scaled: bool
    error: float
    data: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Kit:
    """A description's kernel: ``files`` by name, none where the record says why; ``rehearsal`` None where nothing ran."""

    desc: KernelDesc
    record: Record
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    rehearsal: Rehearsal | None = None

    @property
    def meta(self) -> Mapping[str, Any]:
        """The kernel_meta document; empty where there is no kernel."""
        name = next((name for name in self.files if name.endswith(".json")), None)
        return json.loads(self.files[name]) if name else {}

    @property
    def timeline(self) -> Mapping[str, str]:
        """The pipes of the rehearsal's slowest core: a picture, and events for chrome://tracing and Perfetto."""
        if self.rehearsal is None:
            return {}
        name = str(self.meta["kernelName"])
        report = self.rehearsal.report
        return {f"{name}.svg": picture(report), f"{name}.trace.json": chrome_trace(report, (report.slowest,))}

    @property
    def data(self) -> bytes | None:
        """``NAME.npz`` for the launch script; None where the rehearsal ran at other sizes, or the arrays are large."""
        if self.rehearsal is None or self.rehearsal.scaled:
            return None
        if sum(array.nbytes for array in self.rehearsal.data.values()) > MOST_DATA:
            return None
        stream = io.BytesIO()
        np.savez(stream, **self.rehearsal.data)  # pyright: ignore[reportArgumentType]  # numpy's keywords take any array
        return stream.getvalue()

    def write(self, folder: Path, timelines: Path) -> None:
        """Writes the files and the data into one folder, the timeline into another; each appears whole or not at all."""
        for name, text in self.files.items():
            write_whole(folder / name, text, ArgumentError, folders=True)
        for name, text in self.timeline.items():
            write_whole(timelines / name, text, ArgumentError, folders=True)
        if self.data is not None:
            write_whole(folder / f"{self.meta['binFileName']}.npz", self.data, ArgumentError, folders=True)


def make_kit(desc: KernelDesc, target: Target, rehearse: bool = True) -> Kit:
    """Compiles for an Ascend target, and runs in the simulator. Refusals, findings and wrong answers are in the record.

    Raises ArgumentError for a target that has no files to take home.
    """
    if target.files is None:
        raise ArgumentError(f"target {target.name} has no files to take home; ascend has")
    try:
        kernel = compile(desc, target)
    except UnsupportedError as refusal:
        return Kit(desc, Record(desc.name, Status.SKIPPED, refusal.code, str(refusal)))
    except KernelgenError as error:
        return Kit(desc, failed(desc.name, "exception", f"{type(error).__name__}: {error}"))
    composite = json.dumps(dump_desc(desc), indent=1) + "\n"
    files = {**target.files(kernel.source, kernel.nest), f"{kernel.nest.name}.info": composite}
    kit = Kit(desc, Record(desc.name, Status.PASSED, times=dict(kernel.resources.milliseconds)), files)
    return _rehearsed(kit, kernel, target) if rehearse else kit


def _rehearsed(kit: Kit, kernel: Kernel, target: Target) -> Kit:
    try:
        runs, scaled = _affordable(kernel, target)
        found, fault = _run(runs, scaled)
    except UnsupportedError as refusal:
        return replace(
            kit, record=replace(kit.record, status=Status.SKIPPED, reason=refusal.code, message=str(refusal))
        )
    except KernelgenError as error:
        message = f"{type(error).__name__}: {error}"
        return replace(kit, record=replace(kit.record, status=Status.FAILED, reason="exception", message=message))
    record = replace(kit.record, max_error=found.error, scaled=scaled)
    if fault:
        record = replace(record, status=Status.FAILED, reason="wrong-answer", message=fault)
    return replace(kit, record=record, rehearsal=found)


def _affordable(kernel: Kernel, target: Target) -> tuple[Kernel, bool]:
    """The kernel, or the largest twin of smaller shapes that the simulator can run in seconds."""
    small = argument_bytes(kernel.desc) <= MOST_BYTES and _statements(kernel) <= STATEMENTS
    if small or kernel.desc.symbols:
        return kernel, False
    twin = kernel
    for limit in SMALLER:
        small = shrink(kernel.desc, limit)
        if argument_bytes(small) < argument_bytes(twin.desc):
            twin = compile(small, target)
            if _statements(twin) <= STATEMENTS:
                break
    return twin, twin is not kernel


def _statements(kernel: Kernel) -> int:
    entry = _entry(kernel)
    sizes = bind_symbols(kernel.desc)
    return statements_run(entry.kernel, blocks_of(kernel.nest, entry.machine, sizes), sizes)


def _entry(kernel: Kernel) -> SimulatedEntry:
    if not isinstance(kernel.entry, SimulatedEntry):
        raise ArgumentError(f"{kernel!r} does not run in the simulator of Ascend")
    return kernel.entry


def _run(kernel: Kernel, scaled: bool) -> tuple[Rehearsal, str]:
    """One run on drawn inputs, and what is wrong with its results. Raises CodegenError with the simulator's findings."""
    desc = kernel.desc
    given, expected = draw(desc), draw(desc)
    data = {parameter_of(b): array.copy() for b, array in zip(kernel.nest.buffers, given, strict=False)}
    outputs, wanted = kernel(*given), reference(desc)(*expected)
    updated = desc.updated_inputs
    results = [*outputs, *(given[k] for k in updated)]
    right = [*wanted, *(expected[k] for k in updated)]
    names = [tensor.name for tensor in (*desc.outputs, *(desc.inputs[k] for k in updated))]
    found = agree(names, results, enclose(desc, draw(desc)))
    places = [*range(len(given), len(given) + len(outputs)), *updated]
    buffers = kernel.nest.buffers
    data |= {f"expected_{parameter_of(buffers[k])}": np.asarray(one) for k, one in zip(places, right, strict=True)}
    sized = specialize(desc, bind_symbols(desc))
    shapes = tuple(tuple(int(str(dim)) for dim in tensor.shape) for tensor in (*sized.inputs, *sized.outputs))
    return Rehearsal(_entry(kernel).reports[-1], shapes, scaled, found.error, data), found.fault
