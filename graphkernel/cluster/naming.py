"""Kernel names: ``Fused_<operators>_<suffix>`` as MindSpore writes them, but unique in a graph and true to content.

Kernels of equal content share a name; a different kernel with the same operators gets a number.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from graphkernel.cluster.fuse_nodes import splice, with_unique_labels
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.graph import Graph, Node, Value, keep

LONGEST = 60  # characters of operator names before the rest is cut to "more"
FUSION, SPLIT, RECOMPUTE = "fusion", "split", "recompute"
PARALLEL, ATOMIC_ADD, ATOMIC_CLEAN, PACKET, NAMED = "parallel", "atomic_add", "atomic_clean", "packet", "named"
SUFFIXES = (FUSION, SPLIT, RECOMPUTE, PARALLEL, ATOMIC_ADD, ATOMIC_CLEAN, PACKET, NAMED)
_SUFFIXED = re.compile(rf"_({'|'.join(SUFFIXES)})(_\d+)?$")


def kernel_name(body: Graph, suffix: str) -> str:
    """``Fused_Mul_Add_fusion``; a long list ends in ``_more``."""
    names, left = ["Fused"], LONGEST
    for node in body.operators:
        name = node.op.name
        if len(name) > left:
            names.append("more")
            break
        names.append(name)
        left -= len(name) + 1
    return "_".join([*names, suffix])


@dataclass(frozen=True, eq=False)
class Content:
    """What a body holds: equal for bodies that compute the same in the same way, whatever their labels.

    Most are told from each other by their size and boundary, which are looked at first, and again for a hash.
    """

    body: Graph

    @cached_property
    def _looks(self) -> Hashable:
        """The same for equal contents."""
        inputs, outputs = self.body.inputs, self.body.outputs
        return len(self.body.nodes), tuple([each.type for each in inputs]), tuple([each.type for each in outputs])

    @cached_property
    def _whole(self) -> Hashable:
        position = {node: index for index, node in enumerate(self.body.nodes)}

        def of_node(node: Node) -> Hashable:
            operands = tuple([(position[arg.node], arg.index) for arg in node.args])
            return node.op.name, operands, node.attrs, node.types, node.data

        results = tuple((position[value.node], value.index) for value in self.body.outputs)
        return tuple(map(of_node, self.body.nodes)), results, self.body.aliases

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Content) and self._looks == other._looks and self._whole == other._whole

    def __hash__(self) -> int:
        return hash(self._looks)


@dataclass
class Names:
    """Gives out names: the same for the same content, a new one otherwise. ``_taken`` holds the content behind each name."""

    _given: dict[str, dict[Hashable, Graph]] = field(default_factory=dict[str, dict[Hashable, Graph]])
    _taken: dict[str, Hashable] = field(default_factory=dict[str, Hashable])

    @staticmethod
    def beside(graph: Graph) -> Names:
        """Names for new kernels of a graph that keeps those it has."""
        bodies = (node.body for node in graph.operators if node.body is not None)
        return Names(_taken={body.name: Content(body) for body in bodies})

    def named(self, body: Graph, suffix: str) -> Graph:
        """The body under its name; where a body of equal content was named before, under its name and input names."""
        base = kernel_name(body, suffix)
        given = self._given.setdefault(base, {})
        key = Content(body)
        first = given.get(key)
        if first is None:
            number = len(given)
            while self._taken.get(name := f"{base}_{number}" if number else base, key) != key:
                number += 1
            self._taken[name] = key
            first = given[key] = called(body, name)
        return _like(first, body)


def _like(first: Graph, body: Graph) -> Graph:
    """A body that equals another also as text: name and input names are the same, the labels of operators stay its own."""
    labels = [value.node.name for value in first.inputs]
    if labels == [value.node.name for value in body.inputs]:
        return called(body, first.name)
    inputs = tuple(replace(own.node, name=label).out for own, label in zip(body.inputs, labels, strict=True))
    return with_unique_labels(Graph(first.name, inputs, splice(body, inputs), body.aliases))


def called(body: Graph, name: str) -> Graph:
    """The ``body`` under another ``name``, with what is known of its nodes; the same object when that is its name."""
    if name == body.name:
        return body
    made = object.__new__(Graph)
    vars(made).update(vars(body), name=name)
    return made


def suffix_of(body: Graph) -> str:
    """What made a kernel, as its name says: whether it is a whole cluster, was cut out of one, or joined from several."""
    found = _SUFFIXED.search(body.name)
    return found[1] if found else SPLIT if f"_{SPLIT}" in body.name else FUSION


def rename_kernels(graph: Graph) -> Graph:
    """Names every kernel anew from what it holds."""
    names, kernels = Names(), {node: node.body for node in graph.operators if node.body is not None}

    def rewrite(node: Node, args: tuple[Value, ...]) -> Sequence[Value]:
        body = names.named(kernels[node], suffix_of(kernels[node]))
        if body is node.body:
            return keep(node, args).outs
        label = body.name if node.name.startswith(kernels[node].name) else node.name
        return Node(node.op, args, node.attrs, node.types, label, body, node.data).outs

    return with_unique_labels(graph.rebuild(rewrite, kernels))
