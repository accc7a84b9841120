"""KernelDesc -> Scop: one statement per operator, several for those that run in phases.

Complex tensors become real ones of one dim more. Then every operator relates the dims of its tensors, and makes its
statements over their leaf axes.
"""

from __future__ import annotations

from kernelgen.canonical.complex_numbers import real_parts
from kernelgen.composite.description import KernelDesc
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.lower.table import lowering_of
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.poly.model.scop import Scop


def to_scop(desc: KernelDesc) -> Scop:
    """The statements of a checked description. Raises UnsupportedError with a reason code."""
    desc = real_parts(desc)
    axes = TensorAxes()
    for op in desc.ops:
        lowering_of(op).relate(axes, op)
    axes.regroup_reshapes()
    builder = Builder(desc, axes)
    for position, op in enumerate(desc.ops):
        lowering_of(op).lower(builder, op, f"{op.name}_{position}")
    return builder.finish()
