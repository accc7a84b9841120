"""The pass to_nhwc_format: the regions of an image network that a CPU computes with channels last, in kernels of ours.

Before and after::

    c = Conv2D(x, w)                   ==>    p = BatchMatMul(x', w', own_kernel=True)    x': f32[N, H, W, C], w': f32[C, O]
    y = Maximum(Add(c, b), 0)                 y' = Maximum(Add(p, b'), 0)                 b': f32[O]

With channels last a convolution of one pixel is a product, weights of others are HWIO constants, and what follows joins
their kernels. Weights that are trained are put into that order at every call, and gradients have the same forms
(:mod:`graphkernel.passes.format.convolutions_last`). A layout changes at the borders of a region only: what a library gives
to kernels, or takes from them, has channels before rows and columns. Which regions change is said by
:mod:`graphkernel.cluster.convolution_cost`.

A region changes as a whole or not at all. A cut through it would pay where one part of a network has kernels that are faster
and the other has none; libraries lose by every cut, since their layouts change there as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphkernel.cluster.convolution_cost import region_cost
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_FILTER
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.format.channels_last import exit_of, images_in, images_out
from graphkernel.passes.format.convolutions_last import filter_by_tiles, is_by_tiles
from graphkernel.passes.format.image_regions import ImageRegion, image_regions
from graphkernel.passes.format.layouts import IMAGE, Form, inverse, is_image, moved, order
from graphkernel.passes.format.winograd import winograd
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.matmul import MATMUL
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.shape import TRANSPOSE


@graph_pass
def to_nhwc_format(graph: Graph, context: Context) -> Graph:
    """Puts channels last in the regions that are faster so, unless flags keep convolutions or products out of kernels."""
    if _is_barred(context.options):
        return graph
    chosen: dict[Node, Form] = {}
    for region in image_regions(graph):
        cost = region_cost(region.convolutions, region.borders, region.handed)
        reason = "own-convolution" if cost.is_own else "not-own-convolution"
        context.log.add(to_nhwc_format.name, reason, region.convolutions[0].name, message=f"{_figures(region)}; {cost}")
        chosen |= region.forms if cost.is_own else {}
    if not chosen:
        return graph
    forms = {node: _by_tiles(node, context) or form for node, form in chosen.items()}
    return with_unique_labels(graph.rebuild(_Rewriter(forms, _read_as_before(graph, forms), context.builder()).rewrite))


def _by_tiles(node: Node, context: Context) -> Form | None:
    """The form of gradients that the pass winograd computes, where it runs."""
    is_off = winograd.name in context.disabled
    return filter_by_tiles if node.op is CONV2D_BACKPROP_FILTER and not is_off and is_by_tiles(node) else None


def _figures(region: ImageRegion) -> str:
    return f"{len(region.convolutions)} of {len(region.forms)} operators, {len(region.borders)} changes of layout"


def _read_as_before(graph: Graph, forms: Mapping[Node, Form]) -> frozenset[Value]:
    """The values of which somebody reads what they are now, with channels before rows and columns."""
    by_others = {arg for node in graph.operators if node not in forms for arg in node.args}
    as_given = {arg for node in forms for arg in node.args if arg not in images_in(node)}
    return frozenset(graph.outputs) | by_others | as_given


def _is_barred(options: Options) -> bool:
    names, only = {CONV2D.name, MATMUL.name}, options.enable_cluster_ops_only
    return bool(names & set(options.disable_cluster_ops)) or bool(only and not names <= set(only))


@dataclass
class _Rewriter:
    """Makes each operator with a form with channels last, and what others read of it as they know it."""

    forms: Mapping[Node, Form]
    read: frozenset[Value]
    """The values that are needed as the graph has them; of others nobody reads what :meth:`rewrite` gives."""
    builder: Builder = field(default_factory=Builder)
    last: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """What a value of the graph is with channels last."""

    def rewrite(self, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values that replace the results of a node."""
        form = self.forms.get(node)
        if form is None:
            return self._outside(node, args)
        images = images_in(node)
        operands = [self._last(old, new) if old in images else new for old, new in zip(node.args, args, strict=True)]
        results = form(node, operands, self.builder)
        if not images_out(node):
            return results
        became = list(zip(node.outs, results, strict=True))
        self.last.update(became)
        return tuple(
            [
                moved(value, inverse(value.type.rank), self.builder) if old in self.read else value
                for old, value in became
            ]
        )

    def _outside(self, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """What reads an image with channels last alike."""
        image, form = (self.last.get(node.args[0]), exit_of(node)) if node.args else (None, None)
        return keep(node, args).outs if image is None or form is None else form(node, (image,), self.builder)

    def _last(self, old: Value, new: Value) -> Value:
        """An operand with channels last; constants stay."""
        if old in self.last or not is_image(old):
            return self.last.get(old, new)
        perm, source = order(IMAGE), new
        if new.op is TRANSPOSE:
            first = new.node.attrs.ints("perm")
            perm, source = tuple(first[axis] % IMAGE for axis in perm), new.node.args[0]
        return self.last.setdefault(old, moved(source, perm, self.builder))
