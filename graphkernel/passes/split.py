"""The pass graph_kernel_splitter: clusters are cut into the kernels that the fusion patterns grow."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from graphkernel.cluster.area import Area, FusionPattern, Mode
from graphkernel.cluster.cost import boundary_bytes, is_greater
from graphkernel.cluster.fuse_nodes import call_of, extract, splice, with_unique_labels
from graphkernel.cluster.grow_areas import grow
from graphkernel.cluster.naming import FUSION, SPLIT, Names, content, suffix_of
from graphkernel.cluster.recompute import copies, with_copies
from graphkernel.cluster.split_models import BARRED, MODELS, NEEDS, Limits
from graphkernel.decisions import Decision, DecisionLog
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Graph, Node, Value, keep

PASS_NAME = "graph_kernel_splitter"
LOGGER = logging.getLogger("graphkernel.passes")


@graph_pass
def graph_kernel_splitter(graph: Graph, context: Context) -> Graph:
    """Replaces each fused node by its parts: composite areas as kernels, basic areas as ordinary operators."""
    splitter = _Splitter(context)
    parts = {node: splitter.parts(body) for node in graph.operators if (body := _cluster(node)) is not None}
    if all(part is None for part in parts.values()):
        return graph

    def rewrite(node: Node, args: tuple[Value, ...]) -> Sequence[Value]:
        part = parts.get(node)
        return keep(node, args).outs if part is None else splice(part, args)

    return with_unique_labels(graph.rebuild(rewrite))


def _cluster(node: Node) -> Graph | None:
    """The body of a kernel that was not cut before."""
    return node.body if node.body is not None and suffix_of(node.body) == FUSION else None


def enabled_patterns(patterns: Sequence[FusionPattern], options: Options) -> tuple[FusionPattern, ...]:
    """The patterns in the order of the target's model, without those switched off.

    As in MindSpore a part of a name is enough: ``reduce`` means every pattern with "reduce" in its name; and the log (INFO)
    says of each whether it is enabled.
    """
    return tuple(pattern for pattern in _in_order(patterns, options) if _is_enabled(pattern.name, options))


def _in_order(patterns: Sequence[FusionPattern], options: Options) -> list[FusionPattern]:
    """The patterns of the target's model whose own flags allow them; those of no model come last."""
    order = {name: turn for turn, name in enumerate(MODELS[options.target].patterns)}
    foreign = frozenset(name for model in MODELS.values() for name in model.patterns).difference(order)
    own = [pattern for pattern in patterns if pattern.name not in foreign and _is_allowed(pattern.name, options)]
    return sorted(own, key=lambda pattern: (order.get(pattern.name, len(order)), pattern.name))


def _is_allowed(name: str, options: Options) -> bool:
    needed, barring = NEEDS.get(name), BARRED.get(name)
    return (needed is None or options.is_on(needed)) and (barring is None or not options.is_on(barring))


def _is_enabled(name: str, options: Options) -> bool:
    """Whether the pattern lists of the flags leave a pattern on; MindSpore's log lines say so."""
    only, without = options.enable_fusion_pattern_only, options.disable_fusion_pattern
    if only and not any(part in name for part in only):
        LOGGER.info("Disable pattern by only flag: %s", name)
        return False
    if not only and any(part in name for part in without):
        LOGGER.info("Disable pattern by disable flag: %s", name)
        return False
    LOGGER.info("Enable pattern: %s", name)
    return True


def limits_of(options: Options) -> Limits:
    """The limits of the target with those that flags set."""
    limits = MODELS[options.target].limits
    depth = limits.reduce_fuse_depth if options.reduce_fuse_depth < 0 else options.reduce_fuse_depth
    return replace(limits, composite_op_limit_size=options.composite_op_limit_size, reduce_fuse_depth=depth)


@dataclass(frozen=True)
class _Part:
    """An area of a body: its operators by position, and what becomes of it."""

    positions: tuple[int, ...]
    mode: Mode


