"""What the extents of a model's inputs are called, and the numbers that the user gives for some.

A ``dim_param`` that is a name is a symbol of that name. ``2*N`` or ``past + N`` is arithmetic where inputs tell the
symbols in it; every other text (``batch size``, ``seq-len``) is the name of one symbol. An extent without a name (none,
``?``, -1) is a symbol of its own, called after input and axis. Extents that depend on data are symbols that nodes define.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from graphkernel.errors import FrontendError, nearest
from graphkernel.frontends.onnx.types.derived_extents import DerivedExtents
from kernelgen.tensor.derived import Derived
from kernelgen.tensor.literals import RESERVED
from kernelgen.tensor.types import Dim, Shape, Sym, TensorType, parse_dim, substitute, sym, symbols_of

if TYPE_CHECKING:
    from onnx import TypeProto, ValueInfoProto

POLYNOMIAL = re.compile(r"-?[A-Za-z_0-9]+(?: ?[*+-] ?[A-Za-z_0-9]+)*")
"""How we write an extent as the name of one."""


@dataclass
class Symbols:
    """``names`` are in use, ``given`` are the numbers that stand for some of them, ``derive`` makes those that follow."""

    names: set[str]
    given: Mapping[str, int]
    uncut: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._numbers = count()
        self.derive = DerivedExtents(set(), self.numbered, self.uncut)

    @property
    def numbers(self) -> tuple[Derived, ...]:
        """What is told of the given numbers, for whoever calls with arrays of other extents."""
        return tuple(Derived.given(name, extent) for name, extent in self.given.items())

    def numbered(self) -> str:
        """A name for an extent that follows from others, or from nothing."""
        name = next(name for name in map("u{}".format, self._numbers) if name not in self.names)
        self.names.add(name)
        return name

    @staticmethod
    def of(inputs: Iterable[ValueInfoProto], given: Mapping[str, int], uncut: frozenset[str] = frozenset()) -> Symbols:
        """Of the inputs of a model; ``given`` has a number for some names, as the model or as we write them."""
        names = {text for info in inputs for text in _texts(info) if _is_name(text)}
        return Symbols(names, {symbol_name(name): extent for name, extent in given.items()}, uncut)

    def input_type(self, of: TensorType) -> TensorType:
        """The type of an input with the given numbers in place."""
        found = TensorType(tuple(substitute(dim, self.given) for dim in of.shape), of.dtype)
        self.derive.told.update(found.symbols)
        return found

    def named(self, dim: Any, wish: str) -> Dim:  # an onnx message
        """The extent of an input; one without a name is called ``wish``."""
        text = dim.dim_param.strip()
        if not re.search(r"\w", text) or text == "-1":
            return self.fresh(wish)
        return self._arithmetic(text) or sym(symbol_name(text))

    def fresh(self, wish: str) -> Sym:
        """A symbol that nothing else is called."""
        base = symbol_name(wish)
        name = next(name for name in _numbered(base) if name not in self.names)
        self.names.add(name)
        return sym(name)

    def unknown(self, behind: frozenset[str], declared: Mapping[str, TypeProto]) -> Extents:
        """What names the extents of results of a node that is computed from what defines the symbols ``behind``."""
        return Extents(self, behind, declared)

    def _arithmetic(self, text: str) -> Dim | None:
        """The polynomial that a text says, if every symbol in it follows from the inputs."""
        factors = [part.strip() for part in re.split(r"[*+-]", text)]
        if not all(factor.isdecimal() or _is_name(factor) for factor in factors):
            return None
        dim = parse_dim(text)
        unknown = set(symbols_of((dim,))) - self.names
        is_linear = len(factors) > 0 and isinstance(dim, Sym) and all(len(m) < 2 for m, _ in dim.terms)
        return dim if not unknown or (len(unknown) == 1 and is_linear) else None


@dataclass
class Extents:
    """Extents of the results of one node. Those that follow from nothing become symbols, which the node defines.

    They have the names that the model declares, where these are free, or are called ``u0``, ``u1``, ...
    """

    symbols: Symbols
    behind: frozenset[str]
    declared: Mapping[str, TypeProto]
    defined: list[str] = field(default_factory=list[str])

    def are_known(self, shape: Shape) -> bool:
        """Whether all symbols of a shape are."""
        return (self.symbols.derive.told | self.behind).issuperset(symbols_of(shape))

    def named(self, result: str, dim: Any, axis: int) -> Dim:  # an onnx message
        """The extent of a result of this name."""
        text = dim.dim_param.strip()
        said = parse_dim(text) if POLYNOMIAL.fullmatch(text) else None
        if said is not None and self.are_known((said,)):
            return said
        made = self._defined(self._declared_name(result, axis))
        self.defined.append(made)
        return sym(made)

    def _defined(self, wish: str) -> str:
        name = wish if wish and wish not in self.symbols.names else self.symbols.numbered()
        self.symbols.names.add(name)
        return name

    def _declared_name(self, result: str, axis: int) -> str:
        dims = self.declared[result].tensor_type.shape.dim if result in self.declared else ()
        text = dims[axis].dim_param.strip() if axis < len(dims) else ""
        return text if _is_name(text) else ""


def check_given(given: Mapping[str, object], shown: Iterable[TensorType]) -> None:
    """Raises ``FrontendError`` for a number that is no extent, and for a name that no input has."""
    known = sorted({name for type_ in shown for name in type_.symbols})
    for name, extent in given.items():
        if isinstance(extent, bool) or not isinstance(extent, int) or extent < 0:
            raise FrontendError(f"dims: {name} = {extent!r} is no extent; give a whole number from 0 on")
        if symbol_name(name) not in known:
            have = f"it has {', '.join(known)}" if known else "every extent of its inputs is fixed"
            raise FrontendError(f"dims: no input has an extent {name!r}{nearest(name, known)}; {have}")


def symbol_name(text: str) -> str:
    """A text as the name of a symbol: itself where it can be one."""
    return text if _is_name(text) else re.sub(r"\W", "_", f"d_{text}", flags=re.ASCII)


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and text not in RESERVED


def _texts(info: ValueInfoProto) -> Iterator[str]:
    return (dim.dim_param.strip() for dim in info.type.tensor_type.shape.dim if dim.dim_param)


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1
