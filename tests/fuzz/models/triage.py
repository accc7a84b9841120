"""Who is right where our results and onnxruntime's differ.

Three steps. What moves as far when every value is changed in its last place is ill-conditioned, and any answer near it
will do. Then each node is run alone, on onnxruntime's own operands: one that differs alone is either a known mistake of
onnxruntime (``mistakes``), and the rest is judged from our result on, or it is wrong. What then still differs is wrong
only together: fusion, planning, or a pass. But onnxruntime's mistakes come and go with alignment and neighbours, so what
depends on the result of a node that may be one is not judged: it changes when that result is replaced by anything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from tests.fuzz.models.compare import differs
from tests.fuzz.models.contents import is_float, smallest_normal, unit
from tests.fuzz.models.mistakes import reason_of
from tests.fuzz.models.oracle import Array, Unable, run_node
from tests.fuzz.models.sample import Arrays, ModelSample
from tests.fuzz.outcome import Kind, Outcome

RunNode = Callable[[NodeProto, Sequence[Array | None], Sequence[bool]], list[Array]]
"""One node of the model in our hands; raises when it cannot be run alone."""
WIGGLES = 6
ILL_CONDITIONED = "ill-conditioned: small changes move the result as far"


@dataclass(frozen=True)
class Difference:
    """Results of one set of inputs that are not near enough."""

    of: int
    found: Mapping[str, Array]
    text: str


def chain(
    sample: ModelSample, given: Arrays, instead: Arrays | None = None, change: Callable[[Array], Array] = lambda x: x
) -> dict[str, Array]:
    """Every value of the model by onnxruntime, node by node; ``instead`` holds results that are taken as they are."""
    values = {**sample.constants, **{name: change(array) for name, array in given.items()}}
    constants = sample.constants.keys()
    for node in sample.model.graph.node:
        operands = [values[name] if name else None for name in node.input]
        results = run_node(node, sample.opset, operands, [name in constants for name in node.input])
        for name, result in zip(node.output, results, strict=True):
            values[name] = (instead or {}).get(name, change(result))
    return values


def judge(sample: ModelSample, difference: Difference, ours: RunNode) -> Outcome:
    """Explained, with the reason, or wrong."""
    given = sample.sets[difference.of]
    expected = chain(sample, given)
    if _near(sample, given, expected, difference.found, {}):
        return Outcome(Kind.EXPLAINED, ILL_CONDITIONED)
    reasons: list[str] = []
    instead: dict[str, Array] = {}
    for node in sample.model.graph.node:
        alone = _alone(sample, node, expected, ours)
        if alone is None:
            continue
        reason = reason_of(node, [expected[name] if name else None for name in node.input])
        if reason is None:
            return Outcome(Kind.WRONG, f"{node.op_type} alone", alone.text)
        reasons.append(f"{node.op_type}: {reason}")
        instead |= {name: array for name, array in alone.found.items() if name}
        expected = chain(sample, given, instead)
    if instead and _near(sample, given, expected, difference.found, instead):
        return Outcome(Kind.EXPLAINED, reasons[0])
    doubtful = _doubtful(sample, expected)
    instead |= _of_doubtful(sample, expected, doubtful, ours)
    if doubtful and _near(sample, given, chain(sample, given, instead), difference.found, instead):
        return Outcome(Kind.EXPLAINED, next(iter(doubtful.values())))
    if doubtful and _near(sample, given, expected, difference.found, instead, doubtful):
        return Outcome(Kind.EXPLAINED, next(iter(doubtful.values())))
    operators = "+".join(sorted({node.op_type for node in sample.model.graph.node}))
    return Outcome(Kind.WRONG, "together", f"{difference.text} [{operators}]")


def _doubtful(sample: ModelSample, values: Arrays) -> dict[str, str]:
    """Results of nodes for which a mistake of onnxruntime is known, and which."""
    found: dict[str, str] = {}
    for node in sample.model.graph.node:
        reason = reason_of(node, [values[name] if name else None for name in node.input])
        if reason is not None:
            found |= {name: f"{node.op_type}: {reason}" for name in node.output if name}
    return found


def _of_doubtful(sample: ModelSample, values: Arrays, doubtful: Mapping[str, str], ours: RunNode) -> dict[str, Array]:
    """Our results of the nodes in doubt, near to onnxruntime's or not: a sum that cancels decides a comparison."""
    found: dict[str, Array] = {}
    for node in sample.model.graph.node:
        if doubtful.keys() & set(node.output):
            operands = [values[name] if name else None for name in node.input]
            with contextlib.suppress(Exception):  # refused alone
                results = ours(node, operands, [name in sample.constants for name in node.input])
                found |= {name: result for name, result in zip(node.output, results, strict=True) if name}
    return found


def _near(
    sample: ModelSample, given: Arrays, expected: Arrays, found: Arrays, instead: Arrays, doubtful: Iterable[str] = ()
) -> bool:
    """Whether the results lie as near as small changes of every value move them, and any change of doubtful ones."""
    moved: list[Arrays] = []
    for seed in range(WIGGLES):
        numbers = np.random.default_rng(seed)
        anything = {name: replaced(numbers, expected[name]) for name in doubtful}
        try:
            moved.append(chain(sample, given, {**instead, **anything}, lambda x, numbers=numbers: wiggled(numbers, x)))
        except Unable:  # a changed number was the size of something
            continue
    return all(differs(expected[name], array, [m[name] for m in moved]) is None for name, array in found.items())


def replaced(numbers: np.random.Generator, x: Array) -> Array:
    """Anything of the type: NaN everywhere, or numbers from a few or from many."""
    if is_float(x.dtype) and numbers.random() < 0.5:
        return np.full(x.shape, np.nan, x.dtype)
    return np.asarray(numbers.integers(0, 2 if x.dtype.kind == "b" else numbers.choice((2, 100)), x.shape)).astype(
        x.dtype
    )


def wiggled(numbers: np.random.Generator, x: Array) -> Array:
    """Floats moved by up to four units in the last place, which do not shrink for denormals."""
    if not is_float(x.dtype):
        return x
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        step = 4 * unit(x.dtype) * np.maximum(np.abs(wide), smallest_normal(x.dtype))
        return np.where(wide == 0, wide, wide + step * numbers.uniform(-1, 1, x.shape)).astype(x.dtype)


def _alone(sample: ModelSample, node: NodeProto, values: Arrays, ours: RunNode) -> Difference | None:
    """How the node differs on onnxruntime's operands; None when it does not, or cannot be run."""
    operands = [values[name] if name else None for name in node.input]
    constant = [name in sample.constants for name in node.input]
    try:
        found = ours(node, operands, constant)
    except Exception:  # refused alone, or its failure is a finding of its own: not what is asked here
        return None
    moved = _moved(sample, node, operands, constant)
    for position, (name, array) in enumerate(zip(node.output, found, strict=True)):
        text = differs(values[name], array, [results[position] for results in moved]) if name else None
        if text is not None:
            shown = ", ".join("none" if x is None else f"{x.dtype}{list(x.shape)}" for x in operands)
            return Difference(0, dict(zip(node.output, found, strict=True)), f"{node.op_type}({shown}): {text}")
    return None


def _moved(
    sample: ModelSample, node: NodeProto, operands: Sequence[Array | None], constant: Sequence[bool]
) -> list[list[Array]]:
    found: list[list[Array]] = []
    for seed in range(WIGGLES):
        numbers = np.random.default_rng(seed)
        changed = [None if x is None else wiggled(numbers, x) for x in operands]
        try:
            found.append(run_node(node, sample.opset, changed, constant))
        except Unable:
            continue
    return found
