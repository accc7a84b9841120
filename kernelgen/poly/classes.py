"""Which buffer dims and statement iterators are the same axis: a union-find over places.

An iterator that indexes a whole buffer dim directly, ``x[.., i, ..]``, is one axis with that dim, and so transitively
with the iterators of all other statements that index it directly. One that runs over a part of the dim is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelgen.nest.index import variables
from kernelgen.nest.nodes import Call, Expr, IndexValue, Var
from kernelgen.poly.scop import Scop, Statement

Place = tuple[str, str, int]  # ("buffer" | "statement", its name, dim or iterator position)


@dataclass
class AxisClasses:
    """``find`` gives the representative of a place; ``computed`` holds the axes whose numbers are computed with."""

    parent: dict[Place, Place] = field(default_factory=dict)
    computed: frozenset[Place] = frozenset()

    def find(self, place: Place) -> Place:
        """The place that stands for the whole class."""
        root = place
        while (above := self.parent.get(root, root)) != root:
            root = above
        self.parent[place] = root
        return root

    def union(self, left: Place, right: Place) -> None:
        """Makes two places one axis."""
        self.parent[self.find(right)] = self.find(left)


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
        computed.extend(place[name] for name in _counted(statement) if name in place)
    classes.computed = frozenset(classes.find(one) for one in computed)
    return classes


def _counted(statement: Statement) -> Iterator[str]:
    """The iterators whose number is a value of the body."""
    waiting: list[Expr] = [part.value for part in statement.body]
    while waiting:
        each = waiting.pop()
        if isinstance(each, IndexValue):
            yield from sorted(variables(each.index))
        elif isinstance(each, Call):
            waiting.extend(each.args)
