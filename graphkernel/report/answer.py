"""Why two operators are, or are not, in one kernel: the answer in a line, an example, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from graphkernel.decisions import REASONS, Decision
from graphkernel.report.page.counted import counted
from kernelgen.system.escape import line
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.origin import made_of, origin_of

ADVICE: Mapping[str, str] = {
    "not-fused-opaque": "nothing; the host library runs it",
    "not-fused-unlisted": "--flags=--enable_cluster_ops=OPERATOR lets it into kernels",
    "not-fused-disabled": "take it off disable_cluster_ops, or add it to enable_cluster_ops_only",
    "not-fused-dtype": "cast to float32 around it",
    "not-fused-kept": "take the attribute off the operator",
    "not-fused-symbol": "fix the extent: --dim NAME=EXTENT",
    "not-fused-shape": "fix extents that are symbols: --dim NAME=EXTENT",
    "not-fused-limit": "raise composite_op_limit_size",
    "not-fused-pattern-disabled": "take the pattern off disable_fusion_pattern",
    "not-fused-pattern": "--opt-level 3 has more patterns",
    "not-expanded-disabled": "take it off disable_expand_ops, or add it to enable_expand_ops_only",
    "not-expanded-unlisted": "--flags=--enable_expand_ops=OPERATOR",
}
"""What a user can do about a reason; nothing for the others: they follow from the graph, or from what is faster."""

NOTHING = "nothing; it follows from the graph, or is faster so"
REFUSED = "not-"


@dataclass(frozen=True)
class Pair:
    """Two operators as a user called them, and for each the labels that are meant."""

    first: str
    second: str
    left: frozenset[str]
    right: frozenset[str]

    @property
    def sides(self) -> tuple[frozenset[str], frozenset[str]]:
        """The labels of the one and of the other."""
        return self.left, self.right


Place = tuple[str, str]
"""Labels of two operators, one of which feeds the other."""


def answer(before: Graph, after: Graph, decisions: Sequence[Decision], pair: Pair) -> list[str]:
    """The lines of the answer. The first says it all; an example and what to do stand behind it."""
    bodies = {node: node.body.operators for node in after.operators if node.body is not None}
    made = made_of(before, chain.from_iterable(bodies.values()))
    kernels = {
        kernel: {label for node in held for label in (node.name, *(origin.name for origin in made[node]))}
        for kernel, held in bodies.items()
    }
    places = list(_places(before, pair))
    held = [node for node, origins in kernels.items() if origins & pair.left and origins & pair.right]
    apart = [place for place in places if not any(set(place) <= origins for origins in kernels.values())]
    if held and not apart:
        return [_together(pair, held, len(places), len(places))]
    reasons = _reasons(decisions, apart, pair)
    shared = len(places) - len(apart)
    head = _together(pair, held, shared, len(places)) if held else _nowhere(pair, len(places))
    if not reasons:
        return [head]
    code = Counter(found.code for found in reasons).most_common(1)[0][0]
    example = next(found for found in reasons if found.code == code)
    why = f"{head}: {line(example.message or REASONS[code])} ({code})"
    return [why, _example(example, apart, before), f"what to do: {ADVICE.get(code, NOTHING)}"]


def _example(decision: Decision, apart: Sequence[Place], before: Graph) -> str:
    """A place that the decision is about, in the model's names; the decision itself where the two are no neighbours."""
    known = {node.name for node in before.nodes}
    about = {origin_of(label, known) for label in (decision.subject, decision.other) if label}
    for feeder, reader in apart:
        if about & {feeder, reader}:
            return line(f"for example {_of_model(feeder, before)} -> {_of_model(reader, before)}")
    return f"for example {decision}"


def _of_model(label: str, graph: Graph) -> str:
    """The name that the model gives to the node, where it gives one."""
    origin = graph.origins.get(label)
    return origin.node if origin is not None and origin.node else label


def _together(pair: Pair, held: Sequence[Node], shared: int, places: int) -> str:
    names = list(dict.fromkeys(node.body.name for node in held if node.body is not None))
    more = f" and {counted(len(names) - 1, 'other')}" if len(names) > 1 else ""
    how_many = f"{shared} of {places}" if shared < places else f"all {places}"
    often = f", at {how_many} places where one feeds the other" if places > 1 else ""
    return line(f"{pair.first} and {pair.second} are both in kernel {names[0]}{more}{often}")


def _nowhere(pair: Pair, places: int) -> str:
    where = "not at the one place" if places == 1 else f"at none of the {places} places"
    often = f"{where} where one feeds the other" if places else "neither feeds the other"
    return line(f"no kernel holds both {pair.first} and {pair.second}, {often}")


def _places(graph: Graph, pair: Pair) -> Iterator[Place]:
    """Where one of the two feeds the other."""
    for node in graph.operators:
        for feeder in dict.fromkeys(value.node.name for value in node.args):
            if any(feeder in one and node.name in other for one, other in (pair.sides, pair.sides[::-1])):
                yield feeder, node.name


def _reasons(decisions: Sequence[Decision], apart: Sequence[Place], pair: Pair) -> list[Decision]:
    """What kept the operators of these places apart: said of both, else of one of them."""
    wanted = {*chain.from_iterable(apart)} or pair.left | pair.right
    left, right = _from(pair.left, wanted), _from(pair.right, wanted)
    of_one = [each for each in decisions if each.code.startswith(REFUSED) and _told(each) & (left | right)]
    of_two = [each for each in of_one if _is_of_both(each, left, right)]
    alone = [each for each in of_one if not each.other and each.code.startswith("not-fused")]
    return of_two or alone or of_one


def _told(decision: Decision) -> set[str]:
    return {decision.subject, decision.other}


def _from(labels: Iterable[str], wanted: Collection[str]) -> set[str]:
    """Those that come from a wanted one."""
    return {label for label in labels if origin_of(label, wanted) is not None}


def _is_of_both(decision: Decision, left: set[str], right: set[str]) -> bool:
    """Whether it is about an operator of each side and no other one."""
    told = _told(decision)
    return told <= left | right and bool(told & left) and bool(told & right)
