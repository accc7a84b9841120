"""Plans: graphs in which regions of onnxruntime, kernels, numpy, views and writes in place meet in every order.

Each is compiled in debug mode (a verified plan, poisoned memory) and called several times, into given arrays and by
threads; the numpy meaning says what must come out. Most have kernels by their meaning, since plans are looked at here,
every eighth compiled ones.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.ops import OPS, Tensor
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost
from kernelgen.tensor.bind import concrete_shape
from kernelgen.tensor.graph import Alias, Builder, Graph, Node, Value
from kernelgen.tensor.types import Dim, TensorType, dtype, sym
from tests.support.plan_runs import by_meaning, fault

DATA_TYPES = (
    "float32",
    "float32",
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int32",
    "int64",
    "uint8",
    "int8",
    "bool",
)
MOST_MOVES = 16
COMPILED = 8  # one in so many has compiled kernels
LARGEST_RANK = 6

Move = Callable[[Random, Tensor, "Pool"], Tensor]


class Pool:
    """The values so far, and the inputs that may be assigned to."""

    def __init__(self, random: Random, values: list[Tensor], states: list[Tensor]) -> None:
        self.random, self.values, self.states = random, values, states

    def any(self) -> Tensor:
        """A value, the last ones more often."""
        return self.random.choice(self.values[-3:] if self.random.random() < 0.7 else self.values)

    def like(self, x: Tensor) -> Tensor:
        """Another value of the same type."""
        return self.random.choice([value for value in self.values if value.value.type == x.value.type])


def case(seed: int) -> str | None:
    """What does not hold for the graph of a seed, or None."""
    logging.disable(logging.CRITICAL)
    random = Random(f"plan {seed}")
    graph = draw(random)
    calls = [arrays(random, graph) for _ in range(3)]
    compiled: dict[str, Any] = {} if seed % COMPILED == 0 else {"compiler": by_meaning}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        why = fault(graph, calls, flags(random), host=host(random), **compiled)
    return None if why is None else f"{why}\n{graph}"


def draw(random: Random) -> Graph:
    """A graph by random moves over a pool."""
    builder = Builder()
    of = dtype(random.choice(DATA_TYPES))
    shape = _shape(random)
    inputs = [builder.parameter(f"x{number}", TensorType(shape, of)) for number in range(3)]
    tensors = [Tensor(value, builder) for value in inputs]
    pool = Pool(random, tensors[:2], tensors[2:])
    for _ in range(random.randint(2, MOST_MOVES)):
        pool.values.extend(_made(random, pool))
    return _closed(random, builder, pool, inputs)


def _shape(random: Random) -> tuple[Dim, ...]:
    extents: list[Dim] = [random.choice((1, 2, 3, 4)) for _ in range(random.choice((1, 2, 2, 3)))]
    if random.random() < 0.05:
        extents[0] = 0
    symbols = [sym("BSK"[axis]) if random.random() < 0.35 else extent for axis, extent in enumerate(extents)]
    return (*symbols, 4)


def _made(random: Random, pool: Pool) -> tuple[Tensor, ...]:
    """What one move makes; nothing where the type rules refuse it."""
    moves = random.choice((HOST, HOST, VIEWS, VIEWS, KERNEL, NUMPY, OTHER))
    try:
        found = random.choice(moves)(random, pool.any(), pool)
    except TypeRuleError:
        return ()
    return (found,) if found.ndim <= LARGEST_RANK else ()


def _closed(random: Random, builder: Builder, pool: Pool, inputs: list[Value]) -> Graph:
    """Some values are results, now and then one twice, or an input; what was written is one as well."""
    made = [tensor.value for tensor in pool.values]
    chosen = [random.choice(made) for _ in range(random.choice((1, 1, 2, 3)))] + made[-1:]
    chosen = chosen if random.random() < 0.1 else list(dict.fromkeys(chosen))
    written = dict(builder.effects)
    outputs = [*chosen, *(value for value in written.values() if value not in chosen)]
    aliases = tuple(Alias(outputs.index(value), inputs.index(target)) for target, value in written.items())
    return Graph("plan", tuple(inputs), tuple(outputs), aliases)


# ---------------------------------------------------------------- moves


def _onnx(op_type: str, operands: tuple[Tensor, ...], result: TensorType) -> Tensor:
    """An ONNX operator that we have no rule for, or act as if."""
    (first, *_), values = operands, [operand.value for operand in operands]
    attributes: dict[str, Any] = {
        "op_type": op_type,
        "opset": 17,
        "domain": "",
        "attributes": "[]",
        "result_types": (str(result),),
    }
    return Tensor(first.builder.emit(OPS["Onnx"], *values, **attributes), first.builder)


def _host(random: Random, x: Tensor, pool: Pool) -> Tensor:
    return _onnx("Identity", (x,), x.value.type)


def _host_transposed(random: Random, x: Tensor, pool: Pool) -> Tensor:
    """Without ``perm`` the dims come backwards."""
    kind = x.value.type
    return _onnx("Transpose", (x,), TensorType(tuple(reversed(kind.shape)), kind.dtype))


def _host_maximum(random: Random, x: Tensor, pool: Pool) -> Tensor:
    """Of two; onnxruntime has it for some data types only."""
    return _onnx("Max", (x, pool.like(x)), x.value.type)


def _host_is_nan(random: Random, x: Tensor, pool: Pool) -> Tensor:
    """Changes the data type there and back."""
    shape, of = x.value.type.shape, x.value.type.dtype
    return ops.cast(_onnx("IsNaN", (ops.cast(x, "float32"),), TensorType(shape, dtype("bool"))), of.name)


def _product(random: Random, x: Tensor, pool: Pool) -> Tensor:
    side = x.shape[-1] if x.ndim else 1
    if not isinstance(side, int) or x.dtype.name not in ("float32", "float64"):
        raise TypeRuleError("no product of these")
    weights = np.eye(side, dtype=x.dtype.numpy)[::-1].copy()
    return (
        ops.matmul(x, weights) if x.ndim > 1 else ops.reshape(ops.matmul(ops.reshape(x, (1, side)), weights), (side,))
    )


def _join(random: Random, x: Tensor, pool: Pool) -> Tensor:
    return ops.concat([x, pool.like(x)], random.randrange(max(1, x.ndim)))


def _part(random: Random, x: Tensor, pool: Pool) -> Tensor:
    """The first half of an axis whose extent is known."""
    known = [(axis, extent) for axis, extent in enumerate(x.shape) if isinstance(extent, int) and extent > 1]
    if not known:
        raise TypeRuleError("no axis to cut")
    axis, extent = random.choice(known)
    end = [*x.shape]
    end[axis] = (extent + 1) // 2
    return ops.strided_slice(x, [0] * x.ndim, end)


def _turned(random: Random, x: Tensor, pool: Pool) -> Tensor:
    order = list(range(x.ndim))
    random.shuffle(order)
    return ops.transpose(x, tuple(order))


def _assigned(random: Random, x: Tensor, pool: Pool) -> Tensor:
    for state in pool.states:
        if state.value.type == x.value.type:
            return ops.assign(state, x)
    raise TypeRuleError("nothing of this type can be assigned to")


def _logical(random: Random, x: Tensor, pool: Pool) -> Tensor:
    return ops.equal(x, pool.like(x)) if x.dtype.name == "bool" else ops.maximum(x, pool.like(x))


def _negated(random: Random, x: Tensor, pool: Pool) -> Tensor:
    return ops.logical_not(x) if x.dtype.name == "bool" else ops.neg(x)


def _halved(random: Random, x: Tensor, pool: Pool) -> Tensor:
    if x.dtype.name not in ("float32", "float64", "float16"):
        raise TypeRuleError("not of these")
    return ops.tanh(x * 0.5)


def _spread(random: Random, x: Tensor, pool: Pool) -> Tensor:
    """A sum, spread again: the kernel's operand may lack symbols of its result."""
    if x.dtype.name not in ("float32", "float64"):
        raise TypeRuleError("not of these")
    return ops.broadcast_to(ops.reduce_sum(x * 0.25, axis=0, keep_dims=True), x.shape)


