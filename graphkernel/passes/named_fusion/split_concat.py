"""The pass split_concat_fusion: pieces of axis 0 set side by side are one transposition.

Before and after::

    a, b = Split(x, axis=0)       r = Reshape(x, [2, R, K])
    y = Concat(a, b, axis=1)  ==> t = Transpose(r, (1, 0, 2))
                                  y = Reshape(t, [R, 2 * K])
"""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.ops import Tensor
from graphkernel.ops.composite.split_sizes import SPLIT_WITH_SIZE
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Product, Site, named_fusion
from graphkernel.passes.named_fusion.queries import first_failure, made_by
from kernelgen.tensor.operators.pieces import CONCAT, SPLIT

MOST_PIECES = 128


@named_fusion("split_concat_fusion")
def split_concat_fusion(site: Site) -> Fusion | Declined | None:
    """Concat along axis 1 of all pieces of a matrix split along axis 0 as Reshape, Transpose, Reshape."""
    concat = site.root
    split = made_by(concat.args[0], SPLIT, SPLIT_WITH_SIZE, index=None) if concat.op is CONCAT else None
    if split is None or any(arg.node is not split for arg in concat.args):
        return None
    x = split.args[0]
    pieces = len(split.types)
    declined = first_failure(
        (
            (x.type.rank == 2, f"the split tensor is {x.type}, not a matrix"),
            (split.attrs.int("axis", 0) % x.type.rank == 0, "the split is not along axis 0"),
            (
                concat.attrs.int("axis") % x.type.rank == 1,
                "the concatenation is not along axis 1",
            ),  # so the pieces are equal
            (concat.args == split.outs, "the pieces are not all joined, once each and in order"),
            (2 <= pieces <= MOST_PIECES, f"{pieces} pieces, expected 2 to {MOST_PIECES}"),
        )
    )
    return declined or Fusion((split, concat), (x,), concat.outs, _side_by_side(pieces))


def _side_by_side(pieces: int) -> Product:
    def build(x: Tensor) -> tuple[Tensor, ...]:
        columns = x.shape[1]
        stacked = ops.transpose(ops.reshape(x, (pieces, -1, columns)), (1, 0, 2))
        return (ops.reshape(stacked, (stacked.shape[0], pieces * columns)),)

    return build
