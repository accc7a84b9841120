"""KernelDesc -> Scop: one statement per operator, several for those that run in phases.

Complex tensors become real ones of one dim more. Then every operator relates the dims of its tensors, and makes its
statements over their leaf axes.
"""

from __future__ import annotations

from kernelgen.canonical.complex_numbers import real_parts
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.link import tensor_names
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.lower.table import lowering_of
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.poly.model.scop import Scop


def to_scop(desc: KernelDesc) -> Scop:
    """The statements of a checked description. Raises UnsupportedError with a reason code."""
    desc = real_parts(desc)
    axes = TensorAxes(tensor_names(desc))
    for node in desc.operators:
        lowering_of(node).relate(axes, node)
    axes.regroup_reshapes()
    builder = Builder(desc, axes)
    for position, node in enumerate(desc.operators):
        lowering_of(node).lower(builder, node, f"{node.op.name}_{position}")
    return builder.finish()
