"""Which buffer dims and statement iterators are the same axis: a union-find over places.

An iterator that indexes a whole buffer dim directly, ``x[.., i, ..]``, is one axis with that dim, and so transitively
with the iterators of all other statements that index it directly. One that runs over a part of the dim is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelgen.disjoint_sets import DisjointSets
from kernelgen.nest.index import variables
from kernelgen.nest.nodes import Var
from kernelgen.poly.model.scop import Scop, Statement

Place = tuple[str, str, int]  # ("buffer" | "statement", its name, dim or iterator position)


@dataclass
class AxisClasses:
    """``find`` gives the representative of a place; ``computed`` holds the axes whose numbers decide where an access goes
    in another way than along a dim, alone.

    ``blocked`` maps an axis that counts blocks to the axis that the blocks are of, ``overlapping`` are those whose blocks
    overlap.
    """

    joined: DisjointSets[Place] = field(default_factory=DisjointSets[Place])
    computed: frozenset[Place] = frozenset()
    blocked: dict[Place, Place] = field(default_factory=dict)
    overlapping: frozenset[Place] = frozenset()

    def find(self, place: Place) -> Place:
        """The place that stands for the whole class."""
        return self.joined.of(place)

    def axes_of(self, statement: Statement) -> tuple[Place, ...]:
        """The class of each iterator of a ``statement``."""
        return tuple(self.find(("statement", statement.name, k)) for k in range(len(statement.iterators)))

    def union(self, left: Place, right: Place) -> None:
        """Makes two places one axis."""
        self.joined.join(left, right)


def axis_classes(scop: Scop) -> AxisClasses:
    """The classes of a scop."""
    classes = AxisClasses()
    computed: list[Place] = []
    for statement in scop.statements:
        place = {it.name: ("statement", statement.name, k) for k, it in enumerate(statement.iterators)}
        extents = {it.name: it.extent for it in statement.iterators}
        for access in (*statement.reads, *statement.writes):
            for dim, index in enumerate(access.index):
                if isinstance(index, Var) and extents.get(index.name) == access.buffer.shape[dim]:
                    classes.union(("buffer", access.buffer.name, dim), place[index.name])
                else:
                    computed.append(("buffer", access.buffer.name, dim))
                    computed.extend(place[name] for name in variables(index) if name in place)
    _join_blocks(scop, classes)
    classes.computed = frozenset(classes.find(one) for one in computed)
    return classes


def _join_blocks(scop: Scop, classes: AxisClasses) -> None:
    """Blocks of one length of one axis are one axis too."""
    found: dict[tuple[Place, int], Place] = {}
    for statement in scop.statements:
        names = [it.name for it in statement.iterators]
        for k, it in enumerate(statement.iterators):
            if it.blocks is not None and it.blocks.of and it.blocks.overlapping is None:
                axis = classes.find(("statement", statement.name, names.index(it.blocks.of)))
                first = found.setdefault((axis, it.blocks.length), ("statement", statement.name, k))
                classes.union(first, ("statement", statement.name, k))
    classes.blocked = {classes.find(block): classes.find(axis) for (axis, _), block in found.items()}
    classes.overlapping = frozenset(
        classes.find(("statement", statement.name, k))
        for statement in scop.statements
        for k, it in enumerate(statement.iterators)
        if it.blocks is not None and it.blocks.overlapping is not None
    )
