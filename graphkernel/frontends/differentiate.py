"""Gradients of Python functions and of graphs: ``gk.grad`` and ``gk.value_and_grad``.

A differentiated function records the operators of the function and behind them those of its gradient; so it can be traced,
compiled by ``gk.jit``, and differentiated again. A differentiated graph is a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, overload

import numpy as np

from graphkernel import ops
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.declarations import Catalogue, builtin_catalogue
from graphkernel.errors import FrontendError, GradientError, nearest
from graphkernel.frontends.jit import Jitted
from graphkernel.frontends.structure import leaves, mapped
from graphkernel.frontends.trace import Cell
from graphkernel.gradients.reverse import Rules, pullback, substituted
from graphkernel.ops import Tensor
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import PARAMETER, Alias, Builder, Graph, Node, Value
from kernelgen.tensor.inline import inline
from kernelgen.tensor.names import meant
from kernelgen.tensor.order import results_of
from kernelgen.tensor.types import Attrs, TensorType, dtype

Function = Callable[..., Any]
Argnums = int | Sequence[int]


@overload
def grad(
    of: Graph, /, *, wrt: str | Sequence[str] = (), cotangents: bool = False, catalogue: Catalogue | None = None
) -> Graph: ...
@overload
def grad(of: Function | Cell, /, argnums: Argnums = 0, *, catalogue: Catalogue | None = None) -> Function: ...
def grad(of: Any, /, argnums: Argnums = 0, **options: Any) -> Any:  # a graph or a function, see above
    """The gradient of a function or of a graph: :func:`value_and_grad` without the value."""
    if isinstance(of, Graph):
        return _graph_gradient(of, with_value=False, **options)
    both = value_and_grad(of, argnums, **options)
    return update_wrapper(lambda *arguments: both(*arguments)[1], both)


@overload
def value_and_grad(
    of: Graph, /, *, wrt: str | Sequence[str] = (), cotangents: bool = False, catalogue: Catalogue | None = None
) -> Graph: ...
@overload
def value_and_grad(of: Function | Cell, /, argnums: Argnums = 0, *, catalogue: Catalogue | None = None) -> Function: ...
def value_and_grad(of: Any, /, argnums: Argnums = 0, **options: Any) -> Any:  # a graph or a function, see above
    """The value of a function together with its gradient by the arguments ``argnums``, or of a graph by the inputs ``wrt``.

    Of a function, whose result must be one scalar float, the gradient has the structure of the argument (of a tuple of
    arguments when ``argnums`` is one), and its shapes and data types. Tensors are recorded; arrays are computed at once, by
    the operators' meaning; compile with ``gk.jit(gk.value_and_grad(loss))``.

    A graph gets the gradients by the inputs named in ``wrt`` (all floats, when none is named) behind its outputs. With
    ``cotangents`` its outputs may have any shape, and the result has one more input for each float among them: the gradient
    of the loss by it. Raises ``GradientError`` where an operator on the way has no gradient.
    """
    if isinstance(of, Graph):
        return _graph_gradient(of, with_value=True, **options)
    function = of.function if isinstance(of, Jitted) else of.construct if isinstance(of, Cell) else of

    def differentiated(*arguments: Any) -> tuple[Any, Any]:
        builder = next((leaf.builder for leaf in leaves(arguments) if isinstance(leaf, Tensor)), None)
        run = _recorded if builder is not None else _computed
        return run(function, argnums, arguments, builder or Builder(), **options)

    return update_wrapper(differentiated, function)


def _computed(
    function: Function, argnums: Argnums, arguments: tuple[Any, ...], builder: Builder, **options: Any
) -> tuple[Any, Any]:
    """On arrays: recorded with inputs in their places, and evaluated."""
    inputs: dict[Value, np.ndarray] = {}

    def parameter(leaf: Any) -> Any:  # numbers stay numbers
        if not isinstance(leaf, np.ndarray | np.generic):
            return leaf
        array = np.asarray(leaf)
        made = builder.parameter("x", TensorType(array.shape, dtype(array.dtype)))
        inputs[made] = array
        return Tensor(made, builder)

    value, gradients = _recorded(function, argnums, mapped(parameter, arguments), builder, **options)
    ends = [value, *leaves(gradients)]
    arrays = evaluate(Graph("gradient", tuple(inputs), tuple(leaf.value for leaf in ends)), list(inputs.values()))
    results = dict(zip((leaf.value for leaf in ends), arrays, strict=True))
    return results[value.value], mapped(lambda leaf: results[leaf.value], gradients)


def _recorded(
    function: Function,
    argnums: Argnums,
    arguments: tuple[Any, ...],
    builder: Builder,
    catalogue: Catalogue | None = None,
) -> tuple[Tensor, Any]:
    """On tensors. Inside of the function the arguments are leaves of their own: what it knows from elsewhere counts as
    constant even where it is the same tensor."""
    places = _places(argnums, len(arguments))
    actual: dict[Value, Value] = {}
    given = list(arguments)
    for place in places:
        given[place] = mapped(lambda leaf, place=place: _variable(leaf, place, builder, actual), arguments[place])
    written = len(builder.effects)
    loss = _loss(function(*given))
    found = pullback([(loss, _one(loss))], tuple(actual), builder, rules_of(catalogue))
    effects = builder.effects[written:]
    ends = [loss, *found.values()]
    tokens = () if builder.token is None else (builder.token,)
    moved = substituted([*(end.value for end in ends), *(value for _, value in effects), *tokens], actual)
    builder.effects[written:] = [_moved_effect(*effect, moved) for effect in effects]
    builder.token = next((moved.get(token, token) for token in tokens), None)

    def cotangent(leaf: Tensor) -> Tensor:
        end = found.get(leaf.value)
        return ops.zeros_like(Tensor(actual[leaf.value], builder)) if end is None else _moved(end, moved)

    gradients = tuple(mapped(cotangent, given[place]) for place in places)
    return _moved(loss, moved), gradients[0] if isinstance(argnums, int) else gradients


def _moved(tensor: Tensor, moved: Mapping[Value, Value]) -> Tensor:
    return Tensor(moved.get(tensor.value, tensor.value), tensor.builder)


def _moved_effect(target: Value, value: Value, moved: Mapping[Value, Value]) -> tuple[Value, Value]:
    """What a function wrote into an argument is written into what was given for it."""
    into = moved.get(target, target)
    if not into.is_parameter:
        raise FrontendError(
            f"{target.node.name} is assigned to in a function that is differentiated, where it is not an input of the "
            f"graph but a {into.op.name}"
        )
    return into, moved.get(value, value)


def _variable(leaf: object, place: int, builder: Builder, actual: dict[Value, Value]) -> Tensor:
    """A leaf that stands for an argument."""
    given = leaf if isinstance(leaf, Tensor) else Tensor(builder.constant(leaf), builder)
    if not given.dtype.is_float:
        raise GradientError(
            f"argument {place} holds {given.type}, and gradients are by floats only: leave it out of argnums"
        )
    made = Node(PARAMETER, (), Attrs(), (given.type,), given.value.node.name).out
    actual[made] = given.value
    return Tensor(made, builder)


def _loss(result: object) -> Tensor:
    if isinstance(result, Tensor) and result.dtype.is_float and not result.shape:
        return result
    got = str(result.type) if isinstance(result, Tensor) else type(result).__name__
    raise GradientError(
        f"the function gives {got}, and a gradient is that of one scalar float: reduce the result, as in "
        "ops.reduce_mean(y), or weigh it with its cotangent, as in ops.reduce_sum(y * dy)"
    )


def _one(loss: Tensor) -> Tensor:
    return Tensor(loss.builder.constant(1, loss.dtype), loss.builder)


def _places(argnums: Argnums, count: int) -> tuple[int, ...]:
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for place in places:
        if not -count <= place < count:
            raise GradientError(f"argnums names argument {place}, and {count} were given")
    return tuple(place % count for place in places)


def rules_of(catalogue: Catalogue | None) -> Rules:
    """The gradient rules and expanders of a catalogue, by default of all that is declared."""
    known = builtin_catalogue() if catalogue is None else catalogue
    return Rules(
        {entry.name: entry for entry in known.gradients},
        {entry.name: entry for entry in known.expanders},
    )


def _graph_gradient(
    graph: Graph,
    *,
    with_value: bool,
    wrt: str | Sequence[str] = (),
    cotangents: bool = False,
    catalogue: Catalogue | None = None,
) -> Graph:
    """The graph with its gradients as outputs; what is written in place stays so."""
    graph = inline(graph, lambda node: True)[0]
    ends = results_of(graph)
    builder = Builder(origin="d", token=next(iter(graph.outputs[len(ends) :]), None))
    written = {alias.output for alias in graph.aliases}
    results = [Tensor(value, builder) for place, value in enumerate(ends) if place not in written]
    if cotangents:
        seen = [(y, _cotangent_input(y, place)) for place, y in enumerate(results) if y.dtype.is_float]
    elif len(results) == 1:
        seen = [(_loss(results[0]), _one(results[0]))]
    else:
        raise GradientError(
            f"the graph has {len(results)} outputs: choose one, or take their cotangents (cotangents=True)"
        )
    wanted = _inputs_named(graph, (wrt,) if isinstance(wrt, str) else wrt)
    found = pullback(seen, wanted, builder, rules_of(catalogue))
    gradients = [found[x] if x in found else ops.zeros_like(Tensor(x, builder)) for x in wanted]
    kept = [place for place in range(len(ends)) if with_value or place in written]
    aliases = tuple(Alias(kept.index(alias.output), alias.input) for alias in graph.aliases)
    more = tuple(dy.value for _, dy in seen) if cotangents else ()
    tokens = () if builder.token is None else (builder.token,)
    outputs = (*(ends[place] for place in kept), *(gradient.value for gradient in gradients), *tokens)
    name = f"{graph.name}_gradient"
    called = (*(graph.output_names[place] for place in kept), *(f"{x.node.name}_gradient" for x in wanted))
    called = (*called, *("token" for _ in tokens))
    return with_unique_labels(Graph(name, (*graph.inputs, *more), outputs, aliases, called, derived=graph.derived))


def _cotangent_input(result: Tensor, place: int) -> Tensor:
    return Tensor(result.builder.parameter(f"cotangent_{place}", result.type), result.builder)


def _inputs_named(graph: Graph, names: Sequence[str]) -> tuple[Value, ...]:
    """The inputs of these names, which must be floats; all floats when there are none."""
    inputs = {value.node.name: value for value in graph.inputs}
    wanted: list[Value] = []
    for typed in names:
        name = meant(typed, inputs)
        if name is None:
            raise GradientError(f"the graph has no input {typed!r}{nearest(typed, inputs)}")
        if not inputs[name].type.dtype.is_float:
            raise GradientError(f"input {name} is {inputs[name].type}, and gradients are by floats only")
        wanted.append(inputs[name])
    return tuple(wanted) or tuple(x for x in graph.inputs if x.type.dtype.is_float)
