"""The pass graph_kernel_splitter: clusters are cut into the kernels that the fusion patterns grow."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from graphkernel.cluster.area import Area, FusionPattern, Mode
from graphkernel.cluster.cost import boundary_bytes, is_greater
from graphkernel.cluster.extract import call_of, extract, splice, with_unique_labels
from graphkernel.cluster.grow import grow
from graphkernel.cluster.model import BARRED, MODELS, NEEDS, Limits
from graphkernel.cluster.naming import FUSION, SPLIT, Names, suffix_of
from graphkernel.cluster.recompute import copies, with_copies
from graphkernel.decisions import DecisionLog
from graphkernel.ir.graph import Graph, Node, Value, keep
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass

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

    def parts(self, body: Graph) -> Graph | None:
        """The body over kernels and ordinary operators; None when it stays the kernel that it is."""
        body, areas = self._grown(body)
        kernels = [area for area in areas if area.mode is Mode.COMPOSITE]
        self._record(areas)
        if len(areas) == 1 and kernels:
            return self._whole(body)
        return extract(body, [area.nodes for area in kernels], lambda part: self._names.named(part, SPLIT))

    def _grown(self, body: Graph) -> tuple[Graph, Sequence[Area]]:
        """The body and its areas; with cheap values copied into their users when that moves fewer bytes."""
        log = DecisionLog()
        areas = grow(body, self._patterns, self._limits, log, self._disabled)
        while self._recomputes and (wanted := copies(body, areas)):
            copied, again = with_copies(body, wanted), DecisionLog()
            fewer = grow(copied, self._patterns, self._limits, again, self._disabled)
            if len(fewer) > len(areas) or not is_greater(boundary_bytes(areas), boundary_bytes(fewer)):
                break
            body, areas, log = copied, fewer, again
            for copy in wanted:
                self._log.add(PASS_NAME, "copied-cheap", copy.value.node.name, copy.users[0].name, copy.message)
        self._log.extend(log)
        return body, areas

    def _whole(self, body: Graph) -> Graph | None:
        """The body as one kernel named by what it holds now; None when that is its name already."""
        named = self._names.named(body, FUSION)
        if named is body:
            return None
        return replace(body, outputs=call_of(named, body.inputs).outs)

    def _record(self, areas: Sequence[Area]) -> None:
        for area in areas:
            if area.mode is Mode.BASIC:
                for node in area.nodes:
                    self._log.add(PASS_NAME, "inlined-basic", node.name)
