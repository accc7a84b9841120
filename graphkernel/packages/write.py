"""An executable as a package."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO

import numpy as np

import graphkernel
from graphkernel.errors import PackageError
from graphkernel.ops.pickles import file_of
from graphkernel.packages.container import REGIONS
from graphkernel.packages.container_writer import PackageWriter
from graphkernel.packages.kept_weights import LARGE, Weight
from graphkernel.packages.manifest import (
    CODE,
    FORMAT,
    GRAPH,
    KEPT,
    MANIFEST,
    PROGRAM,
    REPORT,
    WEIGHTS,
    Machine,
    Manifest,
    RegionRecord,
    manifest_text,
)
from graphkernel.packages.programs import program_text
from graphkernel.packages.reports import report_text
from graphkernel.packages.tensors import most_bytes, write_tensors
from graphkernel.runtime.executable import Executable
from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.onnxruntime.regions import group_of
from graphkernel.runtime.plan.plan import Plan, slots_of
from graphkernel.runtime.steps.steps import KernelStep
from kernelgen.errors import ArgumentError
from kernelgen.native.call import NativeKernel
from kernelgen.native.code import Code
from kernelgen.native.entry import CpuEntry
from kernelgen.native.records import code_items, code_of, entry_of, kernel_items
from kernelgen.system.bounded_io import writing
from kernelgen.system.digest import digest
from kernelgen.system.json_parts import Items
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.printer import large_constants, show


def save_package(executable: Executable, path: str | os.PathLike[str]) -> None:
    """Writes everything that the executable needs to run on this machine. The file appears whole or not at all.

    Weights that kernels take laid out for this machine are in it in that form alone.
    Raises PackageError for what no package can hold: kernels of another target than the CPU, constants without content.
    """
    weights, entries = _parts(executable)
    packed = _packed(executable.plan) - weights.read
    with writing(path, PackageError) as stream:
        _write(PackageWriter(stream), {k: v for k, v in weights.arrays.items() if k not in packed}, entries)


def package_bytes(
    executable: Executable,
    elsewhere: Container[str],
    keep: Callable[[Sequence[Weight], Mapping[str, np.ndarray]], None],
) -> bytes:
    """The same of ``executable``, without weights whose digests are in ``elsewhere`` and without other large ones.

    ``keep`` keeps these, and the entry ``KEPT`` names them.
    """
    weights, entries = _parts(executable)
    held = {k: v for k, v in weights.arrays.items() if k not in elsewhere}
    large = [Weight(k, v.dtype.name, v.shape) for k, v in held.items() if v.nbytes >= LARGE]
    keep(large, held)
    stream = BytesIO()
    _write(
        PackageWriter(stream),
        {k: v for k, v in held.items() if v.nbytes < LARGE},
        {KEPT: json.dumps(large).encode(), **entries},
    )
    return stream.getvalue()


def _parts(executable: Executable) -> tuple[Weights, Mapping[str, bytes]]:
    plan, report = executable.plan, report_text(executable.report).encode()
    graph, weights = show(plan.graph).encode(), Weights.of(plan.graph)
    kernels, regions = _Kernels(), tuple(step for step in plan.steps if isinstance(step, RegionStep))
    try:
        program = program_text(plan.program, kernels.add, weights.digest).encode()
    except ArgumentError as error:
        raise PackageError(f"{executable.report.graph} cannot be packed: {error}") from error
    numbers = {node: number for number, node in enumerate(plan.graph.operators)}
    records = tuple(_region(step, number, numbers, weights) for number, step in enumerate(regions))
    entries = {
        PROGRAM: program, GRAPH: graph, REPORT: report, CODE: bytes(kernels.content),
        **{record.model: step.session.model.content for record, step in zip(records, regions, strict=True)},
    }  # fmt: skip
    manifest = Manifest(
        FORMAT, graphkernel.__version__, executable.report.target, Machine.here(kernels.flags),
        executable.report.library, {name: digest(content) for name, content in entries.items()},
        operators_of(plan.graph), kernels.records, records, kernels.caller, kernels.team,
    )  # fmt: skip
    return weights, {MANIFEST: manifest_text(manifest).encode(), **entries}


def _packed(plan: Plan) -> frozenset[str]:
    """The digests of constants that kernels take laid out, and no other operator reads: a step may read equal arrays."""
    steps = {step.name: step for step in plan.steps if isinstance(step, KernelStep)}
    graph, slots = plan.graph, slots_of(plan.graph)
    packed, others = set[str](), {value.node.data.digest for value in graph.outputs if value.node.data is not None}
    for node in graph.operators:
        step = steps.get(node.name)
        for arg in node.args:
            if arg.node.data is not None:
                is_packed = step is not None and slots[arg] not in step.inputs
                (packed if is_packed else others).add(arg.node.data.digest)
    return frozenset(packed - others)


def _write(package: PackageWriter, weights: Mapping[str, np.ndarray], entries: Mapping[str, bytes]) -> None:
    with package.entry(WEIGHTS, most_bytes(weights)) as (write, place):
        write_tensors(weights, write, place)
    for name, content in entries.items():
        package.write(name, content)
    package.close()


def operators_of(graph: Graph) -> tuple[tuple[str, str], ...]:
    """The operators of a graph and its kernels by name, with their files. Raises PackageError for those of others."""
    declared = {op.name: file_of(op) for op in dict.fromkeys(_declarations(graph))}
    if foreign := sorted(name for name, file in declared.items() if not file):
        raise PackageError(f"operators of other packages cannot be packed: {', '.join(foreign)}")
    return tuple(sorted(declared.items()))


def _declarations(graph: Graph) -> Iterator[Operator]:
    for node in graph.operators:
        if node.body is None:
            yield node.op
        else:
            yield from _declarations(node.body)


@dataclass
class _Kernels:
    """Distinct kernels as records, and their machine code one piece behind the other."""

    records: list[Items] = field(default_factory=list[Items])
    content: bytearray = field(default_factory=bytearray)
    caller: Items | None = None
    team: Items | None = None
    flags: tuple[str, ...] = ()
    _known: dict[NativeKernel, int] = field(default_factory=dict[NativeKernel, int])

    def add(self, step: KernelStep) -> int:
        """The number of the step's kernel. Raises ArgumentError for a kernel that is no machine code of ours."""
        kernel = step.kernel
        if not isinstance(kernel, NativeKernel):
            raise ArgumentError(f"kernel {step.name} is another compiler's")
        if kernel not in self._known:
            self._known[kernel] = len(self.records)
            self._helpers(entry_of(kernel))
            self.records.append(kernel_items(kernel, len(self.content)))
            self.content += code_of(kernel).content
        return self._known[kernel]

    def _helpers(self, entry: CpuEntry) -> None:
        """The machine code that kernels are called through, and that of parallel loops."""
        self.flags = entry.flags
        if self.caller is None and entry.caller.code is not None:
            self.caller = self._kept(entry.caller.code)
        if self.team is None and entry.team is not None and entry.team.library.code is not None:
            self.team = self._kept(entry.team.library.code)

    def _kept(self, code: Code) -> Items:
        record = code_items(code, len(self.content))
        self.content += code.content
        return record


