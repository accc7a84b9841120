"""AKG's composite JSON with types: operators over named tensors, in the order of the file.

Names are the only linkage, and the name of an input that an operator assigns to stands for another value afterwards.
:mod:`kernelgen.composite.link` makes a graph of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kernelgen.composite.description import ParallelFusion, Tensor
from kernelgen.composite.vocabulary import INPLACE_ASSIGN, operator_named
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.effects import ASSIGN

IN_PLACE = frozenset({ASSIGN, INPLACE_ASSIGN})
"""Operand 0 takes the value of operand 1; the result equals operand 1 (Assign) or operand 2 (InplaceAssign)."""


@dataclass(frozen=True)
class Operation:
    """One operator: variadic operands are flattened into ``args``."""

    name: str
    args: tuple[Tensor, ...]
    outs: tuple[Tensor, ...]
    attrs: Attrs = field(default_factory=Attrs)
    declared: Operator | None = None

    @property
    def op(self) -> Operator:
        """The operator of that name: of the vocabulary, or of a user's package."""
        return self.declared or operator_named(self.name)

    @property
    def out(self) -> Tensor:
        """The only result; ``ValueError`` when there are several."""
        (out,) = self.outs
        return out


@dataclass(frozen=True)
class Document:
    """One fused kernel, as :class:`kernelgen.composite.description.KernelDesc` has it."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    ops: tuple[Operation, ...]
    process: str = "cpu"
    version: int = 0
    target_info: Attrs = field(default_factory=Attrs)
    buffer_stitch: tuple[tuple[str, ...], ...] = ()
    parallel_fusion: ParallelFusion | None = None

    @property
    def updated_inputs(self) -> tuple[int, ...]:
        """Positions of the inputs that the kernel writes in place."""
        assigned = {operation.args[0].name for operation in self.ops if operation.op in IN_PLACE}
        return tuple(place for place, tensor in enumerate(self.inputs) if tensor.name in assigned)


def map_tensors(document: Document, change: Callable[[Tensor], Tensor]) -> Document:
    """The document with every mention of every tensor changed, inputs first, then the operators in order, then outputs."""
    inputs = tuple(map(change, document.inputs))
    ops = tuple(replace(op, args=tuple(map(change, op.args)), outs=tuple(map(change, op.outs))) for op in document.ops)
    return replace(document, inputs=inputs, ops=ops, outputs=tuple(map(change, document.outputs)))
