"""Python functions as graphs: call once with symbolic tensors and keep what was recorded.

``trace(mynet, spec((4, 4), "float32"))``. Objects work too: ``construct`` (MindSpore's Cell) or ``__call__`` is traced.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from graphkernel.errors import FrontendError, nearest
from graphkernel.ir.graph import Alias, Builder, Graph, Value
from graphkernel.ir.types import DTYPES, Dim, DType, Sym, TensorType, parse_dim
from graphkernel.ir.types import dtype as dtype_of
from graphkernel.ops.tensor import Tensor


@runtime_checkable
class Cell(Protocol):
    """An object whose ``construct`` computes, as MindSpore's Cell."""

    @property
    def construct(self) -> Callable[..., Any]:
        """The function to trace."""
        ...


def spec(shape: int | str | Sequence[Dim | str], dtype: str | DType = "float32") -> TensorType:
    """The type of an argument. Extents are ints or symbols: ``spec(("N", 4))``; equal names are equal extents."""
    dims = (shape,) if isinstance(shape, int | str | Sym) else shape
    extents = tuple(parse_dim(dim) if isinstance(dim, str) else dim for dim in dims)
    if any(isinstance(extent, int) and extent < 0 for extent in extents):
        raise FrontendError(f"spec: negative extent in {extents}; an extent that is not known has a name, such as 'N'")
    try:
        return TensorType(extents, dtype_of(dtype))
    except ValueError as error:
        raise FrontendError(f"spec: {error}{nearest(str(dtype), [known.name for known in DTYPES])}") from error


def trace(function: Callable[..., Any] | Cell, *specs: Any, name: str | None = None) -> Graph:  # specs nest
    """The graph of a function.

    One spec for each argument: a :func:`spec`, an example array, or a tuple, list or dict of them. Inputs are named
    after the parameters (``x``, or ``x_0``, ``x_key`` inside containers), outputs are flattened in order. What
    ``ops.assign`` wrote into inputs becomes further outputs that alias them. Raises ``FrontendError``.
    """
    target = function.construct if isinstance(function, Cell) else function
    builder = Builder()
    names = _parameter_names(target, len(specs))
    inputs: list[Value] = []
    arguments = [_argument(builder, inputs, *pair) for pair in zip(names, specs, strict=True)]
    outputs = [_output(builder, leaf) for leaf in _leaves(target(*arguments))]
    written = dict(builder.effects)  # the last write into an input counts
    outputs.extend(value for value in written.values() if value not in outputs)
    aliases = tuple(Alias(outputs.index(value), inputs.index(target)) for target, value in written.items())
    return Graph(name or _function_name(function), tuple(inputs), tuple(outputs), aliases)


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    required = sum(p.default is p.empty for p in parameters if p.name in positional)
    if count < required or (count > len(positional) and rest is None):
        raise FrontendError(
            f"{_function_name(function)} takes the arguments {', '.join(positional)}; {count} specs were given"
        )
    return (positional + [f"{rest}_{i}" for i in range(count - len(positional))])[:count]


def _function_name(function: object) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "main"


def _argument(builder: Builder, inputs: list[Value], name: str, given: object) -> Any:  # Tensors, nested as given
    if isinstance(given, Mapping):
        entries = cast("Mapping[str, object]", given)
        return {key: _argument(builder, inputs, f"{name}_{key}", item) for key, item in entries.items()}
    if isinstance(given, tuple | list):
        items = cast("Sequence[object]", given)
        return type(given)(_argument(builder, inputs, f"{name}_{i}", item) for i, item in enumerate(items))
    inputs.append(builder.parameter(name, _type_of(name, given)))
    return Tensor(inputs[-1], builder)


def _type_of(name: str, given: object) -> TensorType:
    if isinstance(given, TensorType):
        return given
    if isinstance(given, np.ndarray):
        return TensorType(tuple(given.shape), dtype_of(given.dtype))
    raise FrontendError(f"argument {name}: expected gk.spec(shape, dtype) or an array, got {type(given).__name__}")


def _leaves(result: object) -> Iterator[object]:
    if isinstance(result, Mapping):
        result = tuple(cast("Mapping[object, object]", result).values())
    if isinstance(result, tuple | list):
        for item in cast("Sequence[object]", result):
            yield from _leaves(item)
    else:
        yield result


def _output(builder: Builder, leaf: object) -> Value:
    if isinstance(leaf, Tensor):
        if leaf.builder is not builder:
            raise FrontendError("an output comes from another trace")
        return leaf.value
    if isinstance(leaf, bool | int | float | np.ndarray | np.generic):
        return builder.constant(leaf)
    raise FrontendError(
        f"a traced function returns tensors, arrays or numbers (in tuples, lists, dicts), not {type(leaf).__name__}"
    )
