"""Merges accumulations into one element that stand in one block.

    s[j] += v0                             let m0 = v0 + v1
    s[j] += v1                             let m1 = v2 + v3
    s[j] += v2                     ->      let m2 = m0 + m1
    s[j] += v3                             s[j] += m2

The element is loaded and stored once; where many sums are held in locals they stay as they are, and so do sums of products
of bytes. Values are combined as a balanced tree, which also rounds less. Legality: the function is associative and
commutative (a reduction promises that), and nothing else in the block touches the buffer.
A number by which all of them multiply integers, the scale of quantized weights, multiplies their sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count

from kernelgen.nest.index import variables
from kernelgen.nest.nodes import Accumulate, Block, Buffer, Call, Expr, Let, Nest, Ref, Space, Statement
from kernelgen.nest.substitute import written_out
from kernelgen.nest.walk import accesses_of, loads, map_blocks, statements
from kernelgen.transforms.common.common_scales import common_scales, terms_of

MANY = 4
"""Results in registers, whose sums fill each other's latencies: each takes one instruction a term as it is."""


def merge_accumulations(nest: Nest) -> Nest:
    """The nest with such accumulations merged."""
    counter = count()
    return replace(nest, body=map_blocks(nest.body, lambda block: _block(block, counter)))


def _block(block: Block, counter: Iterator[int]) -> Block:
    groups: dict[object, list[int]] = {}
    for position, part in enumerate(block.statements):
        if isinstance(part, Accumulate) and not adds_bytes(part):
            groups.setdefault((part.buffer, part.index, part.function), []).append(position)
    repeated = [positions for positions in groups.values() if len(positions) > 1]
    if len(_held(block)) >= MANY:
        return block
    touches = Counter(b.name for s in statements(block) for b, _ in accesses_of(s)) if repeated else Counter[str]()
    parts: list[Statement | None] = list(block.statements)
    for positions in repeated:
        first = block.statements[positions[0]]
        if isinstance(first, Accumulate) and touches[first.buffer.name] > len(positions):
            continue  # something else in the block reads or writes the buffer
        for position in positions:
            parts[position] = None
        last = block.statements[positions[-1]]
        if isinstance(last, Accumulate):
            parts[positions[-1]] = Block(tuple(_combined(block, positions, last, counter)))
    return Block(tuple(_spliced(parts)))


def adds_bytes(part: Accumulate) -> bool:
    """Whether it adds several products of bytes, in one instruction that adds a sum too or beside one."""
    return isinstance(part.value, Call) and part.value.function in ("byte_dot", "half_dot")


def _held(block: Block) -> set[str]:
    """The locals of vector loops that it accumulates into."""
    return {part.buffer.name for part in block.statements if isinstance(part, Accumulate) and _is_held(part.buffer)}


def _is_held(buffer: Buffer) -> bool:
    return buffer.space is Space.LOCAL and bool(buffer.shape)


def _is_product(value: Expr) -> bool:
    return isinstance(value, Call) and value.function == "mul" and value.dtype.is_float


def _combined(block: Block, positions: Sequence[int], last: Accumulate, counter: Iterator[int]) -> list[Statement]:
    values: list[Expr] = [part.value for k in positions if isinstance(part := block.statements[k], Accumulate)]
    bindings, scales = list[Statement](), list[Expr]()
    if last.function == "add":
        values, scales = common_scales([term for value in values for term in terms_of(value)], block)
        values = [term for value in values for term in terms_of(value)]
    if len(values) > 1 and _is_held(last.buffer) and all(_is_product(value) for value in values):
        values = [_chain(values, last, block)]
    while len(values) > 1:
        paired: list[Expr] = []
        for left, right in zip(values[::2], values[1::2], strict=False):
            name = f"m{next(counter)}"
            bindings.append(Let(name, Call(last.function, (left, right), last.buffer.dtype)))
            paired.append(Ref(name, last.buffer.dtype))
        values = paired + ([values[-1]] if len(values) % 2 else [])
    total = values[0]
    for scale in scales:
        total = Call("mul", (total, scale), total.dtype)
    return [*bindings, replace(last, value=total)]


def _chain(products: Sequence[Expr], target: Accumulate, block: Block) -> Expr:
    """Their sum one by one: each takes one instruction. Those that are the same for all elements are a sum of their own."""
    bound = {part.name: part.value for part in block.statements if isinstance(part, Let)}
    along = frozenset().union(*map(variables, target.index))

    def moves(value: Expr) -> bool:
        return any(along & variables(place) for load in loads(written_out(value, bound)) for place in load.index)

    parts = [each for each in products if moves(each)], [each for each in products if not moves(each)]
    return _added([_added(part) for part in parts if part])


def _added(values: Sequence[Expr]) -> Expr:
    return reduce(lambda total, value: Call("add", (total, value), value.dtype), values)


def _spliced(parts: Sequence[Statement | None]) -> list[Statement]:
    flat: list[Statement] = []
    for part in parts:
        flat.extend(part.statements if isinstance(part, Block) else () if part is None else (part,))
    return flat
