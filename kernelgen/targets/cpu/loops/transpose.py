"""Square transposes in registers: one two-operand shuffle for each vector and stage.

Neighbours within 16 bytes are interleaved (``unpcklps`` and its like), then blocks of 16 bytes change places between
vectors; processors have single instructions for both, at every width.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.targets.cpu.statements.access import alignment
from kernelgen.targets.cpu.text.builder import Function
from kernelgen.targets.cpu.text.values import Value, bit_width, vector_type

BLOCK_BITS = 128


def transposed(rows: list[Value]) -> list[Value]:
    """``result[i]`` lane ``j`` is ``rows[j]`` lane ``i``; as many vectors as lanes, a power of two."""
    if rows[0].kind == "half":
        return [row.as_float() for row in transposed([row.bits() for row in rows])]
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
    """As many vectors as they have lanes, on the stack; LLVM keeps them in registers when all rows are constants."""

    function: Function
    pointer: str
    kind: str
    size: int

    def put(self, row: Value, vector: Value) -> None:
        """Sets a row."""
        self.function.perform(f"store {vector.typed}, ptr {self._address(row)}, align {alignment(self.kind)}")

    def row(self, number: Value) -> Value:
        """A row."""
        type_ = vector_type(self.kind, self.size)
        text = self.function.assign(f"load {type_}, ptr {self._address(number)}, align {alignment(self.kind)}")
        return Value(self.function, text, self.kind, self.size)

    def _address(self, row: Value) -> str:
        type_ = vector_type(self.kind, self.size)
        return self.function.assign(f"getelementptr {type_}, ptr {self.pointer}, {row.typed}")


def square(function: Function, kind: str, size: int) -> Square:
    """Room on the stack of ``function`` for a square of ``size`` by ``size`` elements of the LLVM type ``kind``."""
    return Square(function, function.slot(f"[{size} x {vector_type(kind, size)}]", "square"), kind, size)
