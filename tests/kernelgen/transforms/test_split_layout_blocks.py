"""Loops over layouts in blocks become two, which address plainly; others stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import Writer, tensor
from nests import J, block, buffer, loop, output

from kernelgen.driver import compile
from kernelgen.nest.index import add, floor_divide, modulo
from kernelgen.nest.nodes import For, Index, Let, Load, LoopKind, Nest, Num, Ref, Store
from kernelgen.nest.text import show
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import statements
from kernelgen.samples.inputs import draw
from kernelgen.semantics import reference
from kernelgen.transforms.common.split_layout_blocks import split

X, Y = buffer("x", 4, 16), output("y", 64)


def in_blocks(place: Index, extent: int = 64, size: int = 16, kind: LoopKind = LoopKind.VECTOR) -> Nest:
    index = (floor_divide(place, Num(size)), modulo(place, Num(size)))
    body = (Let("v", Load(X, index)), Store(Y, (J,), Ref("v", X.dtype)))
    return Nest("case", (), (X, Y), block(loop(J, extent, *body, kind=kind)))


def test_a_loop_over_blocks_and_one_in_a_block() -> None:
    nest = in_blocks(J)
    found = replace(nest, body=split(nest.body))
    verify(found)
    outer, inner = (part for part in statements(found.body) if isinstance(part, For))
    assert (outer.kind, outer.upper, inner.kind, inner.upper) == (LoopKind.SERIAL, Num(4), LoopKind.VECTOR, Num(16))
    text = show(found)
    assert "x[j_block, j]" in text
    assert "y[j_block*16 + j]" in text


@pytest.mark.parametrize(
    "nest",
    [in_blocks(J, extent=60), in_blocks(J, kind=LoopKind.SERIAL), in_blocks(add(J, Num(1)), extent=48)],
    ids=["a part of a block", "a serial loop", "a place that is not the loop's"],
)
def test_others_stay(nest: Nest) -> None:
    assert split(nest.body) == nest.body


def test_a_product_of_matrices_in_blocks_is_right_on_ascend() -> None:
    nz = "FRACTAL_NZ"
    x, y = (replace(tensor(name, *shape, 16, 16), layout=nz) for name, shape in (("x", (3, 2)), ("y", (2, 3))))
    w = Writer()
    w.op("MatMul", x, y, shape=(2, 2, 16, 16), transpose_a=False, transpose_b=False, left_format=nz, right_format=nz)
    product = replace(w.ops[0].out, layout=nz)
    w.ops[0] = replace(w.ops[0], outs=(product,))
    desc = w.desc("product", (x, y), product)
    (found,), (wanted,) = compile(desc, "ascend")(*draw(desc)), reference(desc)(*draw(desc))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
