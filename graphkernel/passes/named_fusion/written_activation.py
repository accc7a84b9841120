"""The pass written_silu: a value times its own sigmoid is SiLU.

Before and after::

    y = Mul(x, Sigmoid(x))    ==>    y = SiLU(x)
"""

from __future__ import annotations

from graphkernel import ops
from graphkernel.ops.composite.activation import SIGMOID
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Site, named_fusion
from graphkernel.passes.named_fusion.queries import both_orders, made_by
from kernelgen.tensor.operators.elemwise import MUL


@named_fusion("written_silu")
def written_silu(site: Site) -> Fusion | None:
    """x * sigmoid(x) as SiLU."""
    root = site.root
    for x, gate in both_orders(root) if root.op is MUL else ():
        sigmoid = made_by(gate, SIGMOID)
        if sigmoid is not None and sigmoid.args[0] == x:
            return Fusion((sigmoid, root), (x,), root.outs, lambda x: (ops.silu(x),))
    return None