def _plain(function: Callable[[Any], Any]) -> Move:
    return lambda random, x, pool: function(x)


def _sinh(random: Random, x: Tensor, pool: Pool) -> Tensor:
    """No kernel and no onnxruntime: numpy. Back to small numbers at once."""
    if x.dtype.name not in ("float32", "float64"):
        return _logical(random, x, pool)
    return ops.sinh(ops.minimum(ops.maximum(x, -1.0), 1.0))


def _between(random: Random, x: Tensor, pool: Pool) -> Tensor:
    """Views between two operators of the library; the last view may be a result itself."""
    shown = _host(random, x, pool)
    for _ in range(random.randint(1, 3)):
        shown = random.choice(VIEWS)(random, shown, pool)
    pool.values.append(shown)
    return random.choice((_host, _host_transposed, _host_maximum))(random, shown, pool)


HOST: tuple[Move, ...] = (_host, _host, _host_transposed, _host_maximum, _host_is_nan, _product, _between, _between)
VIEWS: tuple[Move, ...] = (
    _plain(lambda x: ops.reshape(x, (-1,))),
    _plain(lambda x: ops.reshape(x, (-1, 2))),
    _plain(lambda x: ops.reshape(x, (2, -1))),
    _plain(lambda x: ops.reshape(x, (*x.shape[:-2], -1)) if x.ndim > 1 else x),
    _plain(lambda x: ops.expand_dims(x, 0)),
    _plain(lambda x: ops.expand_dims(x, x.ndim)),
    _plain(lambda x: ops.squeeze(x)),
    _plain(lambda x: ops.flatten(x)),
    _plain(lambda x: ops.reshape(ops.reshape(x, (-1,)), x.shape)),
)
KERNEL: tuple[Move, ...] = (_negated, _logical, _halved, _spread)
NUMPY: tuple[Move, ...] = (_sinh,)
OTHER: tuple[Move, ...] = (_join, _part, _turned, _assigned, _assigned)


