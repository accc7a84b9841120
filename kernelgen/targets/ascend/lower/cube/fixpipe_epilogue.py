"""What follows a product element by element and Fixpipe does on the way out: rounding to half precision, ReLU.

    part: t[i, j] = sum of a[i, k] * b[k, j]                    part: y[i, j] = relu(round(sum of a[i, k] * b[k, j]))
    part: y[i, j] = maximum(cast<f16>(t[i, j]), 0)      ->

Legal where the second part is all that reads t, t is no output, and y has t's shape: every element of y is then made of
the element of t at the same place. Rounding keeps signs, so that ReLU before it and behind it are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgen.nest.nodes import Accumulate, Alloc, Block, Call, Expr, If, Let, Literal, Load, Space, Store
from kernelgen.nest.substitute import written_out
from kernelgen.nest.walk import accesses_of, statements
from kernelgen.targets.ascend.lower.cube.product import Product, extent_of
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32
from kernelgen.transforms.common.iteration_box import boxes, placed, whole_axes

ROUNDED = (FLOAT16, BFLOAT16, FLOAT32)


@dataclass(frozen=True)
class Finish:
    """A store of one buffer's elements at their own places; ``relu`` says that negative ones become 0."""

    store: Store
    load: Load
    relu: bool


def finished(product: Product, following: Block, others: Sequence[Block]) -> Product | None:
    """The product together with the part that follows it; None where that part stays as it is."""
    own = product.result
    if own.space is not Space.WORKSPACE or any(_touches(other, own.name) for other in others):
        return None
    found = finish_of(following)
    if found is None or found.load.buffer != own or found.store.buffer.shape != own.shape:
        return None
    return replace(product, result=found.store.buffer, relu=found.relu)


def _touches(part: Block, name: str) -> bool:
    return any(buffer.name == name for one in statements(part) for buffer, _ in accesses_of(one))


def finish_of(part: Block) -> Finish | None:
    """What a part does when it moves a whole buffer, rounded and cut at 0 where asked."""
    inside = list(statements(part))
    if any(isinstance(one, Accumulate | Alloc | If) for one in inside):
        return None
    stores = [one for one in inside if isinstance(one, Store)]
    if len(stores) != 1:
        return None
    store = stores[0]
    bound = {one.name: one.value for one in inside if isinstance(one, Let)}
    loops = next((one.loops for one in placed(part) if one.statement is store), None)
    axes = None if loops is None else boxes(loops)
    load, relu = _moved(written_out(store.value, bound))
    if axes is None or load is None or load.index != store.index or store.buffer.dtype not in ROUNDED:
        return None
    names = whole_axes(store.index, axes)
    if names is None or len(names) != len(store.index) or set(names) != set(axes):
        return None
    covered = tuple(axes[name] for name in names) == extent_of(store.buffer)
    return Finish(store, load, relu) if covered else None


def _moved(expr: Expr) -> tuple[Load | None, bool]:
    """The float32 load behind at most one cast and maxima with 0."""
    relu, casts = False, 0
    while isinstance(expr, Call):
        if expr.function == "maximum" and _is_zero(expr.args[1]):
            relu = True
        elif expr.function == "cast" and len(expr.args) == 1 and not casts:
            casts = 1
        else:
            return None, False
        expr = expr.args[0]
    return (expr, relu) if isinstance(expr, Load) and expr.dtype == FLOAT32 else (None, False)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value == 0
