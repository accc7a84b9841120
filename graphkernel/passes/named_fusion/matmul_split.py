"""The pass inference_matmul_split_fusion: one product whose columns several users share out among themselves.

Before and after::

    f = Reshape(x, [B * S, K])
    m = MatMul(f, w, transpose_b=true)           ==>    a, b = MatmulSplitOut2(x, w, n_lens=(4, 8))
    r = Reshape(m, [B, S, 12])
    a, b = SplitWithSize(r, split_sizes=(4, 8), axis=-1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphkernel.expanders.base import Declined
from graphkernel.ops import Tensor
from graphkernel.ops.composite.activation import SILU
from graphkernel.ops.composite.split_sizes import SPLIT_WITH_SIZE
from graphkernel.ops.fused import fused_matmul
from graphkernel.ops.fused.fused_quant import QUANT_BATCH_MATMUL
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Product, Site, named_fusion, product
from graphkernel.passes.named_fusion.queries import both_orders, first_failure, is_half, made_by
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.elemwise import ADD
from kernelgen.tensor.operators.matmul import MATMUL
from kernelgen.tensor.operators.pieces import SPLIT
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.types import Shape
from kernelgen.tensor.types import product as count

PRODUCTS: Mapping[Operator, tuple[Operator, Operator, Operator]] = {
    MATMUL: (
        fused_matmul.MATMUL_SPLIT_OUT2,
        fused_matmul.MATMUL_SPLIT_OUT3,
        fused_matmul.MATMUL_SPLIT_SILU_OUT2,
    ),
    ADD: (
        fused_matmul.MATMUL_BIAS_SPLIT_OUT2,
        fused_matmul.MATMUL_BIAS_SPLIT_OUT3,
        fused_matmul.MATMUL_BIAS_SPLIT_SILU_OUT2,
    ),
    QUANT_BATCH_MATMUL: (
        fused_matmul.QUANT_SPLIT_OUT2,
        fused_matmul.QUANT_SPLIT_OUT3,
        fused_matmul.QUANT_SPLIT_SILU_OUT2,
    ),
}


@dataclass(frozen=True)
class _Shared:
    """The product in front of a split: ``last`` gives it, a MatMul, an Add of a bias or a QuantBatchMatmul."""

    matmul: Node
    last: Node
    more: tuple[Value, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(dict.fromkeys((self.matmul, self.last)))

    @property
    def columns(self) -> Shape:
        return self.last.out.type.shape[1:]

    @property
    def is_weight_transposed(self) -> bool:
        """True for x @ weight.T."""
        return self.transposes == (False, True)

    @property
    def can_transpose(self) -> bool:
        """True for x @ weight with a constant, whose transposition costs nothing at run time."""
        return self.transposes == (False, False) and self.matmul.args[1].is_known

    def product(self, op: Operator, attrs: Mapping[str, object]) -> Product:
        """The application of an operator that takes x and weight.T."""
        build, weight = product(op, **attrs), self.matmul.args[1].constant
        if self.is_weight_transposed or weight is None:
            return build
        return lambda x, _, *more: build(x, Tensor(x.builder.constant(weight.T), x.builder), *more)

    @property
    def transposes(self) -> tuple[bool, bool]:
        names = ("transpose_a", "transpose_b") if self.matmul.op is MATMUL else ("transpose_x1", "transpose_x2")
        first, second = (self.matmul.attrs.bool(name, False) for name in names)
        return first, second


@named_fusion("inference_matmul_split_fusion")
def inference_matmul_split_fusion(site: Site) -> Fusion | Declined | None:
    """A split of the columns of MatMul, MatMul and bias, or QuantBatchMatmul as one operator with several results.

    Where one of two pieces goes through SiLU and nowhere else, the SiLU joins too.
    """
    split = site.root
    unflatten = made_by(split.args[0], RESHAPE) if split.op in (SPLIT_WITH_SIZE, SPLIT) else None
    shared = _shared(unflatten.args[0]) if unflatten else None
    flatten = made_by(shared.matmul.args[0], RESHAPE) if shared else None
    if unflatten is None or shared is None or flatten is None:
        return None
    declined = first_failure(_conditions(split, unflatten, shared, flatten))
    return declined or _fusion(site, unflatten, shared, flatten.args[0])


def _shared(value: Value) -> _Shared | None:
    node = value.node
    if node.op in (MATMUL, QUANT_BATCH_MATMUL):
        return _Shared(node, node, node.args[2:])
    if node.op is not ADD:
        return None
    sums = ((made_by(summand, MATMUL), bias) for summand, bias in both_orders(node))
    return next((_Shared(matmul, node, (bias,)) for matmul, bias in sums if matmul), None)


def _conditions(split: Node, unflatten: Node, shared: _Shared, flatten: Node) -> list[tuple[bool, str]]:
    x = flatten.args[0].type
    leading, columns = x.shape[:-1], shared.columns
    result = unflatten.out.type
    weight = shared.matmul.args[1].type
    whole = x.rank == result.rank == 3 and result.shape == (*leading, *columns)
    vectors = shared.last.op is not ADD or shared.more[0].type.shape == columns
    return [
        (whole, f"the product of {x} is reshaped to {result}, not back to rank 3"),
        (
            flatten.out.type.shape == (count(leading), x.shape[-1]),
            f"x is reshaped to {flatten.out.type}, not to its rows",
        ),
        (shared.is_weight_transposed or shared.can_transpose, "the product is not x @ weight.T"),
        (weight.rank == 2, f"the weight is {weight}, not a matrix"),
        (is_half(shared.last.out), f"the product is {result.dtype}, expected float16 or bfloat16"),
        (vectors, f"the bias is not a vector of {columns}"),
        (split.attrs.int("axis", 0) % 3 == 2, "the split is not along the last axis"),
        (len(split.types) in (2, 3), f"{len(split.types)} pieces, expected 2 or 3"),
    ]


def _fusion(site: Site, unflatten: Node, shared: _Shared, x: Value) -> Fusion:
    split = site.root
    attrs: dict[str, object] = {"n_lens": tuple(piece.type.shape[-1] for piece in split.outs)}
    attrs.update((name, shared.matmul.attrs[name]) for name in ("optional", "dtype") if name in shared.matmul.attrs)
    two, three, gated = PRODUCTS[shared.last.op]
    nodes = (*shared.nodes, unflatten, split)
    operands = (x, shared.matmul.args[1], *shared.more)
    silu = _silu(site) if len(split.outs) == 2 else None
    if silu is None:
        build = shared.product(two if len(split.outs) == 2 else three, attrs)
        return Fusion(nodes, operands, split.outs, build)
    at = silu.args[0].index
    gives = tuple(silu.out if index == at else piece for index, piece in enumerate(split.outs))
    return Fusion((*nodes, silu), operands, gives, shared.product(gated, attrs | {"silu_index": at}))


def _silu(site: Site) -> Node | None:
    """The SiLU that is the only user of a piece."""
    for piece in site.root.outs:
        users = site.users(piece)
        if len(users) == 1 and users[0].op is SILU and not site.is_used(piece, besides=users):
            return users[0]
    return None