@dataclass(frozen=True)
class _Cut:
    """The parts of a body and the decisions on them, good for all bodies of the same content: layers repeat.

    ``labels`` are those that the decisions name, by position.
    """

    parts: tuple[_Part, ...]
    decisions: tuple[Decision, ...]
    labels: tuple[str, ...]

    @staticmethod
    def of(body: Graph, areas: Sequence[Area], decisions: Iterable[Decision]) -> _Cut:
        """What was decided on a body."""
        position = {node: index for index, node in enumerate(body.operators)}
        parts = tuple(_Part(tuple(position[node] for node in area.nodes), area.mode) for area in areas)
        return _Cut(parts, tuple(decisions), tuple(node.name for node in body.operators))

    def decisions_on(self, body: Graph) -> Iterable[Decision]:
        """The same decisions on another body, by the labels that its operators have."""
        names = tuple(node.name for node in body.operators)
        if names == self.labels:
            return self.decisions
        labels = dict(zip(self.labels, names, strict=True))
        return (replace(made, subject=labels[made.subject], other=labels[made.other]) for made in self.decisions)


class _Splitter:
    """Cuts bodies; kernel names are unique over all of them."""

    def __init__(self, context: Context) -> None:
        self._patterns = enabled_patterns(context.fusion_patterns, context.options)
        ordered = _in_order(context.fusion_patterns, context.options)
        self._disabled = tuple(pattern for pattern in ordered if pattern not in self._patterns)
        self._limits = limits_of(context.options)
        self._recomputes = context.options.is_on("enable_recompute_fusion")
        self._log = context.log
        self._names = Names()
        self._known: dict[Hashable, _Cut] = {}

    def parts(self, body: Graph) -> Graph | None:
        """The body over kernels and ordinary operators; None when it stays the kernel that it is."""
        body, cut = self._cut(body)
        self._log.extend(cut.decisions_on(body))
        kernels = [part for part in cut.parts if part.mode is Mode.COMPOSITE]
        self._record(body, cut.parts)
        if len(cut.parts) == 1 and kernels:
            return self._whole(body)
        groups = [[body.operators[position] for position in part.positions] for part in kernels]
        return extract(body, groups, lambda part: self._names.named(part, SPLIT))

    def _cut(self, body: Graph) -> tuple[Graph, _Cut]:
        """The body, perhaps with copies in it, and how it is cut; bodies of one content are looked at once."""
        key = content(body)
        if key in self._known:
            return body, self._known[key]
        grown, areas, log = self._grown(body)
        cut = _Cut.of(grown, areas, log)
        if grown is body:
            self._known[key] = cut
        return grown, cut

    def _grown(self, body: Graph) -> tuple[Graph, Sequence[Area], DecisionLog]:
        """The body, its areas and why they are so; with cheap values copied into their users when that moves fewer bytes."""
        grown = grow(body, self._patterns, self._limits)
        while self._recomputes and (wanted := copies(body, grown.areas)):
            copied = with_copies(body, wanted)
            again = grow(copied, self._patterns, self._limits)
            fewer = is_greater(boundary_bytes(grown.areas), boundary_bytes(again.areas))
            if len(again.areas) > len(grown.areas) or not fewer:
                break
            body, grown = copied, again
            for copy in wanted:
                self._log.add(PASS_NAME, "copied-cheap", copy.value.node.name, copy.users[0].name, copy.message)
        return body, grown.areas, grown.decisions(self._disabled)

    def _whole(self, body: Graph) -> Graph | None:
        """The body as one kernel named by what it holds now; None when that is its name already."""
        named = self._names.named(body, FUSION)
        if named is body:
            return None
        return replace(body, outputs=call_of(named, body.inputs).outs)

    def _record(self, body: Graph, parts: Sequence[_Part]) -> None:
        for part in parts:
            if part.mode is Mode.BASIC:
                for position in part.positions:
                    self._log.add(PASS_NAME, "inlined-basic", body.operators[position].name)
