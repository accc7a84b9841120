"""The pass graph_kernel_splitter: clusters are cut into the kernels that the fusion patterns grow."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from graphkernel.cluster.area import Area, FusionPattern, Mode
from graphkernel.cluster.cost import is_greater
from graphkernel.cluster.fuse_nodes import call_of, extract, splice, with_unique_labels
from graphkernel.cluster.grow_areas import decisions_between, grow
from graphkernel.cluster.naming import FUSION, SPLIT, Content, Names, suffix_of
from graphkernel.cluster.recompute import copies, moved_bytes, with_copies
from graphkernel.cluster.sections import Section, Sections, has_sections, likeness
from graphkernel.cluster.split_models import BARRED, MODELS, NEEDS, Limits
from graphkernel.decisions import Decision, Told
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Graph, Node

PASS_NAME = "graph_kernel_splitter"
LOGGER = logging.getLogger("graphkernel.passes")


@graph_pass
def graph_kernel_splitter(graph: Graph, context: Context) -> Graph:
    """Replaces each fused node by its parts: composite areas as kernels, basic areas as ordinary operators."""
    splitter = _Splitter(context)
    parts = {node: splitter.parts(body) for node in graph.operators if (body := _cluster(node)) is not None}
    cut = {node: part for node, part in parts.items() if part is not None}
    if not cut:
        return graph
    return with_unique_labels(graph.rebuild(lambda node, args: splice(cut[node], args), cut))


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
    """An area: its operators by position, and what becomes of it."""

    positions: tuple[int, ...]
    mode: Mode

    def among(self, nodes: Sequence[Node]) -> list[Node]:
        """Its operators, when these are those that it counts."""
        return [nodes[position] for position in self.positions]

    def moved(self, section: Section, position: Mapping[Node, int]) -> _Part:
        """The same area by the positions that the operators of a section have elsewhere."""
        return _Part(tuple([position[node] for node in self.among(section)]), self.mode)


@dataclass(frozen=True)
class _Cut:
    """The parts of a body, or of a section of one, and what was decided; good for all that are alike: layers repeat.

    ``labels`` are those that the decisions name, by position.
    """

    parts: tuple[_Part, ...]
    told: Told
    labels: tuple[str, ...]

    @staticmethod
    def of(nodes: Sequence[Node], areas: Sequence[Area], told: Told) -> _Cut:
        """The cut of operators into areas."""
        position = {node: index for index, node in enumerate(nodes)}
        parts = tuple(_Part(tuple(position[node] for node in area.nodes), area.mode) for area in areas)
        return _Cut(parts, told, _labels(nodes))

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided, in words."""
        return tuple(self.told())

    def decisions_on(self, nodes: Sequence[Node]) -> Iterable[Decision]:
        """The same decisions on other operators, by the labels that these have."""
        names = _labels(nodes)
        if names == self.labels:
            return self.decisions
        labels = dict(zip(self.labels, names, strict=True))
        return (replace(made, subject=labels[made.subject], other=labels[made.other]) for made in self.decisions)

    def groups(self, body: Graph) -> list[list[Node]]:
        """The operators of each part of a body."""
        return [part.among(body.operators) for part in self.parts]


def _labels(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple([node.name for node in nodes])


def _decisions(body: Graph, cuts: Sequence[tuple[Section, _Cut]]) -> Iterator[Decision]:
    """What was decided in the sections of a body, and between them."""
    for section, cut in cuts:
        yield from cut.decisions_on(section)
    home = {node: number for number, (section, _) in enumerate(cuts) for node in section}
    yield from decisions_between(body, [part.among(section) for section, cut in cuts for part in cut.parts], home)


class _Splitter:
    """Cuts bodies; kernel names are unique over all of them."""

    def __init__(self, context: Context) -> None:
        self._patterns = enabled_patterns(context.fusion_patterns, context.options)
        ordered = _in_order(context.fusion_patterns, context.options)
        self._disabled = tuple(pattern for pattern in ordered if pattern not in self._patterns)
        model = MODELS[context.options.target]
        self._has_sections = all(pattern.name in model.patterns for pattern in ordered)  # others may join anything
        self._limits = limits_of(context.options)
        self._recomputes = context.options.is_on("enable_recompute_fusion")
        self._log = context.log
        self._names = Names()
        self._known: dict[Hashable, _Cut] = {}

    def parts(self, body: Graph) -> Graph | None:
        """The body over kernels and ordinary operators; None when it stays the kernel that it is."""
        body, cut = self._cut(body)
        self._log.tell_later(partial(cut.decisions_on, body.operators))
        kernels = [part for part in cut.parts if part.mode is Mode.COMPOSITE]
        self._record(body, cut.parts)
        if len(cut.parts) == 1 and kernels:
            return self._whole(body)
        groups = [part.among(body.operators) for part in kernels]
        return extract(body, groups, lambda part: self._names.named(part, SPLIT))

    def _cut(self, body: Graph) -> tuple[Graph, _Cut]:
        """The body, perhaps with copies in it, and how it is cut; bodies of one content are looked at once."""
        key = Content(body)
        known = self._known.get(key)
        if known is not None:
            return body, known
        grown, cut = self._grown(body)
        if grown is body:
            self._known[key] = cut
        return grown, cut

    def _grown(self, body: Graph) -> tuple[Graph, _Cut]:
        """The body and its cut; with cheap values copied into their users when that moves fewer bytes."""
        cut = self._by_sections(body)
        while self._recomputes and (wanted := copies(body, cut.groups(body))):
            copied = with_copies(body, wanted)
            again = self._by_sections(copied)
            fewer = is_greater(moved_bytes(body, cut.groups(body)), moved_bytes(copied, again.groups(copied)))
            if len(again.parts) > len(cut.parts) or not fewer:
                break
            body, cut = copied, again
            for copy in wanted:
                self._log.add(PASS_NAME, "copied-cheap", copy.value.node.name, copy.users[0].name, copy.message)
        return body, cut

    def _by_sections(self, body: Graph) -> _Cut:
        """The cut of a body whose sections grow apart, those that are alike once."""
        if not (self._has_sections and has_sections(body)):
            return self._section(body, body.operators)
        position = {node: index for index, node in enumerate(body.operators)}
        sections = Sections(body)
        while True:
            cuts = [(section, self._known_section(body, section)) for section in sections.found()]
            parts = [part.moved(section, position) for section, cut in cuts for part in cut.parts]
            if len(cuts) == 1 or not sections.join_siblings(part.among(body.operators) for part in parts):
                return _Cut(tuple(parts), partial(_decisions, body, cuts), _labels(body.operators))

    def _known_section(self, body: Graph, section: Section) -> _Cut:
        key = likeness(body, section)
        known = self._known.get(key)  # a key is all that a section holds, and its hash walks through it
        if known is None:
            known = self._known[key] = self._section(body, section)
        return known

    def _section(self, body: Graph, section: Section) -> _Cut:
        """How a section of a body grows."""
        growth = grow(body, self._patterns, self._limits, section)
        return _Cut.of(section, growth.areas, partial(growth.decisions, self._disabled))

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