# ---------------------------------------------------------------- how it is run


def arrays(random: Random, graph: Graph) -> list[np.ndarray[Any, Any]]:
    """Whole numbers and halves from -2 to 2; the symbols have other values every time."""
    generator = np.random.default_rng(random.randrange(2**31))
    sizes = {name: random.choice((0, 1, 2, 3, 5)) for value in graph.inputs for name in value.type.symbols}
    found: list[np.ndarray[Any, Any]] = []
    for value in graph.inputs:
        content = generator.integers(-4, 5, concrete_shape(value.type.shape, sizes))
        floats = value.type.dtype.name.endswith(("float16", "float32", "float64"))
        found.append((content / 2 if floats else np.abs(content)).astype(value.type.dtype.numpy))
    return found


def flags(random: Random) -> dict[str, object]:
    """A level, sometimes small kernels, sometimes results over operands."""
    found: dict[str, object] = {"opt_level": random.choice((0, 1, 2, 2, 3))}
    if random.random() < 0.4 and found["opt_level"]:
        found["composite_op_limit_size"] = random.choice((1, 2, 3))
    if random.random() < 0.3 and found["opt_level"]:
        found["enable_auto_tensor_inplace"] = True
    return found


@dataclass(frozen=True)
class Picky(OnnxRuntimeHost):
    """Declines a share of the operators and views, as onnxruntime does for reasons of its own."""

    share: float = 0.0
    seed: int = 0

    def why_not(self, node: Node) -> str:
        """Whether it likes the node depends on its name."""
        declined = Random(f"{self.seed} {node.name}").random() < self.share
        return "this one is left out" if declined else super().why_not(node)


def host(random: Random) -> object:
    """Mostly onnxruntime, in one thread so that many can run beside each other."""
    if random.random() < 0.15:
        return random.choice(("numpy", "auto"))
    return Picky(threads=1, share=random.choice((0.0, 0.2, 0.4)), seed=random.randrange(1000))
