"""A tile program while it is written: tiles have names, types and sizes, but no addresses yet.

A tile is memory of a core, mostly of the unified buffer, that somebody else places (:mod:`storage`); an alias is the same
memory under another data type. ``primed`` tiles are filled once where the kernel starts: some instructions take whole
repeats, also where a copy filled less.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelgen.ascendc.builder import Given, Tensor, make_call
from kernelgen.ascendc.expressions import Expression, Name, Number, Scalar, wrap
from kernelgen.ascendc.instructions import For, GlobalTensor, If, Let, Pads, SetValue, Statement
from kernelgen.ascendc.types import BLOCK, UB
from kernelgen.tensor.dtypes import DType


@dataclass(frozen=True)
class Tile:
    """``elements`` of a data type in a memory of the core; ``alias`` names the tile whose memory it is."""

    name: str
    dtype: DType
    elements: int
    alias: str = ""
    primed: bool = False
    copies: int = 1
    memory: str = UB

    @property
    def size(self) -> int:
        """Bytes of one copy, whole blocks."""
        return -(-self.elements * self.dtype.itemsize // BLOCK) * BLOCK


@dataclass(frozen=True)
class Program:
    """Statements over tensors in GM and tiles; ``meetings`` says that cores wait for each other."""

    tiles: tuple[Tile, ...]
    tensors: tuple[GlobalTensor, ...]
    body: tuple[Statement, ...]
    meetings: bool = False


@dataclass
class Writer:
    """Collects tiles and statements; names are unique in a kernel."""

    tiles: dict[str, Tile] = field(default_factory=dict[str, Tile])
    blocks: list[list[Statement]] = field(default_factory=lambda: [[]])
    _counts: dict[str, int] = field(default_factory=dict[str, int])

    def fresh(self, prefix: str) -> str:
        """A name that no other has."""
        count = self._counts.get(prefix, 0)
        self._counts[prefix] = count + 1
        return f"{prefix}_{count}"

    def tile(
        self, prefix: str, dtype: DType, elements: int, primed: bool = False, copies: int = 1, memory: str = UB
    ) -> Tensor:
        """A new tile of so many ``elements`` of ``dtype`` in a ``memory`` of the core; its name begins with
        ``prefix``.

        A ``primed`` one is filled where the kernel starts; of one that is written while it is read there are
        ``copies``.
        """
        name = self.fresh(prefix)
        self.tiles[name] = Tile(name, dtype, elements, primed=primed, copies=copies, memory=memory)
        return Tensor(name, dtype)

    def prime(self, tensor: Tensor) -> None:
        """The tile is to be filled where the kernel starts."""
        tile = self.tiles[tensor.name]
        name = tile.alias or tile.name
        base = self.tiles[name]
        self.tiles[name] = Tile(name, base.dtype, base.elements, primed=True)

    def alias(self, tensor: Tensor, dtype: DType) -> Tensor:
        """The tile's memory as another data type."""
        base = self.tiles[tensor.name]
        base = self.tiles[base.alias] if base.alias else base
        name = f"{base.name}_as_{dtype.short}"
        self.tiles[name] = Tile(name, dtype, base.elements * base.dtype.itemsize // dtype.itemsize, base.name)
        return Tensor(name, dtype)

    def add(self, statement: Statement) -> None:
        """Appends a statement to the innermost open block."""
        self.blocks[-1].append(statement)

    def emit(self, operation: str, template: tuple[str, ...] = (), **arguments: Given) -> None:
        """Appends a call with its arguments by name (:mod:`forms`)."""
        self.add(make_call(operation, template, **arguments))

    def pads(self) -> Expression:
        """The sides of an image without pads."""
        name = self.fresh("pads")
        self.add(Pads(name))
        return Name(name)

    def let(self, prefix: str, dtype: DType, value: Scalar) -> Expression:
        """A scalar ``value`` of ``dtype`` with a name that begins with ``prefix``; constants stay as they are."""
        value = wrap(value)
        if isinstance(value, Number | Name):
            return value
        name = self.fresh(prefix)
        self.add(Let(name, dtype, value))
        return Name(name)

    def set_value(self, tensor: Tensor, index: Scalar, value: Scalar) -> None:
        """The scalar unit writes ``value`` to the element ``index`` of ``tensor``."""
        self.add(SetValue(tensor.name, wrap(index), wrap(value)))

    @contextmanager
    def loop(self, prefix: str, start: Scalar, stop: Scalar, step: Scalar = 1) -> Generator[Expression]:
        """A loop from ``start`` below ``stop`` by ``step`` around what is added inside; gives its variable, whose name
        begins with ``prefix``.
        """
        name = self.fresh(prefix)
        self.blocks.append([])
        yield Name(name)
        body = tuple(self.blocks.pop())
        if body:
            self.add(For(name, wrap(start), wrap(stop), wrap(step), body))

    @contextmanager
    def when(self, condition: Expression) -> Generator[None]:
        """A branch around what is added inside."""
        self.blocks.append([])
        yield
        body = tuple(self.blocks.pop())
        if body:
            self.add(If(condition, body))

    @contextmanager
    def before(self, depth: int) -> Generator[None]:
        """What is added inside stands before the loop that block ``depth`` is the body of."""
        inner = self.blocks[depth:]
        del self.blocks[depth:]
        yield
        self.blocks.extend(inner)
