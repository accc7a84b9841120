"""The builder of imported graphs: nodes are called after the ONNX nodes that they come from, and are told no symbol too early.

Symbols that operators define are known behind these operators only: a node that mentions one must be computed from what
defines it. Operators of ours that take for granted that no extent is 0 are not made over such symbols.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphkernel.errors import TypeRuleError
from graphkernel.frontends.onnx.types.derived_extents import take_back
from graphkernel.ops.composite.split_sizes import SPLIT_WITH_SIZE
from graphkernel.ops.library.host import ONNX
from kernelgen.tensor.definitions import mentioned_by
from kernelgen.tensor.graph import Builder, Node, Origin, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.pieces import SLICE, SPLIT, STRIDED_SLICE
from kernelgen.tensor.types import Attrs, Dim, Sym

if TYPE_CHECKING:
    from onnx import NodeProto

CUTTING = frozenset({SLICE, SPLIT, SPLIT_WITH_SIZE, STRIDED_SLICE})


class ModelBuilder(Builder):
    """The first node that stands for an ONNX node has its name, the others numbers behind it.

    ``told`` are the symbols that are known before anything is computed; whoever derives some adds them.
    """

    def __init__(self, nodes: Iterable[NodeProto], told: set[str]) -> None:
        super().__init__()
        self.origins: dict[str, Origin] = {}
        self.told = told
        self._from = Origin("", "")
        self._unused = {_name_of(node) for node in nodes}
        self._numbers: dict[str, int] = {}
        self._behind: dict[Node, frozenset[str]] = {}
        self._is_held = False

    def enter(self, node: NodeProto) -> None:
        """What comes now stands for this node, unless it is written out for another."""
        if not self._is_held:
            self.origin, self._from = _name_of(node), Origin(node.op_type, node.name)

    @contextmanager
    def held(self) -> Generator[None]:
        """All of what comes stands for the node that was entered last; where it fails, no label was given."""
        around, self._is_held = self._is_held, True
        unused, number = self.origin in self._unused, self._numbers.get(self.origin)
        counts = len(self._numbers), len(self.origins)
        try:
            yield
        except Exception:
            for table, count in zip((self._numbers, self.origins), counts, strict=True):
                take_back(table, count)
            self._numbers |= {} if number is None else {self.origin: number}
            self._unused |= {self.origin} if unused else set()
            raise
        finally:
            self._is_held = around

    def label(self, wish: str) -> str:
        """The wish, or the name of the ONNX node; made unique by a number."""
        name = self.origin if self.origin and wish == "t" else wish
        free = name
        self._unused.discard(name)
        while free in self._numbers or free in self._unused:
            self._numbers[name] = self._numbers.get(name, 0) + 1
            free = f"{name}_{self._numbers[name]}"
        self._numbers.setdefault(free, 0)
        if wish == "t" and self._from.operator:
            self.origins[free] = self._from
        return free

    def behind(self, values: Iterable[Value]) -> frozenset[str]:
        """The symbols that are defined by what these values are computed from."""
        return frozenset[str]().union(*(self._behind.get(value.node, ()) for value in values))

    def is_told(self, values: Iterable[Value]) -> bool:
        """Whether no extent of these values depends on data."""
        return all(self.told.issuperset(value.type.symbols) for value in values)

    def _made(self, op: Operator, operands: tuple[Value, ...], attrs: Attrs, name: str) -> Node:
        node = super()._made(op, operands, attrs, name)
        behind = self.behind(operands)
        defined = node.defines
        if missing := sorted(mentioned_by(node) - self.told - behind - set(defined)):
            raise TypeRuleError(f"{op.name} is told {missing[0]}, which no operand is computed from")
        if op is not ONNX and behind:
            _check_extents(node, behind)
        if behind or defined:
            self._behind[node] = behind.union(defined)
        return node


def _check_extents(node: Node, behind: frozenset[str]) -> None:
    """Extents that depend on data may be 0."""
    for type_ in node.types:
        for dim in type_.shape:
            if _depends(dim, behind) and _may_be_negative(dim):
                raise TypeRuleError(f"{node.op.name}: the extent {dim} may be negative")
    if node.op in CUTTING:
        for have, want in zip(node.args[0].type.shape, node.types[0].shape, strict=False):
            if have != want and _depends(have, behind):
                raise TypeRuleError(f"{node.op.name}: the extent {have} may be 0")


def _may_be_negative(dim: Dim) -> bool:
    return isinstance(dim, Sym) and any(factor < 0 for _, factor in dim.terms)


def _depends(dim: Dim, behind: frozenset[str]) -> bool:
    return isinstance(dim, Sym) and not behind.isdisjoint(dim.symbols)


def _name_of(node: NodeProto) -> str:
    """The node's name, or that of its first result."""
    return node.name or next(filter(None, node.output), "")
