"""Python functions as graphs: call once with symbolic tensors and keep what was recorded.

``trace(mynet, spec((4, 4), "float32"))``. Objects work too: ``construct`` (MindSpore's Cell) or ``__call__`` is traced.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from graphkernel.errors import FrontendError, nearest
from graphkernel.frontends.structure import named_map
from graphkernel.ops.tensor.tensor import Tensor
from graphkernel.runtime.inputs.arrays import layout_of
from kernelgen.tensor.graph import Alias, Builder, Graph, Value
from kernelgen.tensor.types import DTYPES, Dim, DType, Sym, TensorType, parse_dim
from kernelgen.tensor.types import dtype as dtype_of


@runtime_checkable
class Cell(Protocol):
    """An object whose ``construct`` computes, as MindSpore's Cell."""

    @property
    def construct(self) -> Callable[..., Any]:
        """The function to trace."""
        ...


def spec(shape: int | str | Sequence[Dim | str], dtype: str | DType = "float32") -> TensorType:
    """The type of an argument. Extents are ints or symbols: ``spec(("N", 4))``; equal names are equal extents.

    Raises FrontendError for an extent or a data type that is none.
    """
    dims = shape if isinstance(shape, Sequence) and not isinstance(shape, str) else (shape,)
    extents = tuple(map(_extent, dims))
    named = str(dtype).removeprefix("torch.") if type(dtype).__module__ == "torch" else dtype
    try:
        return TensorType(extents, dtype_of(named))
    except ValueError as error:
        raise FrontendError(f"spec: {error}{nearest(str(dtype), [known.name for known in DTYPES])}") from error


def _extent(given: object) -> Dim:
    """An extent as it is written; ``FrontendError`` where it is none."""
    if isinstance(given, str):
        try:
            return parse_dim(given)
        except ValueError as error:
            raise FrontendError(f"spec: {error}") from error
    if isinstance(given, Sym):
        return given
    number = int(given) if isinstance(given, int | np.integer) and not isinstance(given, bool) else None
    if number is None or number < 0:
        what = "no extent:" if number is None else "negative extent"
        raise FrontendError(f"spec: {what} {given!r}; an extent that is not known has a name, such as 'N'")
    return number


@dataclass(frozen=True)
class Static:
    """An argument that is known when the function is traced: the function gets the value itself."""

    value: object


@dataclass(frozen=True)
class Recorded:
    """The graph of a call, and what the call gave: containers with the number of a graph output, or None, as leaves."""

    graph: Graph
    result: Any


def trace(function: Callable[..., Any] | Cell, *specs: Any, name: str | None = None) -> Graph:  # specs nest
    """The graph of a function.

    One spec for each argument: a :func:`spec`, an example array, or a tuple, list or dict of them. Inputs are named
    after the parameters (``x``, or ``x_0``, ``x_key`` inside containers), outputs after the keys of a dict that the
    function returns, and are flattened in order. What ``ops.assign`` wrote into inputs becomes further outputs that alias
    them. Raises ``FrontendError``.
    """
    return record_call(function, specs, {}, name).graph


def record_call(
    function: Callable[..., Any] | Cell,
    positional: Sequence[Any],  # specs nest
    keywords: Mapping[str, Any],
    name: str | None = None,
) -> Recorded:
    """A call of ``function``, recorded as a graph called ``name``.

    ``positional`` and ``keywords`` are specs, example arrays, :class:`Static` values, or containers of these, as
    :func:`trace` takes them.
    """
    _refuse_torch(function)
    target = function.construct if isinstance(function, Cell) else function
    builder = Builder()
    names = [*_parameter_names(target, len(positional)), *keywords]
    inputs: list[Value] = []

    def argument(called: str, given: object) -> object:
        if isinstance(given, Static):
            return given.value
        inputs.append(builder.parameter(called, _type_of(called, given)))
        return Tensor(inputs[-1], builder)

    given = zip(names, (*positional, *keywords.values()), strict=True)
    arguments = [named_map(argument, each, called) for called, each in given]
    first = len(positional)
    returned = target(*arguments[:first], **dict(zip(keywords, arguments[first:], strict=True)))
    return _recorded(builder, inputs, returned, name or _function_name(function))


def _recorded(builder: Builder, inputs: Sequence[Value], returned: object, name: str) -> Recorded:
    """The graph of what the builder recorded.

    Values that were written into inputs are further outputs, and the token of the last collective is the last one.
    """
    outputs: list[Value] = []
    called: list[str] = []

    def output(path: str, leaf: object) -> int | None:
        if leaf is None and (leaf is not returned or builder.effects or builder.token is not None):
            return None
        called.append(path)
        outputs.append(_output(builder, leaf))
        return len(outputs) - 1

    result = named_map(output, returned, "" if isinstance(returned, Mapping) else "output")
    written = dict(builder.effects)  # the last write into an input counts
    hidden = {value: target.node.name for target, value in written.items() if value not in outputs}
    outputs.extend(hidden)
    tokens = () if builder.token is None else (builder.token,)
    aliases = tuple(Alias(outputs.index(value), inputs.index(target)) for target, value in written.items())
    results = (*called, *hidden.values(), *("token" for _ in tokens)) if _has_keys(returned) else ()
    return Recorded(Graph(name, tuple(inputs), (*outputs, *tokens), aliases, results), result)


def _has_keys(tree: object) -> bool:
    """Whether a mapping is somewhere in it, which names what it holds."""
    inside = cast("Sequence[object]", tree) if isinstance(tree, tuple | list) else ()
    return isinstance(tree, Mapping) or any(map(_has_keys, inside))


def _refuse_torch(function: object) -> None:
    """A module of torch computes with torch's functions, which take no tensors of ours."""
    if any(base.__module__.partition(".")[0] == "torch" for base in type(function).__mro__):
        raise FrontendError(
            f"{type(function).__name__} is a module of torch, whose operators cannot be traced: export it with "
            "torch.onnx.export(module, arguments, 'model.onnx') and gk.load('model.onnx'), or write it with gk.ops"
        )


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of so many positional arguments."""
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


def _type_of(name: str, given: object) -> TensorType:
    if isinstance(given, TensorType):
        return given
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return spec(*layout_of(given, name))
    raise FrontendError(f"argument {name}: expected gk.spec(shape, dtype) or an array, got {type(given).__name__}")


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
