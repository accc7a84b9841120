"""Marks convolutions whose groups of channels lie side by side in the vectors of a processor.

    y = Conv2D(x, w, group=32, format="NHWC")    ->    y = Conv2D(x, w, group=32, format="NHWC", in_lanes=True)

What lowers them, and what pads images, asks for the mark: machines of many threads multiply tiles of each group instead.
"""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.window_shapes import IN_LANES, has_narrow_groups
from kernelgen.tensor.operators.nn import CONV2D


def groups_in_lanes(desc: KernelDesc) -> KernelDesc:
    """The description with such convolutions marked."""
    walk = Rewriting(desc, "lanes")
    for node in desc.operators:
        is_narrow = node.op is CONV2D and has_narrow_groups(node)
        walk.keep(node, attrs=node.attrs.with_(**{IN_LANES: True}) if is_narrow else None)
    return walk.done()
