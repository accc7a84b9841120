"""Random graphs with random flags, from numbers alone, and what must hold for them.

A :class:`Sample` is a seed and the numbers of its steps: the same numbers give the same graph, and leaving steps out
gives a smaller one, which is how a failure is made small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
from graph_moves import ALWAYS, EXACT, LARGEST, NOT_EMPTY, Entry, Made, Pool

import graphkernel as gk
from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import TypeRuleError
from graphkernel.ops import Tensor
from graphkernel.options import Options
from graphkernel.pipeline import steps_for
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost
from graphkernel.runtime.steps.host import NumpyHost
from kernelgen.tensor.graph import Alias, Builder, Graph, Value
from kernelgen.tensor.types import Dim, TensorType, dtype, sym
from kernelgen.tensor.verify import verify
from tests.support.plan_runs import by_meaning, fault

Array = np.ndarray[Any, Any]
TARGETS = ("cpu", "gpu", "ascend")
MOST_STEPS = 14
TOLERANCE: Mapping[str, float] = {"float32": 2e-4, "float64": 1e-5, "float16": 0.06}
EXPANDED = ("Softmax", "LayerNorm", "GeLU", "BiasAdd", "ReduceMean", "Sigmoid", "Square", "TanhGrad", "AdamWeightDecay")
CLUSTERED = (
    "Add",
    "Mul",
    "Exp",
    "Tanh",
    "ReduceSum",
    "Reshape",
    "Transpose",
    "Select",
    "Cast",
    "BroadcastTo",
    "RealDiv",
)
LOWERS_PRECISION = ("bf16", "bfloat16", "low_precision", "decrease")  # passes whose purpose is to change numbers
GROWS = ("Square", "Pow", "Exp", "Mul", "FusedMulAdd", "ReduceSum", "AddN", "SquaredDifference", "AssignAdd")
PATTERNS = ("elemwise_broadcast_fwd_depth", "elemwise_broadcast_bwd_width", "reduce_fwd_depth", "reshape", "width")


@dataclass(frozen=True)
class Sample:
    """A seed, the steps that are kept, and the flags that are kept (all when None)."""

    seed: int
    steps: tuple[int, ...]
    flags: tuple[str, ...] | None = None

    @staticmethod
    def of(seed: int) -> Sample:
        """The whole sample of a seed."""
        return Sample(seed, tuple(range(Random(f"{seed}/size").randint(1, MOST_STEPS))))


@dataclass(frozen=True)
class Case:
    """A graph, arrays for it, and the flags it is optimized with."""

    graph: Graph
    arrays: tuple[Array, ...]
    options: Mapping[str, object]


def case(sample: Sample) -> Case:
    """What a sample stands for."""
    random = Random(f"{sample.seed}/shape")
    pool, inputs, arrays = _inputs(random)
    for step in sample.steps:
        pool.random = Random(f"{sample.seed}/step{step}")
        _take(pool)
    graph = _closed(random, pool, inputs)
    options = _options(Random(f"{sample.seed}/flags"))
    kept = {key: value for key, value in options.items() if sample.flags is None or key in sample.flags}
    return Case(graph, arrays, kept)


# ---------------------------------------------------------------- graphs


def _inputs(random: Random) -> tuple[Pool, list[Value], tuple[Array, ...]]:
    """Inputs of the full shape, of shapes that broadcast to it, scalars, and targets of effects."""
    of = random.choice(("float32", "float32", "float32", "float64", "float16"))
    extents = [random.choice((1, 2, 3, 4, 5, 7, 8)) for _ in range(random.choice((2, 2, 3)))]
    if random.random() < 0.06:
        extents[random.randrange(len(extents))] = 0
    named: list[Dim] = [sym("NMK"[axis]) if random.random() < 0.2 else extent for axis, extent in enumerate(extents)]
    masks = [[True] * len(extents)] * 2 + [[random.random() < 0.5 for _ in extents] for _ in range(2)]
    masks += [[True] * len(extents)] * 4
    builder, generator = Builder(), np.random.default_rng(random.randrange(10**6))
    inputs: list[Value] = []
    arrays: list[Array] = []
    for number, mask in enumerate(masks):
        shape = tuple(dim if keep else 1 for dim, keep in zip(named, mask, strict=True))
        concrete = tuple(extent if keep else 1 for extent, keep in zip(extents, mask, strict=True))
        if number == 3 and random.random() < 0.5:
            shape = concrete = ()
        inputs.append(builder.parameter(f"x{number}", TensorType(shape, dtype(of))))
        array = generator.standard_normal(concrete).clip(-3, 3)
        arrays.append((np.abs(array) if number == len(masks) - 1 else array).astype(dtype(of).numpy))
    tensors = [Tensor(value, builder) for value in inputs]
    entries = [Entry(tensor, exact=True) for tensor in tensors[:5]]
    pool = Pool(random, tuple(named), 0 in extents, entries, tensors[4:5], tuple(tensors[5:]))
    return pool, inputs, tuple(arrays)


def _take(pool: Pool) -> None:
    """Makes a move; what the type rules refuse, with symbolic extents above all, is left out."""
    kind = pool.random.random()
    moves = EXACT if kind < 0.2 else ALWAYS if kind < 0.7 or pool.empty else NOT_EMPTY
    effects = list(pool.values[0].tensor.builder.effects)
    try:
        made = pool.random.choice(moves)(pool)
    except TypeRuleError:
        pool.values[0].tensor.builder.effects[:] = effects
        return
    for tensor in _tensors(made):
        if tensor.dtype != pool.values[0].tensor.dtype or not _fits(tensor, pool):
            continue
        exact = moves is EXACT and all(
            _is_exact(pool, Tensor(value, tensor.builder)) for value in tensor.value.node.args
        )
        pool.values.append(Entry(tensor if exact else _bounded(pool.random, tensor), exact))


def _tensors(made: Made) -> tuple[Tensor, ...]:
    return (made,) if isinstance(made, Tensor) else tuple(made)


def _bounded(random: Random, x: Tensor) -> Tensor:
    """What may have grown is cut or squeezed; the rest is now and then, too."""
    if x.value.op.name not in GROWS and random.random() < 0.8:
        return x
    return ops.tanh(x) if random.random() < 0.4 else ops.minimum(ops.maximum(x, -LARGEST), LARGEST)


def _fits(tensor: Tensor, pool: Pool) -> bool:
    """True when the value broadcasts to the full shape."""
    own = (1,) * (len(pool.full) - tensor.ndim) + tuple(tensor.shape)
    return len(own) == len(pool.full) and all(a in (1, b) for a, b in zip(own, pool.full, strict=True))


def _is_exact(pool: Pool, x: Tensor) -> bool:
    return x.value.constant is not None or any(entry.exact and entry.tensor.value == x.value for entry in pool.values)


def _closed(random: Random, pool: Pool, inputs: list[Value]) -> Graph:
    """Some values become outputs, the last one always; what was written becomes further outputs."""
    made = [entry.tensor.value for entry in pool.values if not entry.tensor.value.is_parameter]
    chosen = [value for value in made[:-1] if random.random() < 0.25] + made[-1:]
    if random.random() < 0.05:
        chosen.append(inputs[0])
    written = dict(pool.values[0].tensor.builder.effects)
    outputs = chosen + [value for value in written.values() if value not in chosen]
    outputs = outputs or [inputs[0]]
    aliases = tuple(Alias(outputs.index(value), inputs.index(target)) for target, value in written.items())
    return Graph("random", tuple(inputs), tuple(outputs), aliases)


# ---------------------------------------------------------------- flags


def _options(random: Random) -> dict[str, object]:
    """A level, a target, and in half of the cases passes, operators and patterns switched on and off."""
    level, target = random.choice((0, 1, 2, 2, 3, 3)), random.choice(TARGETS)
    found: dict[str, object] = {"opt_level": level, "target": target}
    if random.random() < 0.3:
        found["exact_precision_mode"] = False
    if level == 0 or random.random() < 0.5:
        return found
    on, off = _passes(level, target)
    lists = {
        "disable_pass": on, "enable_pass": off, "disable_expand_ops": EXPANDED, "disable_cluster_ops": CLUSTERED,
        "disable_fusion_pattern": PATTERNS,
    }  # fmt: skip
    for flag, choices in lists.items():
        share = random.choice((0.0, 0.1, 0.3, 0.6))
        chosen = tuple(name for name in choices if random.random() < share)
        if chosen:
            found[flag] = chosen
    if random.random() < 0.2:
        found["composite_op_limit_size"] = random.choice((1, 2, 5, 20))
    return found


@cache
def _passes(level: int, target: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The steps that are on, and those that are off and keep the precision."""
    steps = steps_for(Options.parse({"opt_level": level, "target": target}), builtin_catalogue())
    on = tuple(dict.fromkeys(step.spellings[1] for step in steps if step.enabled))
    off = tuple(dict.fromkeys(step.spellings[1] for step in steps if not step.enabled))
    return on, tuple(name for name in off if name not in on and not any(word in name for word in LOWERS_PRECISION))


