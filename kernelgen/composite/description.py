"""KernelDesc: AKG's composite JSON with types. The one value that crosses from graphkernel to kernelgen.

``desc_json`` reads and writes it, ``desc_check`` validates it, ``meaning`` is its numpy semantics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape, symbols_of
from kernelgen.tensor.dtypes import DType
from kernelgen.tensor.operator import Operator

Scalar = bool | int | float


@dataclass(frozen=True)
class TensorDesc:
    """A named tensor. ``value`` is an inline constant (of a tensor with one element); names are the only linkage."""

    name: str
    shape: Shape
    dtype: DType
    format: str = "DefaultFormat"
    value: Scalar | None = None


@dataclass(frozen=True)
class OpDesc:
    """One operator: variadic operands are flattened into ``inputs``.

    ``declared`` is the operator itself where it is none of the vocabulary: of a user's package.
    """

    name: str
    inputs: tuple[TensorDesc, ...]
    outputs: tuple[TensorDesc, ...]
    attrs: Attrs = field(default_factory=Attrs)
    declared: Operator | None = None

    @property
    def output(self) -> TensorDesc:
        """The only output; ``ValueError`` when there are several."""
        (output,) = self.outputs
        return output


@dataclass(frozen=True)
class ParallelFusion:
    """AKG's ``parallel_fusion``: groups of output tensors that are computed side by side in one kernel.

    Devices launch such a kernel once (:mod:`kernelgen.transforms.gpu.horizontal_fusion`). ``core_num`` are the blocks that
    AKG gives each group; here they follow from the loops of each.
    """

    fusion_type: str
    sub_graph: tuple[tuple[str, ...], ...]
    core_num: tuple[int, ...]


@dataclass(frozen=True)
class KernelDesc:
    """One fused kernel: operators in topological order over named tensors, SSA except for in-place operators.

    ``inputs`` and ``outputs`` give the calling convention, in order. ``process`` is AKG's target word
    (``cpu``, ``cuda``, ``aicore``). An operator that assigns to an input (``Assign``, ``InplaceAssign``)
    makes that input an in/out buffer: see :attr:`updated_inputs`. ``buffer_stitch`` tells AKG which results pass through
    shared memory; here what does follows from who reads them, and it is only passed on.
    """

    name: str
    inputs: tuple[TensorDesc, ...]
    outputs: tuple[TensorDesc, ...]
    ops: tuple[OpDesc, ...]
    process: str = "cpu"
    version: int = 0
    target_info: Attrs = field(default_factory=Attrs)
    buffer_stitch: tuple[tuple[str, ...], ...] = ()
    parallel_fusion: ParallelFusion | None = None

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of all input and output shapes, sorted; empty for a static kernel."""
        return symbols_of(dim for t in (*self.inputs, *self.outputs) for dim in t.shape)

    @property
    def updated_inputs(self) -> tuple[int, ...]:
        """Positions of the inputs that the kernel writes in place."""
        assigned = {op.inputs[0].name for op in self.ops if op.name in IN_PLACE_OPS}
        return tuple(i for i, t in enumerate(self.inputs) if t.name in assigned)


IN_PLACE_OPS: Mapping[str, str] = {
    "Assign": "operand 0 takes the value of operand 1; the result equals operand 1",
    "InplaceAssign": "operand 0 takes the value of operand 1; the result equals operand 2",
}
