"""The names, constants and extents of one body of ONNX nodes: a model's graph, or a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from graphkernel.onnx_writing.writer import Unwritable, Writer, taken
from kernelgen.tensor.derived import Derived
from kernelgen.tensor.graph import Value
from kernelgen.tensor.types import Dim, Sym, sym

SHARED_BYTES = 256  # constants up to this size are written once however often they are used


@dataclass
class Scope(Writer):
    """Collects nodes under names that are used once, and tells symbolic extents by the shapes of what is there."""

    is_whole_model: ClassVar[bool] = True
    names: dict[Value, str] = field(default_factory=dict[Value, str])
    taken: set[str] = field(default_factory=set[str])
    told: dict[str, str] = field(default_factory=dict[str, str])
    sources: dict[str, tuple[str, int, Sym]] = field(default_factory=dict[str, tuple[str, int, Sym]])
    derived: dict[str, Derived] = field(default_factory=dict[str, Derived])
    weights: dict[str, str] = field(default_factory=dict[str, str])
    shared: dict[tuple[str, tuple[int, ...], bytes], str] = field(
        default_factory=dict[tuple[str, tuple[int, ...], bytes], str]
    )

    def claim(self, wish: str) -> str:
        """The wish, or the wish with a number where it is taken."""
        name, number = wish, 1
        while name in self.taken:
            name, number = f"{wish}_{number}", number + 1
        self.taken.add(name)
        return name

    def fresh(self, kind: str) -> str:
        """A name that nothing else has."""
        return self.claim(super().fresh(kind))

    def constant(self, array: np.ndarray) -> str:
        """The name of a constant; small equal ones are one."""
        if array.nbytes > SHARED_BYTES:
            return super().constant(array)
        key = (array.dtype.str + array.dtype.name, array.shape, array.tobytes())
        if key not in self.shared:
            self.shared[key] = super().constant(array)
        return self.shared[key]

    def weight(self, digest: str, wish: str, array: np.ndarray) -> str:
        """The name of a constant of the graph; those of one content are one."""
        if digest not in self.weights:
            self.weights[digest] = self.claim(wish)
            self.constants[self.weights[digest]] = array
        return self.weights[digest]

    def define(self, value: Value, name: str) -> None:
        """Says what a value is called."""
        self.names[value] = name
        self.read_symbols(value)

    def read_symbols(self, value: Value) -> None:
        """Symbols that the value's shape tells, and nothing before did, are read off it."""
        name = self.names[value]
        for axis, dim in enumerate(value.type.shape):
            unknown = [each for each in dim.symbols if each not in self.sources] if isinstance(dim, Sym) else []
            if isinstance(dim, Sym) and len(unknown) == 1 and all(
                names == (unknown[0],) for names, _ in dim.terms if unknown[0] in names
            ):  # fmt: skip
                self.sources[unknown[0]] = (name, axis, dim)

    def extent(self, dim: Sym) -> str:
        """A vector with the extent: the sum of its terms, each a product of symbols."""
        text = str(dim)
        if text not in self.told:
            self.told[text] = self._solved(text) if dim == _first(dim) else self._sum(dim)
        return self.told[text]

    def _sum(self, dim: Sym) -> str:
        total = ""
        for names, coefficient in dim.terms:
            factors = [self.extent(sym(name)) for name in names]
            term = factors.pop() if factors and coefficient == 1 else self.ints((coefficient,))
            for factor in factors:
                term = self.emit("Mul", term, factor)
            total = self.emit("Add", total, term) if total else term
        return total

    def _solved(self, symbol: str) -> str:
        """The symbol as it follows from others, or from an extent that holds it once: (extent - the rest) / coefficient."""
        if symbol in self.derived:
            return self._function(self.derived[symbol])
        if symbol not in self.sources:
            raise Unwritable(f"no shape tells the symbolic extent {symbol}")
        name, axis, dim = self.sources[symbol]
        extent = taken(self, self.emit("Shape", name), axis)
        coefficient = dict(dim.terms)[(symbol,)]
        rest: Dim = dim - sym(symbol) * coefficient
        if rest != 0:
            extent = self.emit("Sub", extent, self.extents((rest,)))
        return extent if coefficient == 1 else self.emit("Div", extent, self.ints((coefficient,)))

    def _function(self, of: Derived) -> str:
        first, second = self.extents((of.first,)), self.extents((of.second,))
        match of.function:
            case "floor_div":  # ONNX's division rounds towards zero
                rest = self.emit("Mod", first, second, fmod=0)
                return self.emit("Div", self.emit("Sub", first, rest), second)
            case "windows":
                count = self.emit("Add", self.emit("Div", first, second), self.ints((1,)))
                return self.emit("Max", count, self.ints((0,)))
            case "min" | "max":
                return self.emit(of.function.capitalize(), first, second)
            case "broadcast":
                return self.emit("Where", self.emit("Equal", first, self.ints((1,))), second, first)
            case _:  # from_front
                counts_back = self.emit("Less", first, self.ints((0,)))
                place = self.emit("Max", self.emit("Add", first, second), self.ints((0,)))
                return self.emit("Where", counts_back, place, first)


def _first(dim: Sym) -> Sym:
    """The first symbol of a dim."""
    return sym(dim.symbols[0])
