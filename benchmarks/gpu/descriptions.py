"""The kernels that have to compile for every architecture, by family: each is a name and a description.

``catalogue``: every operator in every data type that it takes, alone and as it is expanded. ``random_graphs``: the fused
kernels of the random graphs that ``tests.random_graphs`` checks. ``classes``: those of the benchmark, at full size.
``networks``: those of whole networks at real size. ``corpus``: composites of a folder, evenly spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import graphkernel as gk
from benchmarks.gpu.cases import CASES
from benchmarks.gpu.contestants import traced
from benchmarks.gpu.correctness import alone, every
from benchmarks.networks import NETWORKS
from graphkernel.handoff import key_of, to_desc
from graphkernel.ops import OPS
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.read import load_desc
from kernelgen.tensor.graph import Graph
from tests.random_graphs import Sample, case
from tests.support.operator_samples import cases

TARGET = "gpu"
LEVEL = 2
Named = Iterator[tuple[str, KernelDesc]]


@dataclass(frozen=True)
class Amount:
    """How much of each family: one of ``every`` operators, classes and networks; so many graphs and files; tiny networks."""

    every: int = 1
    graphs: int = 300
    files: int = 200
    tiny: bool = False
    corpus: Path | None = None


SMALL = Amount(every=40, graphs=6, files=6, tiny=True)
"""A sample of seconds."""


def of_catalogue(amount: Amount) -> Named:
    """Every operator in every data type, with the first of its samples that has a description, and what it expands to."""
    for name in sorted(OPS)[:: amount.every]:
        done: set[str] = set()
        for sample in cases(OPS[name]):
            graph = None if sample.of.name in done else alone(sample)
            if graph is not None:
                done.add(sample.of.name)
                yield f"{name}.{sample.of.name}", to_desc(graph, TARGET)
                yield from kernels(f"{name}.{sample.of.name}", gk.optimize(graph, LEVEL, TARGET))


def of_random_graphs(amount: Amount) -> Named:
    """The kernels of random graphs at their levels, at the usual one where theirs fuses nothing."""
    for seed in range(amount.graphs):
        given = case(Sample.of(seed))
        flags = {"opt_level": given.options["opt_level"] or LEVEL, "target": TARGET}
        yield from kernels(f"graph{seed}", gk.optimize(given.graph, flags=flags))


def of_classes(amount: Amount) -> Named:
    """The kernels of the benchmark's classes."""
    for one in CASES[:: amount.every]:
        yield from kernels(one.name, gk.optimize(traced(one, one.operands(amount.tiny)), LEVEL, TARGET))


def of_networks(amount: Amount) -> Named:
    """The kernels of whole networks."""
    for name, network in list(NETWORKS.items())[:: amount.every]:
        yield from kernels(name, gk.optimize((network.tiny if amount.tiny else network.real)(), LEVEL, TARGET))


def of_corpus(amount: Amount) -> Named:
    """Composites of the folder."""
    if amount.corpus is not None:
        for path in every(sorted(amount.corpus.glob("*.info")), amount.files):
            yield path.stem, load_desc(path)


FAMILIES: Mapping[str, Callable[[Amount], Named]] = {
    "catalogue": of_catalogue,
    "random_graphs": of_random_graphs,
    "classes": of_classes,
    "networks": of_networks,
    "corpus": of_corpus,
}


def kernels(name: str, graph: Graph) -> Named:
    """The descriptions of a graph's fused nodes."""
    for node in graph.operators:
        if node.body is not None:
            desc = to_desc(node, TARGET)
            yield f"{name}.{desc.name}", desc


def distinct(amount: Amount, families: Sequence[str] = ()) -> Iterator[tuple[str, str, KernelDesc]]:
    """Family, name and description of all kernels that differ in more than their name."""
    seen: set[str] = set()
    for family in families or FAMILIES:
        for name, desc in FAMILIES[family](amount):
            key = key_of(desc)
            if key not in seen:
                seen.add(key)
                yield family, name, desc
