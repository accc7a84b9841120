"""Square transposes in registers: one two-operand shuffle for each vector and stage.

Neighbours within 16 bytes are interleaved (``unpcklps`` and its like), then blocks of 16 bytes change places between
vectors; processors have single instructions for both, at every width.
"""

from __future__ import annotations

from kernelgen.targets.cpu.values import Value, bit_width

BLOCK_BITS = 128


def transposed(rows: list[Value]) -> list[Value]:
    """``result[i]`` lane ``j`` is ``rows[j]`` lane ``i``; as many vectors as lanes, a power of two."""
    if rows[0].kind == "half":
        return [row.convert("bitcast", "half") for row in transposed([row.bits() for row in rows])]
    size = len(rows)
    block = min(size, BLOCK_BITS // bit_width(rows[0].kind))
    for _ in range(block.bit_length() - 1):
        rows = [out for start in range(0, size, block) for out in _interleaved(rows[start : start + block], block)]
    distance = block
    while distance < size:
        rows = _exchanged(rows, distance)
        distance *= 2
    return rows


def _interleaved(group: list[Value], block: int) -> list[Value]:
    """The vectors of both halves interleaved pairwise, block by block: the lower halves of blocks, then the upper ones."""
    lanes, half = group[0].lanes, block // 2
    results: list[Value] = []
    for a, b in zip(group[:half], group[half:], strict=True):
        for part in (0, half):
            order = [start + part + k for start in range(0, lanes, block) for k in range(half)]
            results.append(a.shuffle(b, [lane + other for lane in order for other in (0, lanes)]))
    return results


def _exchanged(rows: list[Value], distance: int) -> list[Value]:
    """Vectors that stand ``distance`` apart exchange the blocks of lanes that lie ``distance`` off the diagonal."""
    results, lanes = list(rows), rows[0].lanes
    for number in (n for n in range(len(rows)) if not n & distance):
        a, b = rows[number], rows[number + distance]
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        results[number], results[number + distance] = a.shuffle(b, low), a.shuffle(b, high)
    return results


@dataclass(frozen=True)
class Square:
    """Room on the stack for as many vectors as they have lanes; LLVM keeps it in registers where rows are constants."""

    function: Function
    kind: str
    size: int

    @cached_property
    def slot(self)-> str: ...
