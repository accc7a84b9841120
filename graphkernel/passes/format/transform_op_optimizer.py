"""The pass transform_op_optimizer: element-wise operators take the format that needs the fewest transforms.

Before and after::

    t = Transpose(x, perm=(1, 0)); e = Exp(t); y = Transpose(e, perm=(1, 0))    ==>    y = Exp(x)

    a = Transpose(x, perm=(1, 0)); b = Transpose(z, perm=(1, 0)); y = Add(a, b)
        ==>
    s = Add(x, z); y = Transpose(s, perm=(1, 0))

One run for each of Transpose, LayoutTransform and Reshape, of any rank and with symbolic extents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass, map_bodies
from graphkernel.passes.format.format_cut import best_formats, transforms_of
from graphkernel.passes.format.format_kinds import KINDS, Format, FormatKind, is_flexible, is_part
from graphkernel.passes.format.format_regions import Regions, find_regions
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep


@graph_pass
def transform_op_optimizer(graph: Graph, context: Context) -> Graph:
    """Chooses formats by minimum cuts; a region changes only when its transforms become fewer. To a fixpoint."""

    def optimized(body: Graph) -> Graph:
        return to_fixpoint(body, context)

    return optimized(map_bodies(graph, optimized))


def to_fixpoint(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies. Ends: no kind makes more of itself or of a dearer one."""
    idle = 0
    for kind in cycle(KINDS):
        before, graph = graph, with_fewest(graph, kind, context)
        idle = idle + 1 if graph is before else 0
        if idle == len(KINDS):
            break
    return graph


def with_fewest(graph: Graph, kind: FormatKind, context: Context) -> Graph:
    """One ``graph`` with the fewest transforms of one ``kind``; decisions go to the log of ``context``."""
    if not any(kind.is_transform(node) for node in graph.operators):
        return graph
    found = find_regions(graph, kind)
    chosen: dict[Value, Format] = {}
    converted: set[Node] = set()
    for region in found.regions:
        choice = best_formats(region, kind, found.format)
        count = transforms_of(region, kind, found.format, choice)
        if count < len(region.transforms):
            chosen.update(choice)
            converted.update(region.transforms)
            message = f"{len(region.transforms)} {kind.name} became {count}"
            context.log.add(
                transform_op_optimizer.name, "transforms-reduced", region.transforms[0].name, message=message
            )
    if not chosen:
        return graph
    return with_unique_labels(graph.rebuild(_Rewriter(kind, found, chosen, converted).rewrite))


@dataclass
class _Rewriter:
    """Makes each root in its chosen format, and each value that others read in the format that it had."""

    kind: FormatKind
    found: Regions
    chosen: Mapping[Value, Format]
    converted: set[Node]
    builder: Builder = field(default_factory=Builder)
    made: dict[Value, Value] = field(default_factory=dict[Value, Value])
    known: dict[tuple[Value, Format], Value] = field(default_factory=dict[tuple[Value, Format], Value])

    def rewrite(self, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values that replace the results of a node, in their present formats."""
        if node in self.converted:
            return (self._in_format(self.found.root[node.out], self.found.format[node.out]),)
        if self._changes(node):
            self.made[node.out] = self._recomputed(node, args)
            return (self._in_format(node.out, self.found.format[node.out]),)
        results = keep(node, args).outs
        self.made.update(zip(node.outs, results, strict=True))
        return results

    def _changes(self, node: Node) -> bool:
        return len(node.types) == 1 and node.out in self.chosen and is_flexible(self.kind, node)

    def _recomputed(self, node: Node, args: tuple[Value, ...]) -> Value:
        wish = self.chosen[node.out]
        operands = tuple(
            self._in_format(self.found.root[old], wish) if is_part(self.kind, node, old) else new
            for old, new in zip(node.args, args, strict=True)
        )
        return node.out if operands == node.args else self.builder.node(node.op, operands, node.attrs, node.name).out

    def _in_format(self, root: Value, want: Format) -> Value:
        """The root in a format; made once."""
        key = (root, want)
        if key not in self.known:
            have = self.chosen[root]
            value = self.kind.convert(self.made.get(root, root), have, want, self.builder)
            self.known[key] = self._folded(value) if root.is_known else value
        return self.known[key]

    def _folded(self, value: Value) -> Value:
        """A converted constant as a constant."""
        if value.is_known:
            return value
        content = value.node.args[0].constant
        return self.builder.constant(np.asarray(value.op.meaning(content, attrs=value.node.attrs)), value.type.dtype)
