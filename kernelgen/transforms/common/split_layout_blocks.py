"""Takes vector loops and loops of rows apart where they pass from block to block of a layout.

    vector for j in 0..64 {                for j_block in 0..4 {
      y[j] = x[j / 16, j % 16]     ->        vector for j in 0..16 { y[j_block * 16 + j] = x[j_block, j] }
    }                                      }

In a block places are regular. Legality: ``j_block * 16 + j`` with ``0 <= j < 16`` is every iteration once, in order; its
quotient by 16 is ``j_block`` and its remainder ``j``. Loops whose length is no multiple are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelgen.nest import nodes as n
from kernelgen.nest.index import add, binary, multiply
from kernelgen.nest.substitute import map_indices
from kernelgen.nest.walk import accesses_of, map_blocks, statements


def split(body: n.Block) -> n.Block:
    """The block with such loops inside it as two."""
    return map_blocks(body, lambda block: n.Block(tuple(map(_part, block.statements))))


def _part(part: n.Statement) -> n.Statement:
    if not isinstance(part, n.For) or part.kind not in (n.LoopKind.VECTOR, n.LoopKind.ROWS):
        return part
    indices = (at for inside in statements(part.body) for _, index in accesses_of(inside) for at in index)
    sizes = {size for at in indices for size in _sizes(at, part.var)}
    if len(sizes) != 1 or part.lower != n.Num(0) or not isinstance(part.upper, n.Num) or part.step != 1:
        return part
    size, count = sizes.pop(), part.upper.value
    if count % size or count <= size:
        return part
    body = map_indices(part.body, lambda index: _moved(index, part.var, size))
    inner = replace(part, upper=n.Num(size), body=body)
    return n.For(_block_of(part.var), n.Num(0), n.Num(count // size), n.Block((inner,)))


def _block_of(variable: str) -> str:
    return f"{variable}_block"


def _sizes(index: n.Index, variable: str) -> Iterator[int]:
    """The numbers by which a variable alone is divided."""
    if isinstance(index, n.IndexBinary):
        if (
            index.op in (n.IndexOp.DIV, n.IndexOp.MOD)
            and index.left == n.Var(variable)
            and isinstance(index.right, n.Num)
        ):
            yield index.right.value
        yield from _sizes(index.left, variable)
        yield from _sizes(index.right, variable)


def _moved(index: n.Index, variable: str, size: int) -> n.Index:
    here = n.Var(variable)
    block = n.Var(_block_of(variable))
    match index:
        case n.Var(name) if name == variable:
            return add(multiply(block, n.Num(size)), here)
        case n.IndexBinary(n.IndexOp.DIV, left, n.Num(value)) if left == here and value == size:
            return block
        case n.IndexBinary(n.IndexOp.MOD, left, n.Num(value)) if left == here and value == size:
            return here
        case n.IndexBinary(op, left, right):
            return binary(op, _moved(left, variable, size), _moved(right, variable, size))
        case _:
            return index
