"""Who runs each operator, and which operators run together.

What no kernel computes goes to the host library in maximal convex regions. Every operator has a depth: the number of
changes between kernels and libraries on the longest path to it. Operators of one library and one depth form a region: a path
that leaves it and comes back would have gained depth, so no region waits for itself. A view that a region does not hold
lies outside of it like any other step: what reads it comes later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from graphkernel.cluster.liveness import is_view
from graphkernel.ops.library.places import PLACES
from graphkernel.runtime.steps.host import HostLibrary
from kernelgen.tensor.definitions import Place, in_order, needed
from kernelgen.tensor.graph import LEAVES, Graph, Node
from kernelgen.tensor.order import is_ordered

KERNEL, NUMPY, PEERS, NOBODY = "kernel", "numpy", "communicator", ""
BEFORE, REGION, AFTER = range(3)
"""At one depth: views of inputs, then the region, then what may read a view of its results."""


@dataclass(frozen=True)
class Placement:
    """Who runs an operator, after how many changes of hands, whether in a region, and if not, why not."""

    who: str
    depth: int
    in_region: bool = False
    why: str = ""

    def differs_from(self, who: str, in_region: bool) -> bool:
        """Whether what this one leaves must be there before the other starts: between the two hands change."""
        return self.who != NOBODY and (self.who, self.in_region) != (who, in_region)


def placements(
    graph: Graph,
    numbers: frozenset[Node],
    library: HostLibrary,
    declined: Mapping[Node, str],
    places: Mapping[str, Place],
) -> dict[Node, Placement]:
    """Who runs each operator of ``graph``; nobody runs those whose ``numbers`` follow from shapes.

    ``declined`` says of operators why no kernel and no region takes them; ``library`` takes others in regions. What is
    told a symbol comes behind the operator that defines it, one of those of ``places``.
    """
    declined = {**declined, **dict.fromkeys(numbers, "")}
    groups = {
        node: None
        if is_view(node) or _is_of_ours(node) or is_ordered(node) or node in declined
        else library.group(node)
        for node in graph.operators
    }
    inner = {node: group for node, group in _views_inside(graph, groups, library).items() if node not in declined}
    hands: dict[Node, Placement] = {}
    for node in in_order(graph, places):
        if node in numbers or node.op in LEAVES:
            continue
        before = [hands[value.node] for value in needed(node, places) if value.node in hands]
        if is_view(node) and node not in inner:
            hands[node] = replace(before[0], in_region=False) if before else Placement(NOBODY, 0)
            continue
        group = inner.get(node, groups[node])
        who = KERNEL if _is_of_ours(node) else PEERS if is_ordered(node) else NUMPY if group is None else group
        in_region = who not in (KERNEL, PEERS, NUMPY)
        depth = max((hand.depth + hand.differs_from(who, in_region) for hand in before), default=0)
        why = declined.get(node) or library.why_not(node) if who == NUMPY else ""
        hands[node] = Placement(who, depth, in_region, why)
    return _with_constants_late(graph, hands)


def _is_of_ours(node: Node) -> bool:
    """Whether it is machine code of ours."""
    return node.body is not None or node.op is PLACES


def _with_constants_late(graph: Graph, hands: Mapping[Node, Placement]) -> dict[Node, Placement]:
    """What is computed from constants alone is computed as late as its users allow, so that it need not lie there all along.

    In a region it joins the one that first needs it: there the library folds it when it opens the session, or reads
    quantized weights as they are; in the first region it would compute all weights of the network anew in each run, and
    hand them on. What would need a region of its own stays.
    """
    found = dict(hands)
    for node in reversed(_from_constants(hands)):
        mine, users = found[node], [found[user] for user in graph.users[node] if user in found]
        stays = mine.in_region and not all(user.in_region and user.who == mine.who for user in users)
        if users and not stays:
            depth = min(user.depth - mine.differs_from(user.who, user.in_region) for user in users)
            found[node] = replace(mine, depth=depth)
    return found


def _from_constants(hands: Mapping[Node, Placement]) -> list[Node]:
    """The operators that follow from constants alone, and of which nothing but operands says when, operands before users."""
    found: dict[Node, None] = {}
    for node in hands:
        if node.defines or is_ordered(node):
            continue
        if all(value.is_known or value.node in found for value in node.args):
            found[node] = None
    return list(found)


def _views_inside(graph: Graph, groups: Mapping[Node, str | None], library: HostLibrary) -> dict[Node, str]:
    """Views between two operators of one group belong to the region; all others cost nothing outside."""
    inside: dict[Node, str] = {}
    for node in graph.operators:
        if not is_view(node):
            continue
        producer = node.args[0].node
        group = inside.get(producer) if is_view(producer) else groups.get(producer)
        if group is not None and group in _groups_after(graph, node, groups) and library.group(node) is not None:
            inside[node] = group
    return inside


def _groups_after(graph: Graph, view: Node, groups: Mapping[Node, str | None]) -> set[str | None]:
    found: set[str | None] = set()
    waiting = [view]
    while waiting:
        for user in graph.users[waiting.pop()]:
            if is_view(user):
                waiting.append(user)
            else:
                found.add(groups[user])
    return found


def in_regions(graph: Graph, hands: Mapping[Node, Placement]) -> Iterator[tuple[Node, ...]]:
    """The operators in an order that respects their needs; those of one library region together."""
    position = {node: index for index, node in enumerate(hands)}
    regions: dict[tuple[int, str], list[Node]] = {}
    singles: list[tuple[int, int, int, tuple[Node, ...]]] = []
    for node, hand in hands.items():
        if hand.in_region:
            regions.setdefault((hand.depth, hand.who), []).append(node)
        else:
            singles.append((hand.depth, AFTER if hand.who else BEFORE, position[node], (node,)))
    whole = [(depth, REGION, position[nodes[0]], tuple(nodes)) for (depth, _), nodes in regions.items()]
    for *_, members in sorted([*whole, *singles], key=lambda entry: entry[:3]):
        yield members