def _region(step: RegionStep, number: int, numbers: Mapping[Node, int], weights: Weights) -> RegionRecord:
    model = step.session.model
    return RegionRecord(
        group_of(step), f"{REGIONS}{number}.onnx", tuple(numbers[node] for node in step.nodes), model.objects,
        tuple((name, weights.digest(array)) for name, array in sorted(model.weights.items())),
    )  # fmt: skip


@dataclass
class Weights:
    """Arrays by digest. What was asked for is kept, so that no other array takes its place in memory.

    ``read`` are the digests of those that steps name.
    """

    arrays: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    read: set[str] = field(default_factory=set[str])
    _digests: dict[int, tuple[np.ndarray, str]] = field(default_factory=dict[int, "tuple[np.ndarray, str]"])

    @staticmethod
    def of(graph: Graph) -> Weights:
        """The constants that the text of a graph names by their digest, and whose content is known."""
        found = Weights()
        for data in large_constants(graph):
            if data.array is not None:
                found._digests[id(data.array)] = data.array, data.digest
                found.arrays[data.digest] = data.array
        return found

    def digest(self, array: np.ndarray) -> str:
        """The digest of an array, which is kept: a constant, or what the host library or a preparation made of one."""
        if id(array) not in self._digests:
            digest = ConstantData.of(array).digest
            self._digests[id(array)] = array, digest
            self.arrays[digest] = array
        _, known = self._digests[id(array)]
        self.read.add(known)
        return known
