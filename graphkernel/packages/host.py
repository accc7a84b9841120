"""The host library of a package: regions that were chosen when it was built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphkernel.errors import PackageError
from graphkernel.ir.graph import Graph, Node, Value
from graphkernel.packages.manifest import RegionRecord
from graphkernel.runtime.host import numpy_step
from graphkernel.runtime.regions import OnnxRuntimeHost, RegionStep, has_objects, operands_of, region_step
from graphkernel.runtime.sessions import RegionModel
from graphkernel.runtime.steps import Step


@dataclass(frozen=True)
class PackagedHost:
    """Takes the operators of each record as one region, on the sessions of ``library``; others run on numpy.

    ``numbers`` are the operators of the graph by number, ``content`` gives the model of a region, ``weights`` are by digest.
    """

    library: OnnxRuntimeHost
    numbers: Mapping[Node, int]
    records: Mapping[int, RegionRecord]
    content: Callable[[RegionRecord], bytes]
    weights: Mapping[str, np.ndarray]
    name: str
    regions: bool = True

    @staticmethod
    def of(
        library: OnnxRuntimeHost,
        operators: Sequence[Node],
        records: Sequence[RegionRecord],
        content: Callable[[RegionRecord], bytes],
        weights: Mapping[str, np.ndarray],
    ) -> PackagedHost:
        """For the operators of a graph in order."""
        by_number = {number: record for record in records for number in record.operators}
        if sum(len(record.operators) for record in records) != len(by_number):
            raise PackageError("a package with an operator in two regions")
        numbers = {node: number for number, node in enumerate(operators)}
        return PackagedHost(library, numbers, by_number, content, weights, library.name)

    def group(self, node: Node) -> str | None:
        """The group that it was in; None for what was in no region."""
        record = self.records.get(self.numbers[node])
        return None if record is None else record.group

    def why_not(self, node: Node) -> str:
        """The report of the package says why."""
        return "" if node in self.numbers else "unknown"

    def absorbs(self, graph: Graph, kernel: Node) -> bool:
        """False: what it absorbs is no kernel in the graph of a package any more."""
        return False

    def region(
        self, name: str, nodes: Sequence[Node], slots: Mapping[Value, int], outputs: Sequence[Value]
    ) -> RegionStep:
        """The session of a region's model."""
        record = self.records[self.numbers[nodes[0]]]
        if tuple(self.numbers[node] for node in nodes) != record.operators:
            raise PackageError("a package whose regions are not those of its graph")
        inputs = operands_of(nodes)
        if (len(inputs), len(outputs)) != (len(record.input_names), len(record.output_names)):
            raise PackageError(f"region {record.model} takes other values than those of its operators")
        weights = {key: self._weight(digest) for key, digest in record.weights}
        model = RegionModel(self.content(record), weights, has_objects(value.type for value in (*inputs, *outputs)))
        names = dict(zip((*inputs, *outputs), (*record.input_names, *record.output_names), strict=True))
        return region_step(name, self.library.session(name, model), nodes, names, inputs, outputs, slots)

    def single(self, node: Node, slots: Mapping[Value, int]) -> Step:
        """By its numpy meaning."""
        return numpy_step(node, slots)

    def _weight(self, digest: str) -> np.ndarray:
        if digest not in self.weights:
            raise PackageError(f"a package without the weights {digest}")
        return self.weights[digest]
