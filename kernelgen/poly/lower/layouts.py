"""TransData and LayoutTransform: the same elements in blocks, padded with zeros to whole blocks.

FRACTAL_NZ stores a matrix ``[.., M, N]`` as ``[.., N/16, M/16, 16, 16]``. Other layouts are spelled: in ``NCHW16c`` a
capital is a dim, in blocks where it is blocked, and ``16c`` the places inside of a block of C.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelgen.errors import UnsupportedError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Index, Num
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points, flatten
from kernelgen.poly.lower.products import BLOCK, FRACTAL, fractal_places
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.graph import Node, Value

SPELLED = {"NC1HWC0": "NCHW16c", "DefaultFormat": "NCHW"}


def _formats(node: Node) -> tuple[str, str]:
    return node.attrs.str("src_format", "DefaultFormat"), node.attrs.str("dst_format", "DefaultFormat")


def _relate(axes: TensorAxes, node: Node) -> None:
    """All dims are addressed by number, but for those in front of a matrix."""
    source, result = axes.of(node.args[0]), axes.of(node.out)
    outer = 0
    if FRACTAL in _formats(node):
        outer = max(min(len(source), len(result)) - 2, 0)
        axes.pair(source[:outer], result[:outer], node)
    axes.hold(*source[outer:], *result[outer:])


def _transform(builder: Builder, node: Node, name: str) -> None:
    """``out[i] = in[the same element]``; what was padded is cut off again, what the operand lacks is 0."""
    points = builder.points(node.out)
    before, after = _formats(node)
    if after == FRACTAL:
        places = _from_blocks(points)
        places = places if len(node.args[0].shape) > 1 else places[1:]
        rank = len(node.args[0].shape)
        value = builder.within(node.args[0], places, range(max(rank - 2, 0), rank), 0.0)
    elif before == FRACTAL:
        rank = len(node.out.shape)
        row, column = points.position(rank - 2) if rank > 1 else Num(0), points.position(rank - 1)
        value = builder.at(node.args[0], [*points.groups[: max(rank - 2, 0)], *fractal_places(row, column)])
    else:
        source, result = _Layout.of(before, node.args[0]), _Layout.of(after, node.out)
        elements = {letter: result.element(letter, points) for letter in result.letters}
        dims = [
            d for d, part in enumerate(source.parts) if part.isupper() and source.extent(part) != result.extent(part)
        ]
        value = builder.within(node.args[0], source.places(elements), dims, 0.0)
    builder.define(node.out, points, value, name)


def _from_blocks(points: Points) -> list[Place]:
    """The place in the matrix of a point of its blocks."""
    rank = len(points.groups)
    column, row, row_in, column_in = (points.position(d) for d in range(rank - 4, rank))
    outer: list[Place] = list(points.groups[: rank - 4])
    return [*outer, flatten([(row, 1), (row_in, BLOCK)]), flatten([(column, 1), (column_in, BLOCK)])]


@dataclass(frozen=True)
class _Layout:
    """A spelled layout of a tensor: one part for each dim."""

    parts: tuple[str, ...]
    shape: tuple[Dim, ...]

    @staticmethod
    def of(word: str, tensor: Value) -> _Layout:
        spelled = SPELLED.get(word, word)
        parts = tuple(re.findall(r"[A-Z]|\d+[a-z]", spelled))
        letters = [part for part in parts if part.isupper()]
        inner = {part[-1].upper() for part in parts if not part.isupper()}
        if "".join(parts) != spelled or len(parts) != len(tensor.shape) or not inner <= set(letters):
            raise UnsupportedError("unsupported-layout", f"{word!r} is no layout of {list(tensor.shape)}")
        return _Layout(parts, tensor.shape)

    @property
    def letters(self) -> Sequence[str]:
        return [part for part in self.parts if part.isupper()]

    def dims(self, letter: str) -> list[int]:
        """The dims that make up a capital: the blocks, then the places in a block."""
        return [d for d, part in enumerate(self.parts) if part[-1].upper() == letter]

    def extent(self, letter: str) -> Dim:
        """The extent of a capital, padding included."""
        total: Dim = 1
        for d in self.dims(letter):
            total = total * self.shape[d]
        return total

    def element(self, letter: str, points: Points) -> Index:
        """The number along a capital at a point of this tensor."""
        return flatten([(points.position(d), self.shape[d]) for d in self.dims(letter)])

    def places(self, elements: Mapping[str, Index]) -> list[Place]:
        """Where the elements of those numbers lie."""
        places: list[Place] = []
        for d, part in enumerate(self.parts):
            letter = part[-1].upper()
            if letter not in elements:
                raise UnsupportedError("unsupported-layout", f"layouts of different dims: no {letter}")
            inner = self.dims(letter)[1:]
            if not inner:
                places.append(elements[letter])
            elif d in inner:
                places.append(ix.modulo(elements[letter], ix.from_dim(self.shape[d])))
            else:
                places.append(ix.floor_divide(elements[letter], ix.from_dim(self.shape[inner[0]])))
        return places


LAYOUT = Lowering(_relate, _transform)
