"""One case through graphkernel: does it load, compile, and give what onnx expects?"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, numpy_helper

import graphkernel as gk
from graphkernel.errors import FrontendError, InputError, RuntimeFailure
from graphkernel.frontends.onnx.importer import import_onnx
from kernelgen.verify.compare import difference
from tests.onnx_node_tests.cases import NodeCase
from tests.onnx_node_tests.opinion import Answer, excuse
from tests.onnx_node_tests.reasons import reason_of

REFUSALS = (FrontendError, InputError, RuntimeFailure)
"""What says that a model is not taken. Any other exception is a mistake of ours."""

UNITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""What the last bit of a number is worth: answers may differ by it, since they may be rounded on the way."""


NARROW = frozenset(name for name in dir(ml_dtypes) if name.startswith(("float4", "float8", "int", "uint")))
"""Data types that numpy itself does not know; float32 holds all their numbers."""


class Kind(StrEnum):
    """How a case ended."""

    PASSED = "passed"
    REFUSED = "refused"
    EXCUSED = "excused"
    WRONG = "wrong"
    INTERNAL = "internal"


@dataclass(frozen=True)
class Outcome:
    """``reason`` says why in a few words, ``message`` in full; ``ran_on`` who computed what passed."""

    kind: Kind
    reason: str = ""
    message: str = ""
    ran_on: tuple[str, ...] = ()


def check(case: NodeCase, level: int) -> Outcome:
    """Loads, compiles at the level, runs every data set and compares data types, shapes and elements."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            executable = gk.compile(import_onnx(case.model), opt_level=level)
            answers = [executable(*map(value_of, inputs)) for inputs, _ in case.data_sets]
    except REFUSALS as error:
        return Outcome(Kind.REFUSED, reason_of(str(error)), str(error))
    except Exception as error:  # what is looked for
        return Outcome(Kind.INTERNAL, type(error).__name__, f"{type(error).__name__}: {error}")
    ran_on = ("kernels",) * bool(executable.report.kernels)
    ran_on += tuple(sorted({entry.library for entry in executable.report.host}))
    return _compared(case, answers, ran_on)


def _compared(case: NodeCase, answers: Sequence[Answer], ran_on: tuple[str, ...]) -> Outcome:
    excuses: Counter[str] = Counter()
    for (inputs, outputs), answer in zip(case.data_sets, answers, strict=True):
        expected = [value_of(output) for output in outputs]
        fault = fault_of(answer, expected, case)
        if not fault:
            continue
        found = excuse(case, [*map(value_of, inputs)], answer, expected, lambda a, b: not fault_of(a, b, case))
        if not found:
            return Outcome(Kind.WRONG, "wrong answer", fault, ran_on)
        excuses[found] += 1
    return Outcome(Kind.EXCUSED, next(iter(excuses)), "", ran_on) if excuses else Outcome(Kind.PASSED, ran_on=ran_on)


def fault_of(found: Answer, expected: Answer, case: NodeCase) -> str:
    """What differs first; empty when nothing is beyond the case's tolerance."""
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    faults = (_fault(one, other, case) for one, other in zip(found, expected, strict=True))
    return next((f"result {position}: {fault}" for position, fault in enumerate(faults) if fault), "")


def _fault(one: Any, other: Any, case: NodeCase) -> str:
    """What differs first between two values: tensors, lists of them, or None."""
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"{len(one)} tensors, expected {len(other)}"
        return next(filter(None, (_fault(*pair, case) for pair in zip(one, other, strict=True))), "")
    if one is None or other is None:
        return "" if one is other else f"{type(one).__name__}, expected {type(other).__name__}"
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype and not {one.dtype.kind, other.dtype.kind} <= set("OU"):
        return f"{one.dtype}, expected {other.dtype}"
    if one.dtype.kind in "OU":
        return "" if one.shape == other.shape and one.tolist() == other.tolist() else f"{one}, expected {other}"
    rtol = max(case.rtol, UNITS.get(one.dtype.name, 0.0))
    if one.dtype.name in NARROW:
        one, other = one.astype(np.float32), other.astype(np.float32)
    return difference(one, other, rtol).fault


def value_of(value: Any) -> Any:  # an array where it is a tensor
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return value if value is None or isinstance(value, list) else np.asarray(value)
