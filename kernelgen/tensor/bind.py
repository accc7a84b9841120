"""Symbols get their values from the shapes of the arrays given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from numpy import ndarray

from kernelgen.errors import InputError
from kernelgen.tensor.attrs import symbols_in, with_dims
from kernelgen.tensor.derived import Derived, with_derived
from kernelgen.tensor.types import Attrs, Shape, TensorType, evaluate, solve, symbols_of

if TYPE_CHECKING:
    from kernelgen.tensor.graph import Graph, Value

Input = tuple[str, TensorType]
"""The name and the type of an input."""


def bind(graph: Graph, arrays: Sequence[ndarray]) -> dict[str, int]:
    """The value of every symbol of a graph for these inputs; ``InputError`` names the input that does not fit."""
    return bind_all([(value.node.name, value.type) for value in graph.inputs], graph.derived, arrays)


def bind_all(inputs: Sequence[Input], derived: Iterable[Derived], arrays: Sequence[ndarray]) -> dict[str, int]:
    """The same of a graph with these inputs and derived extents.

    Raises InputError where an extent would be one divided by 0.
    """
    entries = tuple(derived)
    symbols = _bound(inputs, arrays, {entry.name: entry.value({}) for entry in entries if not entry.symbols})
    try:
        return with_derived(symbols, entries)
    except ZeroDivisionError:
        given = ", ".join(f"{name} = {extent}" for name, extent in sorted(symbols.items()))
        raise InputError(f"an extent is another divided by 0, with {given}") from None


def bind_symbols(inputs: Sequence[Value], arrays: Sequence[ndarray]) -> dict[str, int]:
    """The value of every symbol in the inputs' shapes; ``InputError`` names the input that does not fit.

    Linear occurrences are solved, in any order; others are checked once their symbols are known.
    """
    return _bound([(value.node.name, value.type) for value in inputs], arrays)


def _bound(
    inputs: Sequence[Input], arrays: Sequence[ndarray], numbers: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The values of the symbols of the inputs; errors tell as well which ``numbers`` were given for others before."""
    if len(inputs) != len(arrays):
        raise InputError(f"the graph takes {len(inputs)} inputs ({', '.join(_names(inputs))}), got {len(arrays)}")
    for given, array in zip(inputs, arrays, strict=True):
        _check_kind(*given, array)
    pairs = [
        (d, int(e)) for (_, of), a in zip(inputs, arrays, strict=True) for d, e in zip(of.shape, a.shape, strict=True)
    ]
    known: dict[str, int] = {}
    progress = True
    while progress:
        before = len(known)
        for dim, extent in pairs:
            known.update(solve(dim, extent, known) or {})
        progress = len(known) > before
    for given, array in zip(inputs, arrays, strict=True):
        _check_shape(*given, array, known, numbers or {})
    return known


def concrete_shape(shape: Shape, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """The extents when the symbols have these values."""
    return tuple([evaluate(dim, symbols) for dim in shape])


def concrete_attrs(attrs: Attrs, symbols: Mapping[str, int]) -> Attrs:
    """The attributes with every symbolic dim replaced by its value."""
    if not any(symbols_in(attrs.values())):
        return attrs
    return Attrs(tuple((name, with_dims(value, lambda dim: evaluate(dim, symbols))) for name, value in attrs.items()))


def _names(inputs: Sequence[Input]) -> list[str]:
    return [f"{name}: {of}" for name, of in inputs]


def _check_kind(name: str, of: TensorType, array: ndarray) -> None:
    if array.dtype != of.dtype.numpy:  # numbers in the other byte order are another type to numpy
        raise InputError(f"input {name} is {of.dtype.name}, got an array of {array.dtype}")
    if array.ndim != of.rank:
        raise InputError(f"input {name} is {of}, got an array of shape {array.shape}")


def _check_shape(
    name: str, of: TensorType, array: ndarray, known: Mapping[str, int], numbers: Mapping[str, int]
) -> None:
    try:
        expected = concrete_shape(of.shape, known)
    except KeyError as error:
        raise InputError(f"the shapes of the inputs do not tell the value of symbol {error.args[0]}") from error
    if expected != array.shape:
        wrong = [dim for dim, is_, due in zip(of.shape, array.shape, expected, strict=True) if is_ != due]
        about = {symbol: known[symbol] for symbol in symbols_of(wrong)}
        about |= {symbol: extent for symbol, extent in numbers.items() if extent in wrong}
        bound = ", ".join(f"{symbol} = {extent}" for symbol, extent in sorted(about.items()))
        raise InputError(f"input {name} is {of}, got shape {array.shape}{bound and f' with {bound}'}")
