"""Regions of a graph that may have their channels last: operators with such a form, joined by the images between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphkernel.passes.format.channels_last import exit_of, form_of, images_in, images_out
from graphkernel.passes.format.convolutions_last import CONVOLVED
from graphkernel.passes.format.layouts import IMAGE, Form, is_image, is_pixel
from graphkernel.passes.format.library_layout import within_library
from graphkernel.passes.format.resized_rows import is_enlarged
from kernelgen.disjoint_sets import DisjointSets
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operators.shape import TRANSPOSE


@dataclass(frozen=True)
class ImageRegion:
    """Operators with their forms, in order; the images whose layout has to change at its borders."""

    forms: Mapping[Node, Form]
    borders: tuple[Value, ...]

    @property
    def convolutions(self) -> tuple[Node, ...]:
        """Those with weights, and gradients of such."""
        return tuple(node for node in self.forms if node.op in CONVOLVED)

    @property
    def handed(self) -> tuple[Value, ...]:
        """The images that pass between what a library computes in its layout and what kernels compute beside it."""
        held = within_library(self.forms)
        pairs = [(value, node) for node in self.forms for value in images_in(node) if value.node in self.forms]
        found = dict.fromkeys(value for value, node in pairs if (value.node in held) != (node in held))
        return tuple(value for value in found if not is_pixel(value))


def image_regions(graph: Graph) -> tuple[ImageRegion, ...]:
    """The regions of a graph that hold a convolution, in its order."""
    if not any(node.op in CONVOLVED for node in graph.operators):
        return ()
    forms = _forms(graph)
    groups: DisjointSets[Value] = DisjointSets()
    firsts: list[Value] = []
    for node in forms:
        first, *others = _joined(node, forms)
        firsts.append(first)
        for value in others:
            groups.join(value, first)
    members: dict[Value, dict[Node, Form]] = {}
    for (node, form), first in zip(forms.items(), firsts, strict=True):
        members.setdefault(groups.of(first), {})[node] = form
    found = (own for own in members.values() if any(node.op in CONVOLVED for node in own))
    return tuple(ImageRegion(own, _borders(graph, own)) for own in found)


def _joined(node: Node, forms: Mapping[Node, Form]) -> list[Value]:
    """The images of an operator, all of which change or none."""
    return [*images_out(node), *(arg for arg in images_in(node) if arg.node in forms or is_image(arg))]


def _forms(graph: Graph) -> dict[Node, Form]:
    found: dict[Node, Form] = {}

    def is_split(value: Value) -> bool:
        return value.type.rank == IMAGE + 1 and value.node in found

    for node in graph.operators:
        form = form_of(node, is_split)
        if form is not None:
            found[node] = form
    return {node: form for node, form in found.items() if not _grows_at_the_end(graph, node, found)}


def _grows_at_the_end(graph: Graph, node: Node, forms: Mapping[Node, Form]) -> bool:
    """Whether an image is enlarged for others than operators with forms: its layout changes before, while it is small."""
    return is_enlarged(node) and forms.keys().isdisjoint(graph.users[node])


def _borders(graph: Graph, forms: Mapping[Node, Form]) -> tuple[Value, ...]:
    """What comes in as an image, or goes out as one; a Transpose there, or an image of one pixel, moves nothing more."""
    entering = [arg for node in forms for arg in images_in(node) if is_image(arg) and arg.node not in forms]
    used = {value: False for node in forms for value in images_out(node)}
    for node in graph.operators:
        if node not in forms and exit_of(node) is None:
            used.update(dict.fromkeys((arg for arg in node.args if arg in used), True))
    used.update(dict.fromkeys((value for value in graph.outputs if value in used), True))
    moved = dict.fromkeys(
        [*(v for v in entering if v.op is not TRANSPOSE), *(v for v, is_used in used.items() if is_used)]
    )
    return tuple(value for value in moved if not is_pixel(value))
