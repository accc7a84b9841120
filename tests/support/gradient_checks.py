"""Gradients of single operators: as our rules make them, and as central differences of the operator's meaning say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import graphkernel as gk
from graphkernel.ops import OPS
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.types import TensorType, dtype
from tests.support.operator_samples import Case, cases

Arrays = list[np.ndarray]
WIDE = dtype("float64")
STEP = 1e-6
ABOVE_ONE = {"Acosh", "AcoshExt"}
IN_FLOAT32 = {"AddRmsNorm": "gamma decides what it is computed in"}


@dataclass(frozen=True)
class Point:
    """An operator at operands, and the cotangents of the results that a loss sees."""

    case: Case
    arrays: Arrays
    cotangents: dict[int, np.ndarray]

    @property
    def floats(self) -> list[int]:
        """The places of the operands that have a gradient."""
        return [place for place, array in enumerate(self.arrays) if array.dtype == np.float64]

    @property
    def names(self) -> list[str]:
        """What these operands are called in the graph."""
        return [f"x{place}" for place in self.floats]

    def graph(self) -> Graph:
        """The operator alone, on types without symbols."""
        builder = Builder()
        inputs = tuple(builder.parameter(f"x{place}", type_) for place, type_ in enumerate(self.case.bound))
        results = builder.node(self.case.op, inputs, self.case.attrs).outs
        tokens = results[-1:] if self.case.op.traits.ordered else ()
        return Graph("one", inputs, (*(results[place] for place in self.cotangents), *tokens))

    def gradients(self) -> Arrays:
        """By the rules."""
        graph = gk.grad(self.graph(), wrt=self.names, cotangents=True)
        return list(gk.evaluate(graph, [*self.arrays, *self.cotangents.values()]))

    def differences(self) -> Arrays:
        """By central differences of the meaning."""
        return [self._differences(place) for place in self.floats]

    def _differences(self, place: int) -> np.ndarray:
        found = np.empty(self.arrays[place].shape)
        for index in np.ndindex(found.shape):
            found[index] = (self._loss(place, index, STEP) - self._loss(place, index, -STEP)) / (2 * STEP)
        return found

    def _loss(self, place: int, index: tuple[int, ...], step: float) -> float:
        moved = list(self.arrays)
        moved[place] = moved[place].copy()
        moved[place][index] += step
        results = self.case.results(moved)
        return sum(float(np.vdot(results[at], dy)) for at, dy in self.cotangents.items())


def points(op: Operator) -> Iterator[Point]:
    """The operator's samples in float64, on positive operands and on operands of both signs, away from ties and corners;
    of several results the loss sees all, and each alone."""
    for case in cases(op):
        narrow = op.name in IN_FLOAT32 and any(type_.dtype.name == "float32" and type_.rank for type_ in case.bound)
        if narrow or WIDE not in {type_.dtype for type_ in case.bound}:
            continue
        for values in (_positive, _signed):
            arrays = _labels_add_up(op.name, case.arrays(_above_one if op.name in ABOVE_ONE else values))
            results = case.results(arrays)
            if all(np.isfinite(result).all() for result in results if result.dtype == np.float64):
                yield from _seen(case, arrays, results)


def _seen(case: Case, arrays: Arrays, results: Arrays) -> Iterator[Point]:
    wide = {place: result.shape for place, result in enumerate(results) if result.dtype == np.float64}
    cotangents = {place: _signed(TensorType(shape, WIDE), 9 + place) for place, shape in wide.items()}
    for seen in dict.fromkeys([tuple(wide), *((place,) for place in wide)]):
        if seen:
            yield Point(case, arrays, {place: cotangents[place] for place in seen})


def _labels_add_up(name: str, arrays: Arrays) -> Arrays:
    """What the gradient that comes with SoftmaxCrossEntropyWithLogits rests on."""
    if name == "SoftmaxCrossEntropyWithLogits" and arrays[1].size:
        arrays[1] = arrays[1] / arrays[1].sum(axis=-1, keepdims=True)
    return arrays


def _drawn(type_: TensorType, place: int, low: float, high: float, signs: Sequence[int]) -> np.ndarray:
    rng = np.random.default_rng(17 + place)
    shape = tuple(int(str(extent)) for extent in type_.shape)
    if not type_.dtype.is_float:
        return rng.integers(0, 2, shape).astype(type_.dtype.numpy)
    return np.asarray(rng.uniform(low, high, shape) * rng.choice(signs, shape)).astype(type_.dtype.numpy)


def _positive(type_: TensorType, place: int) -> np.ndarray:
    return _drawn(type_, place, 0.1, 0.9, [1])


def _signed(type_: TensorType, place: int) -> np.ndarray:
    return _drawn(type_, place, 0.1, 4.0, [1, -1])


def _above_one(type_: TensorType, place: int) -> np.ndarray:
    return _drawn(type_, place, 1.1, 4.0, [1])


def agree(found: Arrays, expected: Arrays) -> bool:
    """As near as central differences in float64 are; undefined in the same places."""
    return all(
        one.shape == other.shape and np.allclose(one, other, rtol=2e-5, atol=2e-6, equal_nan=True)
        for one, other in zip(found, expected, strict=True)
    )


def has_floats(op: Operator) -> bool:
    """Whether some sample of the operator has floats among its operands and among its results; complex numbers are none."""
    for case in cases(op):
        results = op.infer(case.bound, case.attrs)
        if all(any(type_.dtype.is_float for type_ in types) for types in (case.bound, results)):
            return True
    return False


DIFFERENTIABLE_TYPES = tuple(name for name, op in OPS.items() if has_floats(op))