# ---------------------------------------------------------------- what must hold


def failure(sample: Sample) -> str | None:
    """What does not hold for a sample, or None."""
    try:
        given = case(sample)
        return _failure(given)
    except Exception as error:  # whatever is raised is a failure of the sample
        return f"{type(error).__name__}: {error}"


def _failure(given: Case) -> str | None:
    graph = given.graph
    verify(graph)
    expected = gk.evaluate(graph, given.arrays)
    fused = gk.optimize(graph, flags=given.options)
    verify(fused)
    if fused.aliases != graph.aliases or [v.type for v in fused.outputs] != [v.type for v in graph.outputs]:
        return "the boundary changed"
    if gk.parse(str(fused)) != fused:
        return "the text reads back differently"
    got = gk.evaluate(fused, given.arrays)
    worst = [apart(a, b) for a, b in zip(got, expected, strict=True)]
    bad = [index for index, distance in enumerate(worst) if not distance <= TOLERANCE[graph.inputs[0].type.dtype.name]]
    return f"output {bad[0]} differs by {worst[bad[0]]:.2g}" if bad else _plan_failure(fused, given.arrays)


def _plan_failure(fused: Graph, arrays: Sequence[Array]) -> str | None:
    """What the plan of a fused graph does not keep: verified, in poisoned memory, kernels by their meaning."""
    flags: dict[str, object] = {"opt_level": 0}
    found = (
        fault(fused, (arrays, [-array for array in arrays]), flags, compiler=by_meaning, host=host)
        for host in (NumpyHost(), OnnxRuntimeHost(threads=1))
    )
    return next(filter(None, found), None)


def apart(got: Array, want: Array) -> float:
    """The largest difference relative to the largest magnitude, which counts as 1 at least."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    finite = np.isfinite(b)
    return float((np.abs(a[finite] - b[finite]) / max(1.0, np.abs(b[finite]).max(initial=0.0))).max(initial=0.0))


def smallest(sample: Sample) -> tuple[Sample, str]:
    """A sample that still fails and from which no step and no flag can be left out."""
    found = failure(sample)
    assert found is not None, "only failures are made small"
    sample = replace(sample, flags=tuple(case(sample).options))
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in _smaller(sample):
            why = failure(smaller)
            if why is not None:
                sample, found, shrunk = smaller, why, True
                break
    return sample, found


def _smaller(sample: Sample) -> Iterator[Sample]:
    for index in reversed(range(len(sample.steps))):
        yield replace(sample, steps=sample.steps[:index] + sample.steps[index + 1 :])
    for flag in sample.flags or ():
        if flag not in ("opt_level", "target"):
            yield replace(sample, flags=tuple(name for name in sample.flags or () if name != flag))
