"""The training steps that are measured: graphs of ``examples.networks``, and the arrays that a run starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from examples.networks.bert import Bert
from examples.networks.resnet import Bottleneck
from examples.networks.weights import draw
from kernelgen.tensor.graph import Graph

Array = np.ndarray[Any, Any]
FIRST, SECOND = "_first", "_second"


@dataclass(frozen=True)
class Arrays:
    """The inputs of a step by their names: a batch, the weights, and two moments of every weight that is trained."""

    inputs: Mapping[str, Array]
    weights: Mapping[str, Array]
    moments: Mapping[str, Array]

    def copied(self) -> Arrays:
        """Arrays of its own, since a step writes into them."""
        return Arrays(*({name: array.copy() for name, array in part.items()} for part in self.parts))

    @property
    def parts(self) -> tuple[Mapping[str, Array], ...]:
        """In the order of a graph's inputs."""
        return self.inputs, self.weights, self.moments

    @property
    def all(self) -> tuple[Array, ...]:
        """As a graph takes them."""
        return tuple(array for part in self.parts for array in part.values())


@dataclass(frozen=True)
class Program:
    """A network and how to make its training step; ``network`` says to a peer which loss it is."""

    name: str
    network: Bert | Bottleneck
    graph: Callable[[], Graph]

    def start(self, graph: Graph) -> Arrays:
        """The same in every run. First moments are zero: after a step they are a tenth of the gradients."""
        parts: dict[str, dict[str, Array]] = {"inputs": {}, "weights": {}, "moments": {}}
        for value, array in zip(graph.inputs, draw(graph), strict=True):
            part, _, name = value.node.name.partition("_")
            parts[part][name] = np.zeros_like(array) if part == "moments" and name.endswith(FIRST) else array
        return Arrays(**parts)


def programs(layers: int, *, tiny: bool) -> tuple[Program, ...]:
    """BERT of so many layers on 2 x 128 tokens, and a bottleneck of ResNet's first stage on 4 images."""
    bert = Bert(2, 8, 2, 12, 9, 6) if tiny else Bert(layers)
    block = Bottleneck(channels=2) if tiny else Bottleneck()
    return (
        Program(f"bert_{bert.layers}_layers", bert, lambda: bert.training(2, 6 if tiny else 128)),
        Program("bottleneck", block, lambda: block.training(4, 8 if tiny else 56)),
    )
