"""Large graphs in pieces that fit a screen: by the scopes of their nodes' names, else by their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import ceil, sqrt

MOST_BOXES = 250  # of one drawing


@dataclass(frozen=True)
class Group:
    """Boxes that stand together under a name, in pieces where they are many."""

    name: str
    parts: tuple[Group | int, ...]

    def members(self) -> list[int]:
        """All boxes inside, in order."""
        inside: list[int] = []
        for part in self.parts:
            inside.extend([part] if isinstance(part, int) else part.members())
        return sorted(inside)


def path_of(name: str) -> tuple[str, ...]:
    """``/encoder/layer.0/MatMul`` and ``encoder.layer_0.matmul`` as the scopes that they name, outermost first."""
    return tuple(filter(None, re.split("/" if "/" in name else r"\.", name)))


def grouped(name: str, paths: Sequence[tuple[str, ...]]) -> Group:
    """All boxes, given by their paths, as one group whose drawings hold no more than a screen does.

    Boxes without a path, such as inputs, stand beside the scopes of the others.
    """
    return _group(name, list(range(len(paths))), paths)


def _group(name: str, boxes: Sequence[int], paths: Sequence[tuple[str, ...]]) -> Group:
    parts = list[Group | int](boxes) if len(boxes) <= MOST_BOXES else _by_scope(boxes, paths)
    while len(parts) > MOST_BOXES:
        parts = _by_order(parts, paths)
    return Group(name, tuple(parts))


def _by_scope(boxes: Sequence[int], paths: Sequence[tuple[str, ...]]) -> list[Group | int]:
    """By the first scope in which the boxes differ; one that is alone in its scope stands for itself."""
    named = [paths[box] for box in boxes if paths[box]]
    common = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, zip(*named)))  # noqa: B905  # to the shortest
    inside: dict[tuple[str, int], list[int]] = {}
    for box in boxes:
        key = (paths[box][common], -1) if len(paths[box]) > common + 1 else ("", box)
        inside.setdefault(key, []).append(box)
    return [
        members[0] if len(members) == 1 else _group("/".join(paths[members[0]][: common + 1]), members, paths)
        for members in inside.values()
    ]


def _by_order(parts: Sequence[Group | int], paths: Sequence[tuple[str, ...]]) -> list[Group | int]:
    """As many in a row as make a drawing of the pieces, and of each piece, about equally large."""
    size = max(2, ceil(sqrt(len(parts))))
    pieces = [parts[start : start + size] for start in range(0, len(parts), size)]
    return [Group(_span(piece, paths), tuple(piece)) for piece in pieces]


def _span(piece: Sequence[Group | int], paths: Sequence[tuple[str, ...]]) -> str:
    """The first and the last name among some parts; inputs and outputs have none."""
    names = [name for part in piece if (name := _name(part, paths))]
    return f"{names[0]} … {names[-1]}" if names else "inputs and outputs"


def _name(part: Group | int, paths: Sequence[tuple[str, ...]]) -> str:
    """The last scope of a group, the own name of a box."""
    if isinstance(part, Group):
        return part.name.split(" … ")[0].rsplit("/", 1)[-1]
    return paths[part][-1] if paths[part] else ""
